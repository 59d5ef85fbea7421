package workflows_test

import (
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/workflows"
)

// A host that is taken up from its row alone still knows where its machine is reached.
func TestAResumedHostKnowsItsAddress(t *testing.T) {
	h := workflows.ResumeHost(cluster.ElasticHost{ID: "host/c16-1", State: cluster.HostExpected, Instance: "i-1", Name: "c16-1", Address: "10.0.0.7"})
	if len(h.Machines) != 1 || h.Machines[0].Address != "10.0.0.7" {
		t.Errorf("%+v", h.Machines)
	}
}

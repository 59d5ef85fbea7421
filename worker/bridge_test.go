package worker

import (
	"encoding/json"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

func TestOnlyChangedDemandForTokensWakesAProvider(t *testing.T) {
	for _, test := range []struct {
		demand cluster.Demand
		want   bool
	}{
		{cluster.Demand{Resource: "vcs", Provider: "pool", Units: 2}, true},
		{cluster.Demand{Resource: "vcs", Provider: "pool"}, true},
		{cluster.Demand{Template: "small", Provider: "cloud", Units: 2}, false},
	} {
		after, err := json.Marshal(test.demand)
		if err != nil {
			t.Fatal(err)
		}
		if got := ofTokens(api.Change{Kind: api.KindDemand, After: after}); got != test.want {
			t.Errorf("%+v is of tokens: %t", test.demand, got)
		}
	}
	if !ofTokens(api.Change{Kind: api.KindDemand}) {
		t.Error("a change that does not say is taken for none")
	}
}

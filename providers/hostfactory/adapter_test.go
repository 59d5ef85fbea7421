package hostfactory

import (
	"slices"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// TestAHostIsAskedForUsedAndGivenBack is the good case.
func TestAHostIsAskedForUsedAndGivenBack(t *testing.T) {
	f := newFake(t)
	a := f.adapter()
	out, outcome := a.Request(t.Context(), askOne("host/small-1"))
	if outcome.Status != providers.StatusPending || out.RetryAfter != 30 {
		t.Fatalf("request: %+v %+v", out, outcome)
	}
	state := f.settled(a, "host/small-1", cluster.Minute)
	want := []providers.Instance{{ID: "i-2", Name: "host-i-2"}}
	if state.Status != providers.StateGranted || state.Granted != 1 || !slices.Equal(state.Instances, want) {
		t.Fatalf("status: %+v", state)
	}
	list, _ := a.List(t.Context())
	if len(list.Grants) != 1 || list.Grants[0].Template != "small" || !slices.Equal(list.Grants[0].Instances, want) {
		t.Errorf("list: %+v", list)
	}
	again, outcome := a.Request(t.Context(), askOne("host/small-1"))
	if outcome.Status != providers.StatusOK || !slices.Equal(again.Instances, want) {
		t.Errorf("repeated: %+v", again)
	}
	if back := f.back(a, "host/small-1", 2*cluster.Minute); back.Status != providers.StatusOK || back.Remaining != 0 {
		t.Fatalf("return: %+v", back)
	}
	if len(f.runningIDs()) > 0 || f.countCalls(requestMachines) != 1 || f.countCalls(returnMachines) != 1 {
		t.Errorf("running %q after %q", f.runningIDs(), f.calls)
	}
	if list, _ = a.List(t.Context()); len(list.Grants) != 0 {
		t.Errorf("list: %+v", list)
	}
	if _, outcome := a.Request(t.Context(), askOne("host/small-1")); outcome.Reason != providers.ReasonInvalid {
		t.Errorf("a late request: %+v", outcome)
	}
}

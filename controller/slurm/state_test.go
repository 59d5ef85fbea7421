package slurm

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"xce.internal/elastic/controller/backend"
)

// Each state that Slurm was seen in, or that its sources know, means one thing to us,
// and says what to do where nothing but a person can help.
func TestHostOfStates(t *testing.T) {
	for _, c := range []struct {
		state, reason string
		never         bool // its slurmd has never answered
		want          backend.HostState
		why           string
		busy          int64
		drained       bool
	}{
		{state: "IDLE", want: backend.HostReady},
		{state: "IDLE+CLOUD+DYNAMIC_NORM", want: backend.HostReady},
		{state: "MIXED+PLANNED", want: backend.HostReady, busy: 1},
		{state: "ALLOCATED", want: backend.HostReady, busy: 1},
		{state: "IDLE+COMPLETING", want: backend.HostReady, busy: 1},
		{state: "MIXED+SOMETHING_NEW", want: backend.HostReady, busy: 1},

		{state: "FUTURE", never: true, want: backend.HostAwaited, why: "set it to resume"},
		{state: "FUTURE+DYNAMIC_NORM", never: true, want: backend.HostAwaited, why: "not here yet"},
		{state: "FUTURE+DRAIN+DYNAMIC_NORM", reason: "xce: not here yet", never: true, want: backend.HostAwaited, why: "not here yet", drained: true},
		{state: "FUTURE", want: backend.HostAwaited, why: "puts idle FUTURE nodes back"}, // it was here before
		{state: "IDLE+CLOUD+DYNAMIC_NORM+POWERED_DOWN", never: true, want: backend.HostAwaited, why: "not here yet"},
		{state: "IDLE+CLOUD+POWERED_DOWN", want: backend.HostAwaited},
		{state: "IDLE+CLOUD+DRAIN+POWERED_DOWN", reason: "xce: not here", want: backend.HostAwaited, drained: true},
		{state: "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", never: true, want: backend.HostAwaited, why: "ResumeTimeout", busy: 1},
		{state: "IDLE+CLOUD+POWERING_UP", want: backend.HostAwaited, why: "restart that with -b"},
		{state: "DOWN+CLOUD+POWERED_DOWN+NOT_RESPONDING", reason: "ResumeTimeout reached", want: backend.HostAwaited, why: "set it to resume to try again: ResumeTimeout reached"},
		{state: "DOWN+CLOUD+DYNAMIC_NORM+NOT_RESPONDING", reason: "Not responding", never: true, want: backend.HostAwaited, why: "never answered: Not responding"},
		{state: "UNKNOWN+NOT_RESPONDING", never: true, want: backend.HostAwaited, why: "never answered"},

		{state: "DOWN+NOT_RESPONDING", reason: "Not responding", want: backend.HostSilent, why: "Not responding"},
		{state: "IDLE+NOT_RESPONDING", want: backend.HostSilent, why: "IDLE+NOT_RESPONDING"},
		{state: "ALLOCATED+NOT_RESPONDING", want: backend.HostSilent, busy: 1},
		{state: "DOWN+IDLE", reason: "Node unexpectedly rebooted", want: backend.HostSilent, why: "unexpectedly rebooted"},
		{state: "DOWN+DRAIN", reason: "xce: idle", want: backend.HostSilent, drained: true},
		{state: "DOWN+COMPLETING", reason: "Kill task failed", want: backend.HostSilent, why: "Kill task failed", busy: 1},
		{state: "ERROR", want: backend.HostSilent},

		{state: "IDLE+DRAIN", reason: "xce: idle", want: backend.HostClosed, why: "we drained it: idle", drained: true},
		{state: "ALLOCATED+DRAIN", reason: "xce: idle", want: backend.HostClosed, busy: 1, drained: true},
		{state: "IDLE+COMPLETING+DRAIN", reason: "xce: idle", want: backend.HostClosed, busy: 1, drained: true},
		{state: "IDLE+DRAIN", reason: "bad fan", want: backend.HostClosed, why: "someone drained it: bad fan"},
		{state: "IDLE+DRAIN", want: backend.HostClosed, why: "someone drained it"},
		{state: "IDLE+DRAIN", reason: "not xce: idle", want: backend.HostClosed, why: "someone drained it"},
		{state: "IDLE+CLOUD+DRAIN", want: backend.HostClosed, why: "we drained it", drained: true}, // its reason was forgotten as it came
		{state: "IDLE+CLOUD+DRAIN", reason: "bad fan", want: backend.HostClosed, why: "someone drained it: bad fan"},
		{state: "IDLE+DRAIN+DYNAMIC_NORM", want: backend.HostClosed, why: "we drained it", drained: true},
		{state: "IDLE+FAIL", want: backend.HostClosed},
		{state: "IDLE+DRAIN+INVALID_REG", reason: "Low RealMemory", want: backend.HostClosed, why: "less than it was declared with: Low RealMemory"},
		{state: "IDLE+REBOOT_REQUESTED", want: backend.HostClosed, why: "restarted"},
		{state: "IDLE+MAINTENANCE", want: backend.HostClosed, why: "maintenance"},
		{state: "IDLE+RESERVED", want: backend.HostClosed, why: "reservation"},
		{state: "IDLE+BLOCKED", want: backend.HostClosed},
		{state: "STRANGE+X", want: backend.HostClosed, why: "STRANGE+X"},

		{state: "IDLE+CLOUD+POWERING_DOWN", want: backend.HostRemoving, why: "switching it off"},
		{state: "MIXED+CLOUD+POWER_DOWN", want: backend.HostRemoving, busy: 1},
	} {
		n := Node{Name: "h1", Reason: c.reason, Booted: 1}
		n.Base, n.Flags = stateOf(c.state)
		if c.never {
			n.Booted = 0
		}
		h := asHost(n)
		if h.State != c.want || !strings.Contains(h.Why, c.why) || h.Busy != c.busy || h.Drained != c.drained {
			t.Errorf("%s %q: %s %q, busy %d, drained %v", c.state, c.reason, h.State, h.Why, h.Busy, h.Drained)
		}
	}
}

func TestHostOfCapacity(t *testing.T) {
	h := asHost(readNodes(t, recorded(t, "nodes-22.05.txt"))["n3"])
	if want := []string{"node:n3", "partition:all", "partition:main", "static", "x86"}; !slices.Equal(h.Features, want) {
		t.Errorf("%v; want %v", h.Features, want)
	}
	if h.CPUs != 4 || h.MemoryMB != 4000 || h.Countables["gpu"] != 2 || h.Removable || h.Drained {
		t.Errorf("%+v", h)
	}
}

// Whatever Slurm says, a host has one state, and says why where it takes no jobs.
func TestHostOfAnyState(t *testing.T) {
	words := []string{
		"IDLE", "ALLOCATED", "MIXED", "DOWN", "FUTURE", "UNKNOWN", "ERROR", "DRAIN", "COMPLETING", "NOT_RESPONDING", "POWERED_DOWN",
		"POWERING_UP", "POWERING_DOWN", "POWER_DOWN", "INVALID_REG", "FAIL", "CLOUD", "DYNAMIC_NORM", "REBOOT_ISSUED", "MAINTENANCE", "RESERVED", "PLANNED", "NEW",
	}
	rapid.Check(t, func(t *rapid.T) {
		n := Node{Name: "h", Reason: rapid.SampledFrom([]string{"", "xce: x", "y"}).Draw(t, "reason"), Booted: 1}
		n.Base = rapid.SampledFrom(words).Draw(t, "base")
		n.Flags = rapid.SliceOfDistinct(rapid.SampledFrom(words), rapid.ID[string]).Draw(t, "flags")
		h := asHost(n)
		if h.State == "" || (h.State == backend.HostReady) != (h.Why == "") {
			t.Fatalf("%s: %+v", n.state(), h)
		}
		if h.State == backend.HostReady && n.has("DRAIN", "DOWN", "FAIL", "FUTURE", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_UP", "POWERING_DOWN", "INVALID_REG") {
			t.Fatalf("%s takes jobs", n.state())
		}
	})
}

package hostfactory

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

func TestTemplatesAreReadAsPluginsWriteThem(t *testing.T) {
	const attributes = `"attributes":{"type":["String","X86_64"],"ncpus":["Numeric","4"],"mem":["Numeric","8192"]}`
	tests := []struct {
		name, stdout string
		change       func(*Spec)
		want         []providers.Template
	}{
		{
			"lsf", `{"templates":[{"templateId":"a","maxNumber":5,"attributes":{"type":["String","X86_64"],"ncores":["Numeric","8"],"ncpus":["Numeric","2"],"mem":["Numeric","16384"],"awshost":["Boolean","1"],"gpu":["Boolean","0"],"odd name":["String","x"]}}]}`,
			nil,
			[]providers.Template{{Template: "a", CPUs: 8, MemoryMB: 16384, Headroom: 5, Features: []string{"awshost"}, Attributes: map[string]string{"type": "X86_64"}}},
		},
		{
			"symphony, lists of one", `{"message":"ok","templates":[{"templateId":"a","maxNumber":"5","attributes":{"ncores":["Numeric","8"],"ncpus":["2"],"nram":["4096"]}}]}`,
			func(s *Spec) { s.Flavour = Symphony },
			[]providers.Template{{Template: "a", CPUs: 2, MemoryMB: 4096, Headroom: 5}},
		},
		{
			"plain values, Python", `{'templates': [{'templateId': 'a', 'maxNumber': 5, 'attributes': {'ncpus': 2, 'mem': '4096.0', 'ssd': True, 'zone': None}}]}`,
			nil,
			[]providers.Template{{Template: "a", CPUs: 2, MemoryMB: 4096, Headroom: 5, Features: []string{"ssd"}}},
		},
		{
			"unlimited has the configured cap, 0 stays 0", `{"templates":[{"templateId":"a","maxNumber":-1,` + attributes + `},{"templateId":"b","maxNumber":0,` + attributes + `},{"templateId":"c","maxNumber":9,"availableNumber":2,` + attributes + `}]}`,
			func(s *Spec) { s.Templates = []Terms{{ID: "a", Most: 7}} },
			[]providers.Template{
				{Template: "a", CPUs: 4, MemoryMB: 8192, Headroom: 7, Attributes: map[string]string{"type": "X86_64"}},
				{Template: "b", CPUs: 4, MemoryMB: 8192, Headroom: 0, Attributes: map[string]string{"type": "X86_64"}},
				{Template: "c", CPUs: 4, MemoryMB: 8192, Headroom: 2, Attributes: map[string]string{"type": "X86_64"}},
			},
		},
		{
			"economics, overhead, names and priority", `{"templates":[{"templateId":"a b","maxNumber":5,"priority":10,` + attributes + `},{"templateId":"c","maxNumber":5,"priority":4,` + attributes + `}]}`,
			func(s *Spec) {
				s.Terms = Terms{Price: 100, MinimumHold: time.Minute, KeepMemoryMB: 192, KeepCPUs: 1, Latency: 90 * time.Second}
				s.Templates = []Terms{{ID: "a b", Name: "ab", Price: 300, BillingStep: time.Hour}}
			},
			[]providers.Template{
				{Template: "ab", CPUs: 3, MemoryMB: 8000, Headroom: 5, Price: 300, MinimumHold: 60, BillingStep: 3600, Latency: 90, Attributes: map[string]string{"type": "X86_64"}},
				{Template: "c", CPUs: 3, MemoryMB: 8000, Headroom: 5, Price: 100, MinimumHold: 60, Latency: 90, Preference: 6, Attributes: map[string]string{"type": "X86_64"}},
			},
		},
		{"none", `{"message":"nothing today","templates":[]}`, nil, []providers.Template{}},
		{"a size is missing", `{"templates":[{"templateId":"a","maxNumber":5,"attributes":{"mem":["Numeric","8"]}}]}`, nil, []providers.Template{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.bend(getTemplates, says(test.stdout, 0))
			spec := f.spec()
			if test.change != nil {
				test.change(&spec)
			}
			d, outcome := f.adapterOf(spec, nil).Describe(t.Context())
			for i := range test.want {
				if test.want[i].Attributes == nil {
					test.want[i].Attributes = map[string]string{}
				}
			}
			if outcome.Status != providers.StatusOK || !reflect.DeepEqual(d.Templates, test.want) {
				t.Errorf("got %+v %+v\nwant %+v", outcome, d.Templates, test.want)
			}
			run := providers.Execution{Stdout: []byte(asAnswer(d))}
			if _, outcome := providers.ClassifyDescribe(run); outcome.Status != providers.StatusOK {
				t.Errorf("it breaks our own contract: %+v", outcome)
			}
		})
	}
}

func TestATemplateListThatCannotBeReadIsUnknown(t *testing.T) {
	for _, stdout := range []string{"", "no templates", `{"error":"boom"}`, `[1,2]`} {
		f := newFake(t)
		f.bend(getTemplates, says(stdout, 1))
		if _, outcome := f.adapter().Describe(t.Context()); outcome.Status != providers.StatusUnknown || outcome.Text != stdout {
			t.Errorf("%q: %+v", stdout, outcome)
		}
	}
}

func TestHeadroomLeavesOutWhatWeHaveAndWhatMayCome(t *testing.T) {
	f := newFake(t)
	a := f.adapter()
	a.Request(t.Context(), askOne("host/small-1"))
	f.settled(a, "host/small-1", cluster.Hour)
	f.bend(requestMachines, says("Error", 1))
	a.Request(t.Context(), askOne("host/small-2"))
	f.bend(requestMachines, says(`{"message":"no"}`, 1))
	a.Request(t.Context(), askOne("host/small-3"))
	if d, _ := a.Describe(t.Context()); d.Templates[0].Headroom != 8 {
		t.Errorf("headroom %d, want 10 less one that is there and one of unknown outcome", d.Templates[0].Headroom)
	}
}

func TestAnErrorCodePutsTheTemplateOnHoldLongerEachTime(t *testing.T) {
	f := newFake(t)
	a := f.adapter()
	fails := says(`{"message":"create failed. Error Code: InsufficientCapacity"}`, 1)
	for i, hold := range []int64{600, 1200, 2400} {
		f.bend(requestMachines, fails)
		out, outcome := a.Request(t.Context(), askOne(fmt.Sprintf("host/small-%d", i)))
		if outcome.Status != providers.StatusRefused || outcome.Reason != providers.ReasonCapacity || out.RetryAfter != hold {
			t.Fatalf("%+v", outcome)
		}
		f.wait(cluster.Second)
		a = f.adapter() // the hold outlives us
		calls := f.countCalls(requestMachines)
		out, outcome = a.Request(t.Context(), askOne(fmt.Sprintf("host/small-held-%d", i)))
		if outcome.Status != providers.StatusRefused || out.RetryAfter != hold-1 || f.countCalls(requestMachines) != calls {
			t.Fatalf("while held: %+v after %d calls", outcome, f.countCalls(requestMachines)-calls)
		}
		other := askOne(fmt.Sprintf("host/large-%d", i))
		other.Template = "large"
		f.bent = map[string]script{}
		if _, outcome := a.Request(t.Context(), other); outcome.Status != providers.StatusPending {
			t.Errorf("another template: %+v", outcome)
		}
		f.wait(cluster.Duration(hold) * cluster.Second)
	}
	good := askOne("host/small-good")
	good.Join = nil // its time to join would be over
	a.Request(t.Context(), good)
	f.settled(a, "host/small-good", cluster.Hour)
	f.bend(requestMachines, fails)
	if out, _ := a.Request(t.Context(), askOne("host/small-again")); out.RetryAfter != 600 {
		t.Errorf("after a success: %+v", out)
	}
}

func TestAnErrorCodeOfTheStatusIsNoticedWhereverItStands(t *testing.T) {
	tests := map[string]string{
		"of the call":    `{"message":"Error Code: InsufficientCapacity","requests":[{"requestId":"r-1","status":"complete_with_error","machines":[]}]}`,
		"of the request": `{"requests":[{"requestId":"r-1","status":"complete_with_error","message":"Error Code: 7 oops","machines":[]}]}`,
		"of a machine":   `{"requests":[{"requestId":"r-1","status":"running","machines":[{"machineId":"m","name":"m","result":"fail","message":"Error Code: cannot_start_capacity"}]}]}`,
	}
	for name, stdout := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			a := f.adapter()
			a.Request(t.Context(), askOne("host/small-1"))
			f.wait(cluster.Minute)
			f.bend(getStatus, says(stdout, 0))
			a.Status(t.Context(), providers.StatusIn{RequestIDs: []string{"host/small-1"}})
			if _, outcome := a.Request(t.Context(), askOne("host/small-2")); outcome.Status != providers.StatusRefused || outcome.RetryAfter != 600 {
				t.Errorf("%+v", outcome)
			}
		})
	}
}

// with answers an adapter that has some hosts.
func (f *fake) with(hosts int) *Adapter {
	a := f.adapter()
	for i := range hosts {
		id := fmt.Sprintf("host/small-%d", i+1)
		a.Request(f.t.Context(), askOne(id))
		f.settled(a, id, cluster.Hour)
	}
	return a
}

func (f *fake) wants(machines ...*cloudMachine) {
	list := []object{}
	for _, m := range machines {
		list = append(list, object{"machine": m.name, "machineId": m.id, "gracePeriod": "90"})
	}
	f.bend(getReturnRequests, says(asAnswer(object{"status": complete, "requests": list}), 0))
}

func TestWhatThePluginWantsBackIsRecalled(t *testing.T) {
	f := newFake(t)
	a := f.with(2)
	f.wants(f.machines[0], &cloudMachine{id: "i-foreign", name: "foreign"})
	d, _ := a.Describe(t.Context())
	if want := []providers.Recall{{RequestID: "host/small-1", Units: 1, Grace: 90}}; !slices.Equal(d.Recalls, want) {
		t.Fatalf("recalls %+v", d.Recalls)
	}
	f.wait(30 * cluster.Second)
	if d, _ = f.adapter().Describe(t.Context()); len(d.Recalls) != 1 || d.Recalls[0].Grace != 60 {
		t.Errorf("recalls %+v", d.Recalls)
	}
	f.back(a, "host/small-1", cluster.Hour)
	if d, _ = a.Describe(t.Context()); len(d.Recalls) != 0 {
		t.Errorf("recalls after the return: %+v", d.Recalls)
	}
	if slices.Contains(f.returnedIDs(), "i-foreign") {
		t.Error("a machine was returned that we never had")
	}
}

// TestThatAllIsSuddenlyGoneMustBeSaidTwice is the report of a plug-in that could not list its machines.
func TestThatAllIsSuddenlyGoneMustBeSaidTwice(t *testing.T) {
	f := newFake(t)
	a := f.with(4)
	f.wants(f.machines...)
	if d, _ := a.Describe(t.Context()); len(d.Recalls) != 0 {
		t.Fatalf("believed at once: %+v", d.Recalls)
	}
	f.wants()
	f.wait(cluster.Minute)
	a.Describe(t.Context())
	f.wants(f.machines...)
	f.wait(cluster.Minute)
	if d, _ := a.Describe(t.Context()); len(d.Recalls) != 0 {
		t.Fatalf("believed though it was taken back meanwhile: %+v", d.Recalls)
	}
	f.wait(cluster.Minute)
	if d, _ := a.Describe(t.Context()); len(d.Recalls) != 4 {
		t.Errorf("not believed the second time: %+v", d.Recalls)
	}
}

func TestTheWholeListIsSentOrNone(t *testing.T) {
	last := func(f *fake) string {
		for _, call := range slices.Backward(f.calls) {
			if rest, yes := strings.CutPrefix(call, getReturnRequests+" "); yes {
				return rest
			}
		}
		return "none"
	}
	f := newFake(t)
	a := f.adapter()
	a.Describe(t.Context())
	if last(f) != `{"machines":[]}` {
		t.Errorf("with nothing at all: %s", last(f))
	}
	f = newFake(t)
	a = f.adapter()
	f.bend(requestMachines, says("what?", 0))
	a.Request(t.Context(), askOne("host/small-1"))
	a.Describe(t.Context())
	if last(f) != "none" {
		t.Errorf("with an unknown outcome and nothing else: %s", last(f))
	}
	f = newFake(t)
	a = f.adapter()
	a.Request(t.Context(), askOne("host/small-1"))
	f.bend(getStatus, says("", 1))
	f.wait(cluster.Minute)
	a.Describe(t.Context())
	if last(f) != "none" {
		t.Errorf("with a request that could not be looked at: %s", last(f))
	}
	f = newFake(t)
	a = f.with(2)
	f.bend(returnMachines, says("", 1))
	a.Return(t.Context(), providers.ReturnIn{RequestID: "host/small-2", Units: 1})
	a.Describe(t.Context())
	if want := `{"machines":[{"name":"host-i-2","machineId":"i-2"},{"name":"host-i-4","machineId":"i-4"}]}`; last(f) != want {
		t.Errorf("held and leaving: %s, want %s", last(f), want)
	}
}

func TestATemplateThatIsRemovedDoesNotTouchItsRequests(t *testing.T) {
	f := newFake(t)
	a := f.with(1)
	a.Request(t.Context(), askOne("host/small-2"))
	f.bend(getTemplates, says(`{"templates":[]}`, 0))
	a.Describe(t.Context())
	if state := f.settled(a, "host/small-2", cluster.Hour); state.Status != providers.StateGranted {
		t.Errorf("%+v", state)
	}
	if out := f.back(a, "host/small-1", cluster.Hour); out.Status != providers.StatusOK {
		t.Errorf("%+v", out)
	}
}

func TestAMachineThatFailsLaterIsRecalled(t *testing.T) {
	f := newFake(t)
	statusOfAcquired(f, func(id string, _ int) object {
		status := f.status(id)
		status["status"] = running
		return status
	})
	a := f.with(1)
	f.machines[0].running = false
	f.wait(cluster.Minute)
	if d, _ := a.Describe(t.Context()); len(d.Recalls) != 1 {
		t.Errorf("%+v", d.Recalls)
	}
}

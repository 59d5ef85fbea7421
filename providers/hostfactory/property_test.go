package hostfactory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// world is a plug-in that misbehaves at random, a cloud, an adapter that crashes, and callers.
type world struct {
	*fake
	rt       *rapid.T
	a        *Adapter
	healed   bool
	callers  map[string]bool // requests; true once their return was ok
	lost     map[*cloudMachine]bool
	slow     map[string]int // polls until a request's machines are there
	nameless map[string]int // polls until they have names
	reclaims bool           // getReturnRequests ends what is missing from its list
	crashed  []string       // requests within which the adapter was killed
}

func (w *world) chance(percent int, label string) bool {
	return !w.healed && rapid.IntRange(1, 100).Draw(w.rt, label) <= percent
}

func (w *world) pick(label string, choices ...string) string {
	return rapid.SampledFrom(choices).Draw(w.rt, label)
}

// garble is how an answer may look.
func (w *world) garble(answer string) string {
	if !w.chance(40, "garbled") {
		return answer
	}
	switch w.pick("garble", "noise", "python", "twice", "comma") {
	case "noise":
		return "usage: [-h] {x}\nWARN bc not found" + answer + "\n"
	case "python":
		return pythonRepr(answer)
	case "twice":
		return answer + "\n" + answer
	}
	return strings.ReplaceAll(answer, "]}", "],}")
}

func (w *world) request(in map[string]any) (string, int) {
	delete(w.errs, requestMachines)
	if w.healed {
		return w.requestMachines(in)
	}
	switch w.pick("request", "good", "good", "good", "rc 1", "refused", "code", "two", "more", "none", "lost", "text", "empty") {
	case "rc 1":
		answer, _ := w.requestMachines(in)
		return w.garble(answer), 1
	case "refused":
		return `{"requestId":null,"message":"no"}`, 1
	case "code":
		return `{"message":"Error Code: InsufficientCapacity"}`, 1
	case "two":
		first, _ := w.requestMachines(in)
		second, _ := w.requestMachines(in)
		return first + "\n" + second, 0
	case "more":
		w.made = 2
		answer, _ := w.requestMachines(in)
		w.made = 1
		return w.garble(answer), 0
	case "none":
		return fmt.Sprintf(`{"requestId":%q}`, w.id("n")), 0
	case "lost":
		for _, m := range w.launch(1) {
			w.lost[m] = true
		}
		w.errs[requestMachines] = errors.New("time limit")
		return "", -1
	case "text":
		return "Error: no", 1
	case "empty":
		return "", 2
	}
	answer, exit := w.requestMachines(in)
	for _, id := range slices.Sorted(maps.Keys(w.acquired)) {
		if _, known := w.slow[id]; !known {
			w.slow[id], w.nameless[id] = rapid.IntRange(0, 4).Draw(w.rt, "slow"), rapid.IntRange(0, 4).Draw(w.rt, "nameless")
		}
	}
	return w.garble(answer), exit
}

func (w *world) getStatus(in map[string]any) (string, int) {
	if w.chance(20, "status fails") {
		switch w.pick("status", "empty", "text", "down") {
		case "empty":
			return "", 1
		case "text":
			return "ERROR: Command returned empty result", 0
		}
		return `{"requestId":null,"status":"complete_with_error","machines":[],"message":"down"}`, 1
	}
	var requests []object
	for _, id := range askedIDs(in) {
		requests = append(requests, w.status(id))
	}
	return w.garble(asAnswer(object{"requests": requests})), 0
}

func (w *world) status(id string) object {
	status := w.fake.status(id)
	if _, acquired := w.acquired[id]; !acquired || w.healed {
		return status
	}
	list := status["machines"].([]object)
	if w.slow[id]--; w.slow[id] >= 0 {
		for _, m := range list {
			m["result"] = executing
		}
		status["status"] = w.pick("early", running, running, complete)
	}
	if w.nameless[id]--; w.nameless[id] >= 0 {
		for _, m := range list {
			m["name"] = w.pick("no name", "", "None")
		}
	}
	if w.chance(10, "twice") {
		status["machines"] = append(list, list...)
	}
	return status
}

func (w *world) giveBackMachines(in map[string]any) (string, int) {
	delete(w.errs, returnMachines)
	if w.healed {
		return w.returnMachines(in)
	}
	switch w.pick("return", "good", "good", "lie", "fails", "done but broken", "no id") {
	case "lie":
		return `{"requestId":"lie","message":"successful"}`, 0
	case "fails":
		return `{"error":true,"message":"down"}`, 1
	case "done but broken":
		w.returnMachines(in)
		w.errs[returnMachines] = errors.New("time limit")
		return "", -1
	case "no id":
		w.returnMachines(in)
		return `{"status":"complete","message":"No Active instances."}`, 0
	}
	answer, exit := w.returnMachines(in)
	return w.garble(answer), exit
}

// wantBack ends, as some plug-ins do, every machine older than ten minutes that is missing from the list.
func (w *world) wantBack(in map[string]any) (string, int) {
	known, _ := w.named(in)
	for _, m := range w.machines {
		if w.reclaims && m.running && w.clock.Sub(m.began) > 10*cluster.Minute && !slices.Contains(known, m) {
			m.running = false
			if w.knows(m) {
				w.rt.Fatalf("%s is missing from a list of all machines: %v", m.id, in)
			}
		}
	}
	list := []object{}
	for _, m := range known {
		if w.chance(5, "wanted") {
			list = append(list, object{"machine": m.name, "machineId": m.id, "gracePeriod": 60})
		}
	}
	return w.garble(asAnswer(object{"requests": list})), 0
}

// knows tells whether the adapter has a record of a machine that may be running.
func (w *world) knows(m *cloudMachine) bool {
	for _, r := range w.stored().Requests {
		if slices.ContainsFunc(r.Machines, func(o *machine) bool { return o.exists() && o.ID == m.id }) {
			return true
		}
	}
	return false
}

func (w *world) begin() {
	w.a = w.adapter()
	w.a.execute = w.execute
}

func (w *world) step() {
	ids := slices.Sorted(maps.Keys(w.callers))
	what := "request"
	if len(ids) > 0 {
		what = w.pick("step", "request", "status", "status", "describe", "describe", "return", "crash", "dies", "renamed")
	}
	id := ""
	if len(ids) > 0 {
		id = rapid.SampledFrom(ids).Draw(w.rt, "of")
	}
	switch what {
	case "request":
		id := fmt.Sprintf("host/small-%d", len(w.callers)+1)
		w.callers[id] = false
		w.a.Request(w.t.Context(), askOne(id))
	case "status":
		w.a.Status(w.t.Context(), providers.StatusIn{RequestIDs: []string{id}})
	case "describe":
		w.a.Describe(w.t.Context())
	case "return":
		w.giveUp(id)
	case "crash":
		w.crash()
	case "dies":
		if ids := w.runningIDs(); len(ids) > 0 {
			w.machine(rapid.SampledFrom(ids).Draw(w.rt, "who")).running = false
		}
	case "renamed":
		if ids := w.runningIDs(); len(ids) > 0 {
			w.machine(rapid.SampledFrom(ids).Draw(w.rt, "who")).name = "host-" + w.id("renamed")
		}
	}
	w.wait(cluster.Duration(rapid.IntRange(0, 120).Draw(w.rt, "wait")) * cluster.Second)
	w.expectSound()
}

func (w *world) machine(id string) *cloudMachine {
	return w.machines[slices.IndexFunc(w.machines, func(m *cloudMachine) bool { return m.id == id })]
}

func (w *world) giveUp(id string) {
	out, _ := w.a.Return(w.t.Context(), providers.ReturnIn{RequestID: id, Units: 1})
	if out.Status == providers.StatusOK {
		w.callers[id] = true
		w.expectGone(id)
	}
}

// expectGone: what was given back in full is not running any more.
func (w *world) expectGone(id string) {
	s := w.stored()
	if r := s.Requests[id]; r != nil && r.count((*machine).exists) > 0 {
		w.rt.Fatalf("%s is ok, but has machines: %s", id, asAnswer(r))
	}
}

// crash kills the adapter, at times within a call: after the intent, or when the script has ended.
func (w *world) crash() {
	if w.chance(50, "within a request") {
		after := w.chance(50, "after the script")
		w.a.execute = func(_ context.Context, name string, input []byte) providers.Execution {
			if name == requestMachines && after {
				for _, m := range w.launch(1) {
					w.lost[m] = true
				}
			}
			panic("killed")
		}
		id := fmt.Sprintf("host/small-%d", len(w.callers)+1)
		w.callers[id], w.crashed = false, append(w.crashed, id)
		func() {
			defer func() { _ = recover() }()
			w.a.Request(w.t.Context(), askOne(id))
		}()
	}
	w.begin()
}

func (w *world) stored() *state {
	s, err := loadState(w.a.spec.State, w.a.spec.Name)
	if err != nil {
		w.rt.Fatal(err)
	}
	return s
}

// expectSound is what holds at any time.
func (w *world) expectSound() {
	s, owner := w.stored(), map[string]string{}
	for id, r := range s.Requests {
		if got := r.count((*machine).granted); got > r.Units {
			w.rt.Fatalf("%s got %d of %d", id, got, r.Units)
		}
		for _, m := range r.Machines {
			if m.exists() && owner[m.ID] != "" {
				w.rt.Fatalf("%s belongs to %s and %s", m.ID, owner[m.ID], id)
			}
			if m.exists() {
				owner[m.ID] = id
			}
			if m.State == gone && slices.Contains(w.runningIDs(), m.ID) {
				w.rt.Fatalf("%s is taken for gone, and runs", m.ID)
			}
		}
	}
	for _, id := range w.crashed {
		if r := s.Requests[id]; r != nil && r.Phase != intended {
			w.rt.Fatalf("%s is %s, though nobody can know", id, r.Phase)
		}
	}
	asked := map[string]int{}
	for _, call := range w.calls {
		if strings.HasPrefix(call, requestMachines) {
			for id := range w.callers {
				if strings.Contains(call, `"`+id+`"`) {
					asked[id]++
				}
			}
		}
	}
	for id, n := range asked {
		if n > 1 {
			w.rt.Fatalf("%s was put to the plug-in %d times", id, n)
		}
	}
}

// TestNothingIsLostWithAPluginThatMisbehavesAtRandom: in the end, once the plug-in is well and everything is
// given back, the cloud runs nothing of us but what requests of unknown outcome left, and nothing was
// returned that was never given.
func TestNothingIsLostWithAPluginThatMisbehavesAtRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{
			fake: newFake(t), rt: rt, callers: map[string]bool{}, lost: map[*cloudMachine]bool{},
			slow: map[string]int{}, nameless: map[string]int{}, reclaims: rapid.Bool().Draw(rt, "reclaims"),
		}
		w.bend(requestMachines, w.request)
		w.bend(getStatus, w.getStatus)
		w.bend(returnMachines, w.giveBackMachines)
		w.bend(getReturnRequests, w.wantBack)
		w.begin()
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			w.step()
		}
		w.healed = true
		for range 20 {
			for _, id := range slices.Sorted(maps.Keys(w.callers)) {
				if !w.callers[id] {
					w.giveUp(id)
				}
			}
			w.a.Describe(t.Context())
			w.wait(10 * cluster.Minute)
		}
		for id, ok := range w.callers {
			if !ok {
				rt.Errorf("%s is not given back: %s", id, asAnswer(w.stored().Requests[id]))
			}
		}
		for _, m := range w.machines {
			if m.running && !w.lost[m] {
				rt.Errorf("%s runs\n%s", m.id, strings.Join(w.calls, "\n"))
			}
		}
		w.expectOnlyGivenReturned()
	})
}

package hostfactory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// row is one way in which plug-ins behave, and what must come of one request with it.
type row struct {
	name    string
	units   int64 // asked for; 0 means 1
	bend    func(f *fake)
	state   providers.State
	granted int64
	// back is how the return ends after three hours; empty means ok.
	back providers.Status
	// lost is how many machines the cloud may have in the end that we know nothing of: the documented limit.
	lost int
	// more looks at what happened.
	more func(t *testing.T, f *fake, a *Adapter)
}

func jsonBecomes(f *fake, name string, change func(string) string) {
	own := f.own(name)
	f.bend(name, func(in map[string]any) (string, int) {
		stdout, exit := own(in)
		return change(stdout), exit
	})
}

// exits lets a script work, and then end with an exit status.
func exits(f *fake, name string, status int) {
	own := f.own(name)
	f.bend(name, func(in map[string]any) (string, int) {
		stdout, _ := own(in)
		return stdout, status
	})
}

// statusOf bends what is said of each request that was acquired.
func statusOfAcquired(f *fake, say func(id string, poll int) object) {
	polls := map[string]int{}
	f.bend(getStatus, func(in map[string]any) (string, int) {
		var requests []object
		for _, id := range askedIDs(in) {
			if _, acquired := f.acquired[id]; !acquired {
				requests = append(requests, f.status(id))
				continue
			}
			polls[id]++
			requests = append(requests, say(id, polls[id]))
		}
		return asAnswer(object{"requests": requests}), 0
	})
}

func statusOfReturned(f *fake, say func(in map[string]any, id string) (string, int)) {
	f.bend(getStatus, func(in map[string]any) (string, int) {
		for _, id := range askedIDs(in) {
			if _, returned := f.returned[id]; returned {
				return say(in, id)
			}
		}
		return f.getStatus(in)
	})
}

func pythonRepr(text string) string {
	return strings.NewReplacer(`"`, `'`, "true", "True", "false", "False", "null", "None").Replace(text)
}

func onlyOneReturned(t *testing.T, f *fake, _ *Adapter) {
	t.Helper()
	for _, call := range f.calls {
		if strings.HasPrefix(call, returnMachines) && strings.Count(call, "machineId") != 1 {
			t.Errorf("more than one machine in %s", call)
		}
	}
}

func asksFor(most int) func(*testing.T, *fake, *Adapter) {
	return func(t *testing.T, f *fake, _ *Adapter) {
		t.Helper()
		if n := f.countCalls(requestMachines); n > most {
			t.Errorf("%d calls of requestMachines", n)
		}
	}
}

// matrix has the rows of what was observed of public plug-ins.
var matrix = []row{
	{
		name: "awsv2: asked 3, the backend gave 1, complete", units: 3, state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(requestMachines, func(map[string]any) (string, int) {
				f.acquired["r"] = f.launch(1)
				return `{"requestId":"r","message":"Request completed successfully"}`, 0
			})
		},
	},
	{
		name: "ORB: asked 3, got 1 that stays executing, complete_with_error", units: 3, state: providers.StateRefused,
		bend: func(f *fake) {
			f.bend(requestMachines, func(map[string]any) (string, int) {
				f.acquired["r"] = f.launch(1)
				return `{"requestId":"r"}`, 0
			})
			statusOfAcquired(f, func(id string, _ int) object {
				return object{"requestId": id, "status": completeWithError, "message": "Partially fulfilled: 1/3", "machines": results(f.acquired[id], executing, fail)}
			})
		},
		more: func(t *testing.T, f *fake, _ *Adapter) {
			if len(f.returnedIDs()) != 1 {
				t.Errorf("the frozen machine was not returned: %q", f.calls)
			}
		},
	},
	{
		name: "OCI: nothing given, then rc 1 and empty stdout for ever", state: providers.StateRefused,
		bend: func(f *fake) {
			f.bend(requestMachines, says(`{"requestId":"r","message":"ok"}`, 0))
			f.bend(getStatus, says("", 1))
		},
	},
	{
		name: "MS: machines come one after another", units: 3, state: providers.StateGranted, granted: 3,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, poll int) object {
				status, shown := running, f.acquired[id][:min(poll, len(f.acquired[id]))]
				if len(shown) == 3 {
					status = completeWithError
				}
				return object{"requestId": id, "status": status, "machines": results(shown, succeed, fail)}
			})
		},
	},
	{
		name: "awsv2: an unknown acquire id is complete_with_error", state: providers.StateRefused,
		bend: func(f *fake) { f.bend(requestMachines, says(`{"requestId":"nowhere"}`, 0)) },
	},
	{
		name: "ORB: an unknown acquire id is running for ever", state: providers.StateRefused,
		bend: func(f *fake) {
			f.bend(requestMachines, says(`{"requestId":"nowhere"}`, 0))
			f.bend(getStatus, says(`{"requests":[{"requestId":"nowhere","status":"running","machines":[]}]}`, 0))
		},
	},
	{
		name: "MS: rc 2 and empty stdout at the request", state: providers.StateUnknown,
		bend: func(f *fake) { f.bend(requestMachines, says("", 2)) },
		more: asksFor(1),
	},
	{
		name: "awsv2: an unknown return id is complete without machines", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfReturned(f, func(in map[string]any, id string) (string, int) {
				f.returned[id] = nil
				return f.getStatus(in)
			})
		},
	},
	{
		name: "ORB: an unknown return id is running for ever", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			own := f.getStatus
			f.bend(getStatus, func(in map[string]any) (string, int) {
				stdout, exit := own(in)
				for id := range f.returned {
					stdout = strings.ReplaceAll(stdout, asAnswer(f.status(id)), asAnswer(object{"requestId": id, "status": running, "machines": []object{}}))
				}
				return stdout, exit
			})
		},
	},
	{
		name: "OCI: the status of a return is invalid JSON with a trailing comma", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			jsonBecomes(f, getStatus, func(s string) string { return strings.ReplaceAll(s, "]}", "],}") })
		},
	},
	{
		name: "MS: the status of a return is rc 1 without a word", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfReturned(f, func(map[string]any, string) (string, int) { return "", 1 })
		},
	},
	{
		name: "awsv2: the request is not found after its machines were returned", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, _ int) object {
				if !f.acquired[id][0].running {
					return object{"requestId": id, "status": completeWithError, "message": "Request not found", "machines": []object{}}
				}
				return f.status(id)
			})
		},
	},
	{
		name: "OCI: terminated machines stay listed as succeed", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, _ int) object {
				return object{"requestId": id, "status": complete, "machines": results(f.acquired[id], succeed, succeed)}
			})
		},
	},
	{
		name: "ORB: return of a machine that is gone already is rc 1", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(returnMachines, func(map[string]any) (string, int) {
				f.machines[0].running = false
				return `{"error":true,"message":"machine not found","type":"EntityNotFoundError"}`, 1
			})
		},
	},
	{
		name: "OCI: return of a machine that is gone already is rc 0, and its id is the machine's name", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(returnMachines, func(map[string]any) (string, int) {
				f.machines[0].running = false
				return fmt.Sprintf(`{"requestId":%q,"message":"already deleted"}`, f.machines[0].name), 0
			})
		},
	},
	{
		name: "awsv2: return of one real and one unknown machine says success and ends none", units: 2, state: providers.StateGranted, granted: 2,
		bend: func(f *fake) {
			f.bend(returnMachines, func(in map[string]any) (string, int) {
				known, unknown := f.named(in)
				if len(unknown)+len(known) > 1 {
					return `{"requestId":"leak","message":"successful"}`, 0
				}
				return f.returnMachines(in)
			})
		},
		more: onlyOneReturned,
	},
	{
		name: "awsv2: the first return says success and ends nothing", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(returnMachines, func(in map[string]any) (string, int) {
				if f.countCalls(returnMachines) == 1 {
					return `{"requestId":"leak","message":"successful"}`, 0
				}
				return f.returnMachines(in)
			})
			f.bend(getStatus, func(in map[string]any) (string, int) {
				f.returned["leak"] = nil
				return f.getStatus(in)
			})
		},
	},
	{
		name: "ORB: the second return of a machine is rc 1, already pending", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(returnMachines, func(in map[string]any) (string, int) {
				if f.countCalls(returnMachines) > 1 {
					f.machines[0].running = false
					return `{"error":true,"message":"already has pending return request"}`, 1
				}
				return `garbage`, 1
			})
		},
	},
	{
		name: "awsv2: getReturnRequests lists a machine again that we returned", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(getReturnRequests, func(map[string]any) (string, int) {
				list := []object{}
				for _, m := range f.machines {
					if !m.running {
						list = append(list, object{"machine": m.name, "machineId": m.id})
					}
				}
				return asAnswer(object{"requests": list}), 0
			})
		},
		more: func(t *testing.T, f *fake, a *Adapter) {
			if d, _ := a.Describe(t.Context()); len(d.Recalls) > 0 {
				t.Errorf("recalls: %+v", d.Recalls)
			}
		},
	},
	{
		name: "awsv2: backend down at the request, rc 1 with a message and requestId null", state: providers.StateRefused,
		bend: func(f *fake) { f.bend(requestMachines, says(`{"requestId":null,"message":"backend down"}`, 1)) },
	},
	{
		name: "awsv2: backend down for a while at the status, complete_with_error without requests", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(getStatus, func(in map[string]any) (string, int) {
				if f.countCalls(getStatus) < 6 {
					return `{"requestId":null,"status":"complete_with_error","machines":[],"message":"down"}`, 1
				}
				return f.getStatus(in)
			})
		},
	},
	{
		name: "GKE: text with rc 1 at the request", state: providers.StateUnknown,
		bend: func(f *fake) { f.bend(requestMachines, says("Error: connection refused\n", 1)) },
		more: asksFor(1),
	},
	{
		name: "GKE: text with rc 0 at the request", state: providers.StateUnknown,
		bend: func(f *fake) { f.bend(requestMachines, says("ERROR: Command returned empty result\n", 0)) },
		more: asksFor(1),
	},
}

// traps has the rows of the traps in the contract, and of reports from the field.
var traps = []row{
	{
		name: "trap 3: no answer between launch and reply", state: providers.StateUnknown, lost: 1,
		bend: func(f *fake) { f.errs[requestMachines] = errors.New("time limit") },
		more: asksFor(1),
	},
	{
		name: "trap 4: two requests get the same id", units: 1, state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(requestMachines, func(map[string]any) (string, int) {
				f.acquired["12345-77-add"] = append(f.acquired["12345-77-add"], f.launch(1)...)
				return `{"requestId":"12345-77-add"}`, 0
			})
		},
		more: func(t *testing.T, f *fake, a *Adapter) {
			for _, id := range []string{"host/small-8", "host/small-9"} {
				a.Request(t.Context(), askOne(id))
			}
			first, second := f.settled(a, "host/small-8", cluster.Hour), f.settled(a, "host/small-9", cluster.Hour)
			if first.Granted != 1 || second.Granted != 1 || first.Instances[0] == second.Instances[0] {
				t.Errorf("%+v and %+v", first, second)
			}
			f.back(a, "host/small-8", cluster.Hour)
			f.back(a, "host/small-9", cluster.Hour)
		},
	},
	{
		name: "trap 5: complete without machines while the fleet starts", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, poll int) object {
				if poll < 5 {
					return object{"requestId": id, "status": complete, "machines": []object{}}
				}
				return f.status(id)
			})
		},
	},
	{
		name: "trap 6: a return is done as soon as it is accepted", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(returnMachines, func(in map[string]any) (string, int) {
				known, _ := f.named(in)
				f.returned["b"] = known
				return `{"requestId":"b"}`, 0
			})
			f.bend(getStatus, func(in map[string]any) (string, int) {
				var requests []object
				for _, id := range askedIDs(in) {
					status := f.status(id)
					if id == "b" {
						status["machines"] = results(f.returned[id], succeed, succeed)
						f.machines[0].running = f.countCalls(getStatus) < 8
					}
					requests = append(requests, status)
				}
				return asAnswer(object{"requests": requests}), 0
			})
		},
	},
	{
		name: "trap 7: complete_with_error although the machine is good", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, _ int) object {
				return object{"requestId": id, "status": completeWithError, "machines": results(f.acquired[id], succeed, fail)}
			})
		},
	},
	{
		name: "trap 9: machineId empty, the name is the key", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(getStatus, func(in map[string]any) (string, int) {
				stdout, exit := f.getStatus(in)
				for _, m := range f.machines {
					stdout = strings.ReplaceAll(stdout, `"machineId":"`+m.id+`"`, `"machineId":""`)
				}
				return stdout, exit
			})
			f.bend(returnMachines, func(in map[string]any) (string, int) {
				name := in["machines"].([]any)[0].(map[string]any)["name"]
				return f.returnMachines(object{"machines": []any{map[string]any{"machineId": strings.TrimPrefix(name.(string), "host-")}}})
			})
		},
		lost: -1, // by id nobody could know it
	},
	{
		name: "trap 9: numbers, times and nulls of all kinds", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(getStatus, func(in map[string]any) (string, int) {
				stdout, exit := f.getStatus(in)
				stdout = strings.ReplaceAll(stdout, `"launchtime":1767600000`, `"launchTime":"2026-01-05T08:00:00Z"`)
				return strings.ReplaceAll(stdout, `"message":""`, `"message":"None","ncores":"4","publicIpAddress":null`), exit
			})
		},
	},
	{
		name: "trap 10: help text before and a word without line end", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			for _, name := range scripts {
				jsonBecomes(f, name, func(s string) string {
					return "usage: orb [-h] {a,b} ...\n[2026-01-05] INFO [main]\nCommand bc not found!Please install" + s + "\nbye {\n"
				})
			}
		},
	},
	{
		name: "trap 11: Python literals in place of JSON", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			for _, name := range scripts {
				jsonBecomes(f, name, pythonRepr)
			}
		},
	},
	{
		name: "trap 13: the last machine decides the status of the request", units: 2, state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, _ int) object {
				machines := results(f.acquired[id], succeed, fail)
				if f.acquired[id][1].running {
					f.acquired[id][1].running = false
				}
				machines[1]["result"] = fail
				return object{"requestId": id, "status": completeWithError, "machines": machines}
			})
		},
	},
	{
		name: "report 11: two documents with different ids", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(requestMachines, func(map[string]any) (string, int) {
				f.acquired["a"], f.acquired["b"] = f.launch(1), f.launch(1)
				return `{"requestId":"a","message":""}` + "\n" + `{"requestId":"b","message":""}`, 1
			})
		},
	},
	{
		name: "report 13: the answer is printed twice", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			for _, name := range scripts {
				jsonBecomes(f, name, func(s string) string { return s + "\n" + s })
			}
		},
	},
	{
		name: "report 14: a lost connection is answered as an error with rc 0", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.bend(getStatus, func(in map[string]any) (string, int) {
				if n := f.countCalls(getStatus); n > 2 && n < 5 {
					return `{"status":"error","message":"connection lost"}`, 0
				}
				return f.getStatus(in)
			})
		},
	},
	{
		name: "report 16: succeed without a name, which comes later", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, poll int) object {
				status := f.status(id)
				if poll < 3 {
					status["machines"].([]object)[0]["name"] = nil
				}
				return status
			})
		},
		more: func(t *testing.T, f *fake, _ *Adapter) {
			if !slices.ContainsFunc(f.calls, func(c string) bool { return strings.HasPrefix(c, returnMachines) && strings.Contains(c, "host-i-") }) {
				t.Errorf("not returned by name and id: %q", f.calls)
			}
		},
	},
	{
		name: "report 16: succeed without a name for ever", state: providers.StateRefused,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, _ int) object {
				status := f.status(id)
				status["machines"].([]object)[0]["name"] = "None"
				return status
			})
		},
	},
	{
		name: "report 22: complete before the machine runs", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, poll int) object {
				status := f.status(id)
				if poll < 4 {
					status["machines"] = results(f.acquired[id], executing, fail)
				}
				return status
			})
		},
	},
	{
		name: "report 23: one machine twice in an answer", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, _ int) object {
				status := f.status(id)
				status["machines"] = append(status["machines"].([]object), status["machines"].([]object)...)
				return status
			})
		},
	},
	{
		name: "report 20: JSON wrapped within its strings", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			for _, name := range scripts {
				jsonBecomes(f, name, func(s string) string { return strings.ReplaceAll(s, "machineId", "machi\nneId") })
			}
		},
	},
	{
		name: "report 28: requests is an object, keys are spelt otherwise", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			jsonBecomes(f, requestMachines, func(s string) string { return strings.ReplaceAll(s, "requestId", "request_id") })
			f.bend(getStatus, func(in map[string]any) (string, int) {
				ids := askedIDs(in)
				if len(ids) > 1 {
					return `{"message":"one at a time"}`, 1
				}
				return strings.NewReplacer("machineId", "MachineID", "launchtime", "launchTime").Replace(asAnswer(object{"requests": f.status(ids[0])})), 0
			})
		},
	},
	{
		name: "report 29: the machine is absent from the first answers", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, poll int) object {
				if poll < 3 {
					return object{"requestId": id, "status": running, "machines": []object{}}
				}
				return f.status(id)
			})
		},
	},
	{
		name: "report 40: the machine is renamed while it runs", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, poll int) object {
				f.acquired[id][0].name = fmt.Sprintf("name-%d", poll)
				return f.status(id)
			})
		},
	},
	{
		name: "more machines than asked for", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) { f.made = 3 },
		more: onlyOneReturned,
	},
	{
		name: "rc 1 with a request id is tracked", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) { exits(f, requestMachines, 1) },
	},
	{
		name: "a bad machine entry does not void the rest", units: 2, state: providers.StateGranted, granted: 2,
		bend: func(f *fake) {
			statusOfAcquired(f, func(id string, _ int) object {
				list := []any{nil, 7, "x", object{}, object{"result": succeed}, object{"machineId": []any{}, "name": object{}}}
				for _, m := range results(f.acquired[id], succeed, fail) {
					list = append(list, m)
				}
				return object{"requestId": id, "status": complete, "machines": list}
			})
		},
	},
	{
		name: "a poisoned id does not void the others", state: providers.StateGranted, granted: 1,
		bend: func(f *fake) {
			f.acquired["poison"] = nil
			f.bend(getStatus, func(in map[string]any) (string, int) {
				if slices.Contains(askedIDs(in), "poison") {
					return "", 1
				}
				return f.getStatus(in)
			})
			f.bend(requestMachines, func(in map[string]any) (string, int) {
				if f.countCalls(requestMachines) == 1 {
					return `{"requestId":"poison"}`, 0
				}
				return f.requestMachines(in)
			})
			if _, outcome := f.adapter().Request(f.t.Context(), askOne("host/small-0")); outcome.Status != providers.StatusPending {
				f.t.Fatal(outcome)
			}
		},
	},
}

func TestBehaviourObservedOfPlugins(t *testing.T) {
	for _, r := range slices.Concat(matrix, traps) {
		t.Run(r.name, r.test)
	}
}

// test asks for machines, gives them back, and looks what is left.
func (r row) test(t *testing.T) {
	f := newFake(t)
	r.bend(f)
	a := f.adapter()
	in := askOne("host/small-1")
	in.Units = max(r.units, 1)
	a.Request(t.Context(), in)
	state := f.settled(a, in.RequestID, cluster.Hour+cluster.Minute) // over the deadline to join
	if state.Status != r.state || state.Granted != r.granted || int64(len(state.Instances)) != r.granted {
		t.Errorf("after an hour: %+v, want %s of %d", state, r.state, r.granted)
	}
	for _, instance := range state.Instances {
		if strings.Contains(instance.ID, "None") || instance.Name == "" {
			t.Errorf("granted %+v", instance)
		}
	}
	if out := f.back(a, in.RequestID, 3*cluster.Hour); out.Status != cmpOr(r.back, providers.StatusOK) {
		t.Errorf("return: %+v", out)
	}
	if r.more != nil {
		r.more(t, f, a)
	}
	for range 20 {
		f.wait(10 * cluster.Minute)
		a.Describe(t.Context())
	}
	if lost := f.strangers(a); r.lost >= 0 && len(lost) != r.lost {
		t.Errorf("the cloud has %q that we know nothing of, want %d\n%s", lost, r.lost, strings.Join(f.calls, "\n"))
	}
	if left := f.runningIDs(); r.lost >= 0 && len(left) != r.lost {
		t.Errorf("still running: %q\n%s", left, strings.Join(f.calls, "\n"))
	}
	f.expectOnlyGivenReturned()
}

func cmpOr(status, otherwise providers.Status) providers.Status {
	if status == "" {
		return otherwise
	}
	return status
}

// expectOnlyGivenReturned: what goes back is what some answer has told us of, and nothing else.
func (f *fake) expectOnlyGivenReturned() {
	f.t.Helper()
	for _, id := range f.returnedIDs() {
		if id != "" && !slices.ContainsFunc(f.machines, func(m *cloudMachine) bool { return m.id == id && m.listed }) {
			f.t.Errorf("%q was returned, and never given", id)
		}
	}
}

package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/maker"
	"xce.internal/elastic/simulation/mishap"
	"xce.internal/elastic/simulation/timeskip"
	"xce.internal/elastic/workflows"
)

func TestAMachineIsGivenBackUntilItsProviderListsItNoMore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		set  func(*world)
		back string // the machine
		ends string // the host
	}{
		{"it takes its time", func(w *world) { w.makers[cloud].ReturnFor = 5 * time.Minute }, "00:37:02", "00:37:14"},
		{"the answer is lost", func(w *world) {
			w.makers[cloud].Mishap = once(providers.VerbReturn, 1, mishap.Mishap{Kind: mishap.NoAnswer})
		}, "00:32:02", "00:32:12"},
		{"it is not heard for long", func(w *world) {
			w.makers[cloud].Mishap = w.between(providers.VerbReturn, 0, hour, mishap.Mishap{Kind: mishap.NotHeard})
		}, "01:02:36", "01:02:36"},
		{"it is refused for long", func(w *world) {
			w.makers[cloud].Mishap = w.between(providers.VerbReturn, 0, hour, mishap.Mishap{Kind: mishap.Refusal})
		}, "01:02:36", "01:02:36"},
		{"it was said to be back and is not", func(w *world) {
			w.makers[cloud].Sticky = true
			w.h.At(hour, func() { w.makers[cloud].Sticky = false })
		}, "01:02:03", "00:32:02"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(3*hour), func(w *world) {
				test.set(w)
				w.need(10*time.Minute, 8, 10*time.Minute)
			})
			life := w.life(hostA)
			if machines := w.machines(cloud); machines[1] != test.back+" c16-1 i-1 ended" || life[len(life)-1] != test.ends+" returned" {
				t.Errorf("machines %v, life %v", machines, life)
			}
			w.hostsSettled()
		})
	}
}

func TestAnOperatorClosesAHostThatItsProviderDoesNotTakeBack(t *testing.T) {
	t.Parallel()
	var early, gone *orderSent
	w := play(t, newHostScene(4*hour), func(w *world) {
		w.makers[cloud].Mishap = w.between(providers.VerbReturn, 0, 2*hour, mishap.Mishap{Kind: mishap.Refusal})
		w.need(10*time.Minute, 8, 10*time.Minute)
		early = w.order(20*time.Minute, hostA, workflows.UpdateGone, workflows.HostOrder{})
		gone = w.order(hour, hostA, workflows.UpdateGone, workflows.HostOrder{})
	})
	if !strings.Contains(early.answer(), "answers: its jobs would run twice") || gone.answer() != "returned" {
		t.Errorf("early: %s, later: %s", early.answer(), gone.answer())
	}
	w.same("life", w.life(hostA)[3:], "00:32:02 leaving", "01:00:00 returned")
	w.same("machines", w.machines(cloud)[1:], "02:10:03 c16-1 i-1 ended")
	w.hostsSettled()
}

func TestMoreMachinesThanAskedForGoBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		mishap func(mishap.Call) mishap.Mishap
		back   string
	}{
		{"at once", nil, "00:10:02"},
		{"when the list shows them", once(providers.VerbReturn, 1, mishap.Mishap{Kind: mishap.NotHeard}), "00:15:01"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(3*hour), func(w *world) {
				w.makers[cloud].Surplus, w.makers[cloud].Mishap = 1, test.mishap
				w.boots = func(m maker.Machine) boot { b := newBoot(); b.never = m.ID != "i-1"; return b }
				w.need(10*time.Minute, 8, 10*time.Minute)
			})
			w.same("machines", w.machines(cloud)[2:], test.back+" c16-1 i-2 ended", "00:32:02 c16-1 i-1 ended")
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestAnExpectedHostThatItsProviderTakesIsGivenUpWithoutBackoff(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		w.boots = func(m maker.Machine) boot { b := newBoot(); b.after = 10 * time.Minute; return b }
		w.need(10*time.Minute, 8, 10*time.Minute)
		w.h.At(14*time.Minute, func() { w.makers[cloud].Reclaim(hostA, 10*time.Minute) })
		w.h.At(17*time.Minute, func() {
			if c := w.template("c16"); c.Refusals != 0 {
				w.t.Errorf("%+v", c)
			}
		})
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:15:00 leaving", "00:15:01 returned")
	w.hostsSettled()
	w.allDone()
}

// coarse is a host's write that takes ten seconds.
func coarse(activity string) (low, high time.Duration) {
	if activity == activities.LedgerHost {
		return 10 * time.Second, 10 * time.Second
	}
	return 20 * time.Millisecond, 500 * time.Millisecond
}

func TestAHostThatJoinsWhileItIsGivenUpIsDrained(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(w *world) *orderSent{
		"by an operator": func(w *world) *orderSent {
			return w.order(13*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{})
		},
		"since its provider takes it": func(w *world) *orderSent {
			w.h.At(13*time.Minute, func() {
				w.must(w.h.Signal(hostA, workflows.SignalReclaimed, workflows.Reclaimed{By: w.now().Add(cluster.Hour)}))
			})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHostScene(3 * hour)
			s.Latency = coarse
			w := play(t, s, func(w *world) {
				w.boots = func(m maker.Machine) boot {
					b := newBoot()
					b.after = w.scene.Start.Add(13*time.Minute + 2*time.Second).Sub(m.Made)
					return b
				}
				w.need(10*time.Minute, 8, 5*time.Minute)
				if o := say(w); o != nil {
					w.h.At(15*time.Minute, func() {
						if o.answer() != "draining" {
							w.t.Error(o.answer())
						}
					})
				}
			})
			w.same("life", w.life(hostA)[2:], "00:13:02 joined", "00:13:14 draining", "00:18:10 leaving", "00:18:22 returned")
			w.hostsSettled()
			w.allDone()
		})
	}
}

// needsBoth is a job that needs a host that does not exist yet, and a token.
func (w *world) needsBoth(at time.Duration, runs time.Duration) *job {
	return w.needWith(at, cluster.JobSpec{CPUs: 8, Tokens: map[string]int64{"vcs": 1}}, runs)
}

// without answers the lines that do not end like that.
func without(lines []string, end string) []string {
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasSuffix(l, end) })
}

func TestHostAndTokensComeTogetherAndNeitherIsLeftWithoutTheOther(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		set   func(*world)
		start string
		// What went back.
		machines, lent []string
	}{
		{"both are given", func(*world) {}, "00:12:01", []string{"00:32:01 c16-1 i-1 ended"}, []string{"00:32 #1 -1"}},
		{"the host is refused for an hour", func(w *world) {
			w.makers[cloud].Mishap = w.refusing("c16", 0, 30*time.Minute, mishap.Mishap{RetryAfter: hour})
		}, "01:12:03", []string{"01:32:03 c16-2 i-1 ended"}, []string{"00:20 #1 -1", "01:32 #2 -1"}},
		{"the tokens are refused for an hour", func(w *world) {
			w.lenders[pool].Mishap = w.between(providers.VerbRequest, 0, 30*time.Minute, mishap.Mishap{Kind: mishap.Refusal, RetryAfter: hour})
		}, "01:12:03", []string{"00:22:02 c16-1 i-1 ended", "01:32:03 c16-2 i-2 ended"}, []string{"01:32 #2 -1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var j *job
			s := newHostScene(4 * hour)
			s.lenders, s.resources = []string{pool}, []cluster.SharedResource{vcs(0, 8)}
			s.resources[0].Elastic.IdleTime = 10 * cluster.Minute
			w := play(t, s, func(w *world) {
				test.set(w)
				j = w.needsBoth(10*time.Minute, 10*time.Minute)
			})
			if got := seconds(j.started); got != test.start {
				t.Errorf("started at %s, want %s", got, test.start)
			}
			w.same("machines that went back", without(w.machines(cloud), " made"), test.machines...)
			w.same("tokens that went back", without(w.lent(pool), "+1"), test.lent...)
			w.hostsSettled()
			w.settled()
			w.allDone()
		})
	}
}

func TestAHostWhoseHistoryIsLostIsTakenUpFromItsRow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		at   time.Duration
		set  func(*world)
	}{
		{"while the provider decides", 15 * time.Minute, func(w *world) { w.makers[cloud].PendingFor = 10 * time.Minute }},
		{"while the outcome is unknown", 15 * time.Minute, func(w *world) {
			w.makers[cloud].Mishap = func(c mishap.Call) mishap.Mishap {
				if at := w.since(cluster.TimeOf(c.At)); c.Verb == providers.VerbRequest && c.Number == 1 || c.Verb == providers.VerbList && at < 30*time.Minute {
					return mishap.Mishap{Kind: mishap.NoAnswer}
				}
				return mishap.Mishap{}
			}
		}},
		{"while it boots", 11 * time.Minute, func(*world) {}},
		{"while it joins unheard", 11 * time.Minute, func(w *world) {
			w.h.At(11*time.Minute, func() { w.deaf = true })
			w.h.At(13*time.Minute, func() { w.deaf, w.missed = false, true })
		}},
		{"while it runs a job", 25 * time.Minute, func(*world) {}},
		{"while it is idle", 45 * time.Minute, func(*world) {}},
		{"while it drains", 25 * time.Minute, func(w *world) { w.order(20*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{}) }},
		{"while it drains until a deadline", 25 * time.Minute, func(w *world) {
			w.order(20*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{Within: 10 * cluster.Minute, Requeue: true})
		}},
		{"while it is kept", 25 * time.Minute, func(w *world) {
			w.order(20*time.Minute, hostA, workflows.UpdateHold, workflows.HostOrder{Why: "a demo"})
			w.order(2*hour, hostA, workflows.UpdateRelease, workflows.HostOrder{})
		}},
		{"while it is silent", 29 * time.Minute, func(w *world) {
			w.h.At(20*time.Minute, func() { w.agents["i-1"].silent = true })
			w.h.At(40*time.Minute, func() { w.agents["i-1"].silent = false })
		}},
		{"while it goes back", 55 * time.Minute, func(w *world) { w.makers[cloud].ReturnFor = 20 * time.Minute }},
		{"while its return is refused", 55 * time.Minute, func(w *world) {
			w.makers[cloud].Mishap = w.between(providers.VerbReturn, 0, 2*hour, mishap.Mishap{Kind: mishap.Refusal})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newHostScene(4 * hour)
			s.mortal, s.ensured = true, 10*time.Minute
			w := play(t, s, func(w *world) {
				test.set(w)
				w.need(10*time.Minute, 8, 30*time.Minute)
				w.h.At(test.at, func() { w.must(w.h.Signal(hostA, "terminate", nil)) })
			})
			if story := w.report.Workflow(hostA); story.Started.Sub(w.scene.Start) < test.at {
				t.Errorf("the story was not begun anew: %+v", story)
			}
			w.hostsSettled()
			w.allDone()
		})
	}
}

// eventful is half a day with much of what may happen to hosts.
func eventful(w *world) {
	m := w.makers[cloud]
	m.Templates[0].BillingStep = 1800
	m.ReturnFor = 30 * time.Second
	for i := range 6 {
		at := time.Duration(i) * 40 * time.Minute
		w.need(at+10*time.Minute, int64(4+i*5%12), time.Duration(20+i*37%80)*time.Minute)
		w.need(at+25*time.Minute, int64(2+i*3%9), time.Duration(10+i*53%50)*time.Minute)
	}
	w.order(30*time.Minute, hostA, workflows.UpdateHold, workflows.HostOrder{Why: "a demo"})
	w.order(2*hour, hostA, workflows.UpdateRelease, workflows.HostOrder{})
	w.order(100*time.Minute, hostB, workflows.UpdateDrain, workflows.HostOrder{Within: 5 * cluster.Minute, Requeue: true})
	w.h.At(3*hour+time.Minute, func() {
		for _, a := range w.hereAgents() {
			a.silent = true
		}
	})
	w.h.At(3*hour+20*time.Minute, func() {
		for _, a := range w.agents {
			a.silent = false
		}
	})
	w.h.At(4*hour+time.Minute, func() {
		for i, there := range m.Machines("") {
			switch i % 3 {
			case 0:
				m.Reclaim(there.Request, 10*time.Minute)
			case 1:
				m.Vanish(there.Request)
			}
		}
	})
}

// hereAgents are those of the machines that have joined and are there, by machine.
func (w *world) hereAgents() (here []*agent) {
	for _, a := range w.agents {
		if a.here && !a.dead {
			here = append(here, a)
		}
	}
	slices.SortFunc(here, func(a, b *agent) int { return strings.Compare(a.machine.ID, b.machine.ID) })
	return here
}

// lives are the ends of all hosts, without the times.
func (w *world) lives() (lines []string) {
	for _, r := range w.rowsOfHosts {
		lines = append(lines, fmt.Sprintf("%s %s: %s", r.ID, r.State, r.Instance))
	}
	return lines
}

func TestStoriesOfHostsThatAreContinuedAsNewTellTheSame(t *testing.T) {
	t.Parallel()
	run := func(suggest int) *world {
		s := newHostScene(9 * hour)
		s.SuggestContinueAsNew = suggest
		w := play(t, s, eventful)
		w.hostsSettled()
		w.allDone()
		return w
	}
	whole, cut := run(0), run(20)
	cut.same("rows", cut.lives(), whole.lives()...)
	if !slices.ContainsFunc(cut.report.Workflows, func(s timeskip.Workflow) bool { return s.Type == workflows.HostName && s.Runs > 2 }) {
		t.Error("no host was continued as new")
	}
	if len(whole.lives()) < 5 {
		t.Errorf("the story is thin: %v", whole.lives())
	}
}

func TestNothingIsLostWhenActivitiesAndMakersFail(t *testing.T) {
	t.Parallel()
	seeds := uint64(3)
	if racing {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newHostScene(14 * hour)
			s.Seed, s.Faults = seed, faulty
			if seed%3 == 2 {
				s.SuggestContinueAsNew = 60
			}
			w := play(t, s, func(w *world) {
				w.makers[cloud].Mishap = w.hostile(seed, 6*hour)
				eventful(w)
			})
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestAControllerThatIsDownForAWhileStopsNothingForGood(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{10*time.Minute + 2*time.Second, 12 * time.Minute, 41 * time.Minute, 52*time.Minute + 2*time.Second} {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(3*hour), func(w *world) {
				w.need(10*time.Minute, 8, 30*time.Minute)
				w.h.At(at, func() { w.down = true })
				w.h.At(at+10*time.Minute, func() {
					w.down = false
					w.configure() // it starts anew
				})
			})
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestATemporalThatStandsStillLosesNothing(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{10*time.Minute + 5*time.Second, 20 * time.Minute, 48 * time.Minute} {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			s := newHostScene(4 * hour)
			var w *world
			s.Faults = func(timeskip.Attempt) timeskip.Fault {
				if w.deaf {
					return timeskip.NotRun
				}
				return timeskip.None
			}
			play(t, s, func(it *world) {
				w = it
				w.need(10*time.Minute, 8, 30*time.Minute)
				w.h.At(at, func() { w.deaf = true })
				w.h.At(at+20*time.Minute, func() { w.deaf = false })
			})
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestATemplateThatIsWithdrawnInFlightStopsNothing(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{10*time.Minute + time.Second, 11 * time.Minute, 20 * time.Minute} {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(3*hour), func(w *world) {
				w.makers[cloud].PendingFor = 30 * time.Second
				w.need(10*time.Minute, 8, 30*time.Minute)
				w.h.At(at, func() {
					w.makers[cloud].Templates = nil
					w.must(w.h.Signal(workflows.ProviderID(cloud), workflows.SignalCatalogChanged, workflows.Changed{}))
				})
				w.h.At(80*time.Minute, func() { w.makers[cloud].Templates = []maker.Template{c16()} })
			})
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestTheSameSeedTellsTheSameStoryOfHosts(t *testing.T) {
	t.Parallel()
	twice(t, newHostScene(9*hour), eventful)
}

func TestARestoredLedgerThatDoesNotKnowAHostGetsItsMachineBack(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(4*hour), func(w *world) {
		w.need(10*time.Minute, 8, 20*time.Minute)
		w.h.At(hour/2, func() { w.open() })
	})
	w.same("machines", w.machines(cloud), "00:10:02 c16-1 i-1 made", "00:32:02 c16-1 i-1 ended")
	w.same("strays", w.kinds(api.KindStray))
}

func TestAHostThatIsBusyForLongCostsFewSteps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		drain bool
		most  int
	}{
		{"it just runs", false, 32},           // a look in ten minutes
		{"it drains all the while", true, 62}, // a look in five
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(5*hour), func(w *world) {
				w.need(10*time.Minute, 8, 4*hour)
				if test.drain {
					w.order(20*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{})
				}
			})
			steps := 0
			for _, e := range w.report.Trace {
				if e.Kind == timeskip.KindActivity && e.Workflow == hostA {
					steps++
				}
			}
			if steps > test.most {
				t.Errorf("%d steps", steps)
			}
			w.hostsSettled()
		})
	}
}

func TestAListThatIsHardToBelieveIsNotBelievedByLostHostsEither(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		for range 6 {
			w.need(10*time.Minute, 16, 90*time.Minute)
		}
		w.h.At(hour/2, func() {
			w.makers[cloud].Lists = func([]providers.Grant) []providers.Grant { return nil }
			for _, a := range w.agents {
				a.silent = true
			}
		})
		w.h.At(hour, func() {
			w.makers[cloud].Lists = nil
			for _, a := range w.agents {
				a.silent = false
			}
		})
	})
	for _, j := range w.jobs {
		if j.starts != 1 {
			t.Errorf("job %d was started %d times", j.id, j.starts)
		}
	}
	w.hostsSettled()
	w.allDone()
}

// chaos ends stories by hand, takes the controller away for a while, and has the
// provisioner not carry on what changes, again and again.
func (w *world) chaos(seed uint64, lasts time.Duration) {
	chance := rand.New(rand.NewPCG(seed, 7))
	for at := 11 * time.Minute; at < lasts; at += time.Duration(5+chance.IntN(15)) * time.Minute {
		what, pause, n := chance.IntN(3), time.Duration(1+chance.IntN(6))*time.Minute, chance.IntN(8)+1
		w.h.At(at, func() {
			switch what {
			case 0:
				w.signal(fmt.Sprintf("host/c16-%d", n), "terminate", nil)
			case 1:
				w.down = true
				w.h.After(pause, func() { w.down = false })
			case 2:
				w.deaf = true
				w.h.After(pause, func() { w.deaf, w.missed = false, true })
			}
		})
	}
}

func TestNothingIsLostWhateverEndsOrStandsStill(t *testing.T) {
	t.Parallel()
	seeds := uint64(2)
	if racing {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newHostScene(14 * hour)
			s.Seed, s.mortal, s.ensured = seed, true, 10*time.Minute
			s.hosts.ReturnLost, s.hosts.MaxLifetime = seed%2 == 1, 100*cluster.Minute
			w := play(t, s, func(w *world) {
				w.makers[cloud].Mishap = w.hostile(seed, 6*hour)
				w.chaos(seed, 6*hour)
				eventful(w)
			})
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestLostHostsThatAreGivenBackTogetherAreNotDoubtedForEver(t *testing.T) {
	t.Parallel()
	s := newHostScene(5 * hour)
	s.hosts.ReturnLost = true
	w := play(t, s, func(w *world) {
		w.makers[cloud].ReturnFor = time.Minute // and then the list lacks them all
		for range 3 {
			w.need(10*time.Minute, 16, hour)
		}
		w.h.At(20*time.Minute, func() {
			for _, a := range w.agents {
				a.silent = true
			}
		})
	})
	for _, id := range []string{hostA, hostB, "host/c16-3"} {
		if row := w.rowsOfHosts[slices.IndexFunc(w.rowsOfHosts, func(r cluster.ElasticHost) bool { return r.ID == id })]; w.since(row.Closed) > 40*time.Minute {
			t.Errorf("%s is closed at %s: %s", id, row.Closed, row.Why)
		}
	}
	w.hostsSettled()
	w.allDone()
}

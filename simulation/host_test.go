package simulation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/maker"
	"xce.internal/elastic/simulation/mishap"
	"xce.internal/elastic/workflows"
)

func TestAHostComesForAJobAndGoesWhenItHasBeenIdleForTenMinutes(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(2*hour), func(w *world) {
		w.need(10*time.Minute, 8, 30*time.Minute)
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:52:02 leaving", "00:52:03 returned")
	w.same("machines", w.machines(cloud), "00:10:02 c16-1 i-1 made", "00:52:02 c16-1 i-1 ended")
	w.hostsSettled()
	w.allDone()
}

// refusing refuses the requests for hosts of a template for a while.
func (w *world) refusing(template string, from, to time.Duration, m mishap.Mishap) func(mishap.Call) mishap.Mishap {
	m.Kind = mishap.Refusal
	all := w.between(providers.VerbRequest, from, to, m)
	return func(c mishap.Call) mishap.Mishap {
		if strings.HasPrefix(c.Request, "host/"+template+"-") {
			return all(c)
		}
		return mishap.Mishap{}
	}
}

// asked are the instants at which hosts of a template were intended.
func (w *world) asked(template string) (at []string) {
	for _, r := range w.rowsOfHosts {
		if r.Template == template {
			at = append(at, seconds(w.since(r.Intended)))
		}
	}
	return at
}

// template reads what is known of a template.
func (w *world) template(name string) cluster.Template {
	catalog, err := w.service.Catalog(w.t.Context())
	w.must(err)
	for _, t := range catalog.Templates {
		if t.Name == name {
			return t.Template
		}
	}
	return cluster.Template{}
}

func TestWhereATemplateIsRefusedTheNextIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(2*hour), func(w *world) {
		m := w.makers[cloud]
		m.Templates = append(m.Templates, named(c16(), "c17", 900_000))
		m.Mishap = w.refusing("c16", 0, hour, mishap.Mishap{RetryAfter: hour})
		w.need(10*time.Minute, 8, 10*time.Minute)
		w.need(50*time.Minute, 8, 10*time.Minute) // c16 is let alone still
		w.need(75*time.Minute, 8, 10*time.Minute) // and not any more
	})
	w.same("asked of the first", w.asked("c16"), "00:10:01", "01:15:00")
	w.same("asked of the second", w.asked("c17"), "00:10:03", "00:50:00")
	w.hostsSettled()
	w.allDone()
}

func TestWhereAProviderRefusesTheNextIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	s := newHostScene(2 * hour)
	s.makers = append(s.makers, cloudB)
	w := play(t, s, func(w *world) {
		w.makers[cloudB].Templates[0] = named(c16(), "c17", 900_000)
		w.makers[cloud].Mishap = w.refusing("c16", 0, hour, mishap.Mishap{RetryAfter: hour})
		w.need(10*time.Minute, 8, 10*time.Minute)
	})
	w.same("asked of the first", w.asked("c16"), "00:10:01")
	w.same("asked of the second", w.asked("c17"), "00:10:02")
	w.hostsSettled()
	w.allDone()
}

func TestATemplateThatIsRefusedAgainAndAgainIsLetAloneLongerAndLonger(t *testing.T) {
	t.Parallel()
	s := newHostScene(3 * hour)
	s.sessions = 10 * time.Second
	w := play(t, s, func(w *world) {
		w.makers[cloud].Mishap = w.refusing("c16", 0, 30*time.Minute, mishap.Mishap{})
		w.need(10*time.Minute, 8, 10*time.Minute)
		w.h.At(42*time.Minute+time.Second, func() {
			if c := w.template("c16"); c.Refusals != 6 {
				w.t.Errorf("%d refusals in a row, of which a grant forgets none: a host must join", c.Refusals)
			}
		})
		w.h.At(hour, func() {
			if c := w.template("c16"); c.Refusals != 0 {
				w.t.Errorf("%d refusals in a row after one has joined", c.Refusals)
			}
		})
	})
	w.same("asked", w.asked("c16"), "00:10:01", "00:10:40", "00:11:50", "00:14:00", "00:18:10", "00:26:20", "00:42:30")
	w.hostsSettled()
	w.allDone()
}

func TestAnOperatorHasAProviderTriedAgainAtOnce(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(2*hour), func(w *world) {
		w.makers[cloud].Mishap = w.refusing("c16", 0, 11*time.Minute, mishap.Mishap{RetryAfter: 12 * hour})
		w.need(10*time.Minute, 8, 10*time.Minute)
		w.h.At(30*time.Minute, func() {
			w.must(w.service.RetryProvider(w.t.Context(), "admin/eve", cloud))
			w.kick()
		})
	})
	w.same("asked", w.asked("c16"), "00:10:01", "00:30:00")
	w.hostsSettled()
	w.allDone()
}

func TestAHostMayBeDecidedUponLater(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(2*hour), func(w *world) {
		w.makers[cloud].PendingFor = 20 * time.Minute
		w.need(10*time.Minute, 8, 10*time.Minute)
		w.h.At(20*time.Minute, func() {
			if h := w.story(hostA); h.Chapter != workflows.Polling || !strings.Contains(h.WaitsFor, "decision") {
				w.t.Errorf("%s, waits for %s", h.Chapter, h.WaitsFor)
			}
		})
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:30:14 expected", "00:32:02 joined", "00:52:02 leaving", "00:52:03 returned")
	w.same("asked", w.asked("c16"), "00:10:01")
	w.hostsSettled()
	w.allDone()
}

func TestAHostThatIsThereBeforeItIsExpectedComesAgain(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]bool{"with a certificate": false, "with its token": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHostScene(2 * hour)
			s.authority = newAuthority(t)
			w := play(t, s, func(w *world) {
				w.makers[cloud].PendingFor = 22 * time.Minute
				w.boots = func(maker.Machine) boot { b := newBoot(); b.after, b.token = 5*time.Second, token; return b }
				w.need(10*time.Minute, 8, 10*time.Minute)
			})
			w.same("life", w.life(hostA)[:3], "00:10:01 requested", "00:35:14 expected", "00:35:17 joined")
			w.same("refused", w.turnedAway())
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestAMachineWithACertificateOfItsOwnJoinsUnderItsName(t *testing.T) {
	t.Parallel()
	for name, pending := range map[string]time.Duration{"when it is expected": 0, "before it is expected": 22 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(3*hour), func(w *world) {
				w.makers[cloud].Named, w.makers[cloud].PendingFor = true, pending
				w.boots = func(maker.Machine) boot { b := newBoot(); b.after, b.own = 5*time.Second, true; return b }
				w.need(10*time.Minute, 8, 40*time.Minute)
			})
			life := w.life(hostA)
			if len(life) != 5 || !strings.HasSuffix(life[2], "joined") || w.rowsOfHosts[0].Name != "ip-10-0-0-1" {
				t.Errorf("%s: life %v", w.rowsOfHosts[0].Name, life)
			}
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestANameIsUsedAgainByAnotherMachine(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"with a certificate of its own": true, "with its token": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHostScene(4 * hour)
			s.authority = newAuthority(t)
			w := play(t, s, func(w *world) {
				w.makers[cloud].Named, w.makers[cloud].PendingFor = true, 5*time.Minute
				w.boots = func(maker.Machine) boot { b := newBoot(); b.after, b.own, b.token = time.Second, own, !own; return b }
				w.need(10*time.Minute, 8, 10*time.Minute)
				w.need(90*time.Minute, 8, 10*time.Minute)
			})
			w.same("asked", w.asked("c16"), "00:10:01", "01:30:00")
			for _, r := range w.rowsOfHosts {
				if r.Name != "ip-10-0-0-1" || len(w.life(r.ID)) != 5 {
					t.Errorf("%s: %s, life %v", r.ID, r.Name, w.life(r.ID))
				}
			}
			w.same("refused", w.turnedAway())
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestARequestForAHostOfUnknownOutcomeIsSettledByTheList(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		m       mishap.Mishap
		settled string
		made    string
	}{
		{"acted", mishap.Mishap{Kind: mishap.NoAnswer}, "00:10:12 expected", "00:10:02 c16-1 i-1 made"},
		{"not acted", mishap.Mishap{Kind: mishap.NotHeard}, "00:10:32 refused", "00:10:34 c16-2 i-1 made"},
		{"acted before the cancel", mishap.Mishap{Kind: mishap.Late, After: 5 * time.Second}, "00:10:12 expected", "00:10:07 c16-1 i-1 made"},
		{"acted after the cancel", mishap.Mishap{Kind: mishap.Late, After: hour}, "00:10:32 refused", "00:10:34 c16-2 i-1 made"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(3*hour), func(w *world) {
				w.makers[cloud].Mishap = once(providers.VerbRequest, 1, test.m)
				w.need(10*time.Minute, 8, 10*time.Minute)
			})
			w.same("life", w.life(hostA)[:2], "00:10:01 requested", test.settled)
			if machines := w.machines(cloud); len(machines) != 2 || machines[0] != test.made {
				t.Errorf("machines %v", machines)
			}
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestAHostThatNeverJoinsGoesBackAndItsTemplateIsLetAlone(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(2*hour), func(w *world) {
		m := w.makers[cloud]
		m.Templates = append(m.Templates, named(c16(), "c17", 900_000))
		w.boots = func(m maker.Machine) boot {
			b := newBoot()
			b.never = m.Template == "c16"
			return b
		}
		w.need(10*time.Minute, 8, 10*time.Minute)
		w.h.At(26*time.Minute, func() {
			if c := w.template("c16"); c.Refusals != 1 || c.BackoffUntil == 0 {
				w.t.Errorf("%+v", c)
			}
		})
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:25:02 leaving", "00:25:02 returned")
	w.same("asked", w.asked("c17"), "00:25:02")
	w.hostsSettled()
	w.allDone()
}

func TestAHostMayJoinAtTheLastMomentAndNotLater(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		after time.Duration
		life  string
	}{
		{14*time.Minute + 59*time.Second, "00:25:01 joined"},
		{15*time.Minute + time.Second, "00:25:02 leaving"},
	} {
		t.Run(test.after.String(), func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(2*hour), func(w *world) {
				w.makers[cloud].ReturnFor = time.Minute
				w.boots = func(m maker.Machine) boot {
					b := newBoot()
					if m.Request == hostA {
						b.after = test.after
					}
					return b
				}
				w.need(10*time.Minute, 8, 10*time.Minute)
			})
			if life := w.life(hostA); len(life) < 3 || life[2] != test.life {
				t.Errorf("life %v", life)
			}
			if a := w.agents["i-1"]; a.joined != strings.Contains(test.life, "joined") {
				t.Errorf("it was told %q", a.turnedAway)
			}
			w.hostsSettled()
			w.allDone()
		})
	}
}

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAHostJoinsWithItsTokenOnce(t *testing.T) {
	t.Parallel()
	s := newHostScene(2 * hour)
	s.authority = newAuthority(t)
	w := play(t, s, func(w *world) {
		w.boots = func(maker.Machine) boot {
			b := newBoot()
			b.token = true
			return b
		}
		w.need(10*time.Minute, 8, 30*time.Minute)
		w.h.At(20*time.Minute, func() {
			thief := *w.agents["i-1"]
			thief.boot.has.Instance, thief.boot.token = "another", true
			if err := w.knock(&thief); err == nil || !strings.Contains(err.Error(), "has been used by another") {
				w.t.Errorf("a second use of the token is answered %v", err)
			}
		})
	})
	w.same("refused", w.turnedAway(), "00:20 host/c16-1: the token of host host/c16-1 has been used by another")
	w.same("life", w.life(hostA)[2:4], "00:12:02 joined", "00:52:02 leaving")
	w.hostsSettled()
	w.allDone()
}

func TestATokenIsNoGoodOnceItsHostIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newHostScene(2 * hour)
	s.authority = newAuthority(t)
	w := play(t, s, func(w *world) {
		w.makers[cloud].ReturnFor = 10 * time.Minute
		w.boots = func(m maker.Machine) boot {
			b := newBoot()
			b.token = true
			if m.Request == hostA {
				b.after = 20 * time.Minute
			}
			return b
		}
		w.need(10*time.Minute, 8, 10*time.Minute)
	})
	w.same("refused", w.turnedAway(), "00:30 host/c16-1: the token is not one of host host/c16-1, or is good no more")
	w.hostsSettled()
	w.allDone()
}

func TestAHostIsKeptForItsMinimumHoldAndToTheEndOfItsBillingStep(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		hold, step time.Duration
		runs       time.Duration
		leaves     string
	}{
		{"idle within its hold", hour, 0, 10 * time.Minute, "01:10:02"},
		{"busy at the end of its hold", hour, 0, 55 * time.Minute, "01:17:02"},
		{"shortly before the next step", 0, hour, 10 * time.Minute, "01:05:02"},
		{"idle just after a step began", 0, hour, 57 * time.Minute, "02:05:02"},
		{"hold and step", 90 * time.Minute, hour, 10 * time.Minute, "02:05:02"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(4*hour), func(w *world) {
				c := &w.makers[cloud].Templates[0]
				c.MinimumHold, c.BillingStep = int64(test.hold/time.Second), int64(test.step/time.Second)
				w.need(10*time.Minute, 8, test.runs)
			})
			if life := w.life(hostA); life[3] != test.leaves+" leaving" {
				t.Errorf("life %v, want it to leave at %s", life, test.leaves)
			}
			w.hostsSettled()
		})
	}
}

func TestAHostThatGetsAJobShortlyBeforeItsIdleTimeIsOverStays(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		w.need(10*time.Minute, 8, 10*time.Minute) // until 22:02
		w.need(31*time.Minute+58*time.Second, 8, 20*time.Minute)
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "01:01:58 leaving", "01:01:58 returned")
	w.same("asked", w.asked("c16"), "00:10:01")
	w.hostsSettled()
	w.allDone()
}

func TestAnOperatorKeepsAHostUntilItIsReleased(t *testing.T) {
	t.Parallel()
	var mute, kept, again, released *orderSent
	w := play(t, newHostScene(6*hour), func(w *world) {
		w.need(10*time.Minute, 8, 10*time.Minute)
		mute = w.order(14*time.Minute, hostA, workflows.UpdateHold, workflows.HostOrder{})
		kept = w.order(15*time.Minute, hostA, workflows.UpdateHold, workflows.HostOrder{Why: "a demo"})
		again = w.order(16*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{})
		released = w.order(4*hour, hostA, workflows.UpdateRelease, workflows.HostOrder{})
		w.h.At(2*hour, func() {
			if h := w.story(hostA); h.WaitsFor != "its release by an operator" {
				w.t.Errorf("it waits for %s", h.WaitsFor)
			}
		})
	})
	for i, o := range []*orderSent{mute, kept, again, released} {
		want := []string{"refused: say why", "kept", "refused: host host/c16-1 is kept by admin/eve (a demo); release it first", "joined"}[i]
		if !strings.HasPrefix(o.answer(), want) {
			t.Errorf("wish %d: %s, want %s", i, o.answer(), want)
		}
	}
	w.same("life", w.life(hostA)[2:], "00:12:02 joined", "04:00:00 leaving", "04:00:00 returned")
	w.hostsSettled()
}

func TestADrainingHostLeavesAfterItsLastJob(t *testing.T) {
	t.Parallel()
	var drained *orderSent
	w := play(t, newHostScene(3*hour), func(w *world) {
		w.need(10*time.Minute, 8, hour)
		drained = w.order(20*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{Why: "maintenance"})
		w.need(30*time.Minute, 8, 10*time.Minute) // would fit
		w.h.At(40*time.Minute, func() {
			if h := w.story(hostA); h.WaitsFor != "the last job" {
				w.t.Errorf("it waits for %s", h.WaitsFor)
			}
		})
	})
	if drained.answer() != "draining" {
		t.Error(drained.answer())
	}
	w.same("life", w.life(hostA)[2:], "00:12:02 joined", "00:20:00 draining", "01:12:02 leaving", "01:12:02 returned")
	w.same("asked", w.asked("c16"), "00:10:01", "00:30:01")
	w.hostsSettled()
	w.allDone()
}

func TestWhatRunsAtADrainsDeadlineRunsOnOrWaitsAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		requeue bool
		leaves  string
		starts  int
	}{
		{"it runs on", false, "01:12:02", 1},
		{"it waits again", true, "00:40:02", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var j *job
			w := play(t, newHostScene(4*hour), func(w *world) {
				j = w.need(10*time.Minute, 8, hour)
				w.order(20*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{Within: 20 * cluster.Minute, Requeue: test.requeue})
			})
			if life := w.life(hostA); life[4] != test.leaves+" leaving" {
				t.Errorf("life %v", life)
			}
			if j.starts != test.starts {
				t.Errorf("the job was started %d times", j.starts)
			}
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestADrainIsUndoneAsLongAsNoJobWasToldToStop(t *testing.T) {
	t.Parallel()
	var early, late *orderSent
	w := play(t, newHostScene(4*hour), func(w *world) {
		w.need(10*time.Minute, 8, hour)
		w.order(20*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{Within: 20 * cluster.Minute, Requeue: true})
		early = w.order(25*time.Minute, hostA, workflows.UpdateUndrain, workflows.HostOrder{})
		w.order(45*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{Requeue: true})
		late = w.order(45*time.Minute+time.Second, hostA, workflows.UpdateUndrain, workflows.HostOrder{})
	})
	if early.answer() != "joined" || !strings.Contains(late.answer(), "its jobs have been told to stop") {
		t.Errorf("early: %s, late: %s", early.answer(), late.answer())
	}
	w.same("life", w.life(hostA)[2:6], "00:12:02 joined", "00:20:00 draining", "00:25:00 joined", "00:45:00 draining")
	w.hostsSettled()
	w.allDone()
}

func TestADrainIsDoneOrRefusedInEveryState(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		at     time.Duration
		set    func(*world)
		answer string
		last   string
	}{
		{
			"while the provider decides", 12 * time.Minute, func(w *world) { w.makers[cloud].PendingFor = 20 * time.Minute },
			"refused: host host/c16-1 is requested: there is no machine yet", "returned",
		},
		{"before it has joined", 11 * time.Minute, func(*world) {}, "leaving", "00:11:00 returned"},
		{"while it runs a job", 15 * time.Minute, func(*world) {}, "draining", "00:22:03 returned"},
		{"while it is idle", 25 * time.Minute, func(*world) {}, "draining", "00:25:00 returned"},
		{
			"while it drains", 15 * time.Minute, func(w *world) { w.order(14*time.Minute, hostA, workflows.UpdateDrain, workflows.HostOrder{}) },
			"draining", "00:22:03 returned",
		},
		{
			"while the provider takes it", 17 * time.Minute, func(w *world) {
				w.h.At(14*time.Minute, func() { w.makers[cloud].Reclaim(hostA, 30*time.Minute) })
			}, "refused: host host/c16-1 drains already, because cloud takes the machine back", "00:22:03 returned",
		},
		{
			"on its way back", 33 * time.Minute, func(w *world) { w.makers[cloud].ReturnFor = 10 * time.Minute },
			"refused: host host/c16-1 is leaving: it is too late for that", "returned",
		},
		{"when it is gone", 50 * time.Minute, func(*world) {}, "refused: ", "00:32:02 returned"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var o *orderSent
			w := play(t, newHostScene(3*hour), func(w *world) {
				test.set(w)
				w.need(10*time.Minute, 8, 10*time.Minute)
				o = w.order(test.at, hostA, workflows.UpdateDrain, workflows.HostOrder{})
			})
			if !strings.HasPrefix(o.answer(), test.answer) {
				t.Errorf("answer %s, want %s", o.answer(), test.answer)
			}
			if life := w.life(hostA); !strings.HasSuffix(life[len(life)-1], test.last) {
				t.Errorf("life %v, want it to end with %s", life, test.last)
			}
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestAHostIsDrainedAtTheEndOfItsLifetime(t *testing.T) {
	t.Parallel()
	s := newHostScene(6 * hour)
	s.hosts.MaxLifetime = 2 * cluster.Hour
	w := play(t, s, func(w *world) {
		for i := range 8 {
			w.need(10*time.Minute+time.Duration(i)*30*time.Minute, 8, 40*time.Minute)
		}
	})
	w.same("life", w.life(hostA)[2:], "00:12:02 joined", "02:12:02 draining", "02:50:00 leaving", "02:50:00 returned")
	w.hostsSettled()
	w.allDone()
}

func TestASilentHostIsSuspectThenLostAndWellWhenItAnswers(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		j := w.need(10*time.Minute, 8, hour)
		w.h.At(20*time.Minute, func() { w.agents["i-1"].silent = true })
		w.h.At(35*time.Minute, func() { w.agents["i-1"].silent = false })
		w.h.At(34*time.Minute, func() {
			if h := w.story(hostA); h.WaitsFor != "word of a host that does not answer" || j.starts != 1 {
				w.t.Errorf("it waits for %s; %d starts", h.WaitsFor, j.starts)
			}
		})
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:20:00 joined suspect", "00:24:00 joined lost", "00:24:00 draining lost", "00:35:00 draining", "00:35:00 joined", "01:22:02 leaving", "01:22:03 returned")
	w.hostsSettled()
	w.allDone()
}

func TestAnOldWordThatAHostIsLostDrainsNoHostThatIsWell(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		w.need(10*time.Minute, 8, hour)
		w.h.At(20*time.Minute, func() {
			w.must(w.h.Signal(hostA, workflows.SignalHealth, workflows.HostHealth{Health: cluster.Lost}))
		})
		w.h.At(21*time.Minute, func() {
			if row := w.rowOf(hostA); row.State != cluster.HostJoined || row.Drain != nil {
				w.t.Errorf("it is %s: %s", row.State, row.Why)
			}
		})
	})
	w.hostsSettled()
	w.allDone()
}

func TestASuspectHostThatAnswersAgainIsNotDrained(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		w.need(10*time.Minute, 8, hour)
		w.h.At(20*time.Minute+10*time.Second, func() { w.agents["i-1"].silent = true })
		w.h.At(22*time.Minute+10*time.Second, func() { w.agents["i-1"].silent = false })
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:21:00 joined suspect", "00:23:00 joined", "01:22:02 leaving", "01:22:03 returned")
	w.hostsSettled()
	w.allDone()
}

func TestTheJobsOfALostHostWaitAgainOnceItsProviderHasItNoMore(t *testing.T) {
	t.Parallel()
	var j *job
	w := play(t, newHostScene(3*hour), func(w *world) {
		j = w.need(10*time.Minute, 8, 30*time.Minute)
		w.h.At(20*time.Minute, func() { w.makers[cloud].Vanish(hostA) })
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:20:00 joined suspect", "00:20:12 returned")
	if j.starts != 2 {
		t.Errorf("the job was started %d times", j.starts)
	}
	w.hostsSettled()
	w.allDone()
}

func TestALostHostWithJobsThatItsProviderStillHasWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	var j *job
	var gone *orderSent
	w := play(t, newHostScene(8*hour), func(w *world) {
		j = w.need(10*time.Minute, 8, 30*time.Minute)
		w.h.At(20*time.Minute, func() { w.agents["i-1"].silent = true })
		w.h.At(5*hour-time.Minute, func() {
			if row := w.rowOf(hostA); row.State != cluster.HostDraining || j.starts != 1 {
				w.t.Errorf("it is %s, the job was started %d times", row.State, j.starts)
			}
		})
		w.h.At(5*hour-time.Second, func() { w.agents["i-1"].dead = true })
		gone = w.order(5*hour, hostA, workflows.UpdateGone, workflows.HostOrder{})
	})
	if gone.answer() != "returned" || j.starts != 2 {
		t.Errorf("%s, %d starts", gone.answer(), j.starts)
	}
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:20:00 joined suspect", "00:24:00 joined lost", "00:24:00 draining lost", "05:00:00 returned")
	w.same("machines", w.machines(cloud), "00:10:02 c16-1 i-1 made", "05:00:01 c16-2 i-2 made", "05:10:03 c16-1 i-1 ended", "05:42:02 c16-2 i-2 ended")
	w.hostsSettled()
	w.allDone()
}

func TestAHostThatWasGivenUpIsTurnedAwayWhenItComesBack(t *testing.T) {
	t.Parallel()
	var j *job
	w := play(t, newHostScene(3*hour), func(w *world) {
		j = w.need(10*time.Minute, 8, 30*time.Minute)
		w.h.At(20*time.Minute, func() { w.agents["i-1"].silent = true })
		w.order(30*time.Minute, hostA, workflows.UpdateGone, workflows.HostOrder{})
		w.h.At(30*time.Minute, func() { w.forgiven = true })
		w.h.At(33*time.Minute, func() { w.agents["i-1"].silent = false })
	})
	if a := w.agents["i-1"]; a.turnedAway != "host host/c16-1 is returned and cannot join" || j.starts != 2 {
		t.Errorf("it was told %q; %d starts", a.turnedAway, j.starts)
	}
	w.hostsSettled()
	w.allDone()
}

func TestALostHostWithoutJobsGoesBack(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		w.scene.hosts.IdleTime = cluster.Hour
		w.configure()
		w.need(10*time.Minute, 8, 10*time.Minute)
		w.h.At(24*time.Minute, func() { w.agents["i-1"].silent = true })
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:24:00 joined suspect", "00:28:00 joined lost", "00:28:00 draining lost", "00:28:00 leaving", "00:28:00 returned")
	w.hostsSettled()
}

func TestALostHostWithJobsIsReturnedWhereTheClusterWantsThat(t *testing.T) {
	t.Parallel()
	s := newHostScene(5 * hour)
	s.hosts.ReturnLost = true
	var j *job
	w := play(t, s, func(w *world) {
		j = w.need(10*time.Minute, 8, 30*time.Minute)
		w.h.At(20*time.Minute, func() { w.agents["i-1"].silent = true })
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:20:00 joined suspect", "00:24:00 joined lost", "00:24:00 draining lost", "00:24:00 returned")
	if j.starts != 2 {
		t.Errorf("the job was started %d times", j.starts)
	}
	w.hostsSettled()
	w.allDone()
}

func TestAHostThatItsProviderTakesIsEmptyByThen(t *testing.T) {
	t.Parallel()
	var j *job
	w := play(t, newHostScene(5*hour), func(w *world) {
		j = w.need(10*time.Minute, 8, hour)
		w.h.At(18*time.Minute, func() { w.makers[cloud].Reclaim(hostA, 10*time.Minute) })
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:20:01 draining", "00:27:01 leaving", "00:27:01 returned")
	w.same("machines", w.machines(cloud)[:2], "00:10:02 c16-1 i-1 made", "00:27:01 c16-1 i-1 ended")
	if j.starts != 2 {
		t.Errorf("the job was started %d times", j.starts)
	}
	w.hostsSettled()
	w.allDone()
}

func TestAHostThatIsTakenBeforeItsJobsHaveStoppedIsGone(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(5*hour), func(w *world) {
		w.need(10*time.Minute, 8, hour)
		w.h.At(19*time.Minute+50*time.Second, func() { w.makers[cloud].Reclaim(hostA, 12*time.Second) })
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:20:01 draining", "00:21:00 draining suspect", "00:25:11 returned")
	w.hostsSettled()
	w.allDone()
}

func TestAnOrphanGoesBackAfterItsGraceAndNotBefore(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		w.h.At(21*time.Minute, func() { w.makers[cloud].Plant("host/c16-77", "c16") })
	})
	w.same("machines", w.machines(cloud), "00:21:00 c16-77 i-1 made", "00:40:01 c16-77 i-1 ended")
	w.same("strays", w.kinds(api.KindStray), "00:30 host/c16-77: cloud lists a host of c16 that no open host stands for; it goes back in 5m0.631s unless it is gone by then", "00:40 host/c16-77: cloud listed a host of c16 that no open host stands for; given back: ok")
	w.hostsSettled()
}

func TestAMachineOfARequestThatIsNotSettledIsNoOrphan(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		m := w.makers[cloud]
		m.Mishap = func(c mishap.Call) mishap.Mishap {
			at := w.since(cluster.TimeOf(c.At))
			switch {
			case c.Verb == providers.VerbRequest:
				return mishap.Mishap{Kind: mishap.NoAnswer}
			case c.Verb == providers.VerbList && at < hour && at.Truncate(5*time.Minute)+2*time.Second < at:
				return mishap.Mishap{Kind: mishap.NotHeard} // the story's own looks; surveys are heard
			}
			return mishap.Mishap{}
		}
		w.boots = func(maker.Machine) boot { b := newBoot(); b.after = 55 * time.Minute; return b }
		w.need(10*time.Minute+30*time.Second, 8, 10*time.Minute)
		w.h.At(59*time.Minute, func() {
			if row := w.rowOf(hostA); row.State != cluster.HostRequested {
				w.t.Errorf("it is %s", row.State)
			}
		})
	})
	w.same("strays", w.kinds(api.KindStray))
	w.same("life", w.life(hostA), "00:10:30 requested", "01:01:04 expected", "01:05:31 joined", "01:25:31 leaving", "01:25:31 returned")
	w.hostsSettled()
	w.allDone()
}

func TestAMachineThatWasJustMadeNeedNotBeListedYet(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		m := w.makers[cloud]
		m.Lists = func(all []providers.Grant) []providers.Grant {
			return slices.DeleteFunc(all, func(g providers.Grant) bool { return w.h.Now().Sub(g.Since) < time.Minute })
		}
		w.need(10*time.Minute, 8, 10*time.Minute)
		w.h.At(10*time.Minute+5*time.Second, func() {
			w.must(w.h.Signal(workflows.ProviderID(cloud), workflows.SignalCatalogChanged, workflows.Changed{}))
		})
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:32:02 leaving", "00:32:02 returned")
	w.hostsSettled()
}

func TestAGhostIsClosedAfterTwoLooks(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(3*hour), func(w *world) {
		w.need(10*time.Minute, 16, 2*hour)
		w.need(10*time.Minute, 16, 2*hour)
		w.need(10*time.Minute, 16, 2*hour)
		w.h.At(22*time.Minute, func() { w.makers[cloud].Vanish(hostB) })
	})
	w.same("life", w.life(hostB), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:22:00 joined suspect", "00:25:11 returned")
	w.hostsSettled()
}

func TestAnOperatorMayTakeAListAtItsWord(t *testing.T) {
	t.Parallel()
	var jobs []*job
	w := play(t, newHostScene(4*hour), func(w *world) {
		for range 6 {
			jobs = append(jobs, w.need(10*time.Minute, 16, hour))
		}
		w.h.At(hour/2, func() {
			for n := range 6 {
				w.makers[cloud].Vanish(workflows.HostID("c16", int64(n+1)))
			}
		})
		w.h.At(hour, func() {
			for _, j := range jobs {
				if j.starts != 1 {
					w.t.Errorf("job %d was started %d times on the word of such a list", j.id, j.starts)
				}
			}
			w.must(w.h.Signal(workflows.ProviderID(cloud), workflows.SignalBelieve, struct{}{}))
		})
		w.h.At(hour+5*time.Minute, func() {
			if p := w.storyOf(cloud); p.Trouble != "" || p.Hosts.Believe {
				w.t.Errorf("the provider's trouble is %q, it is still to believe: %t", p.Trouble, p.Hosts.Believe)
			}
		})
	})
	for _, j := range jobs {
		if j.starts != 2 {
			t.Errorf("job %d was started %d times", j.id, j.starts)
		}
	}
	w.hostsSettled()
	w.allDone()
}

func TestAListThatIsHardToBelieveTouchesNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		list  func([]providers.Grant) []providers.Grant
		fails bool
		says  string
	}{
		{name: "it fails", fails: true, says: "list: unknown"},
		{name: "it is empty", list: func([]providers.Grant) []providers.Grant { return nil }, says: "shows none of our hosts, and had 6 of them before"},
		{name: "it is far shorter", list: func(g []providers.Grant) []providers.Grant { return g[:2] }, says: "lacks 4 more of the 6 hosts"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := play(t, newHostScene(3*hour), func(w *world) {
				m := w.makers[cloud]
				for range 6 {
					w.need(10*time.Minute, 16, 90*time.Minute)
				}
				w.h.At(hour/2, func() {
					m.Lists = test.list
					if test.fails {
						m.Mishap = w.between(providers.VerbList, hour/2, hour, mishap.Mishap{Kind: mishap.NotHeard})
					}
				})
				w.h.At(hour-time.Minute, func() {
					if p := w.storyOf(cloud); !strings.Contains(p.Trouble, test.says) {
						w.t.Errorf("the provider's trouble is %q", p.Trouble)
					}
				})
				w.h.At(hour, func() { m.Lists = nil })
				w.h.At(hour+10*time.Minute, func() {
					if p := w.storyOf(cloud); p.Trouble != "" {
						w.t.Errorf("the provider's trouble is %q", p.Trouble)
					}
				})
			})
			for i := range 6 {
				if life := w.life(fmt.Sprintf("host/c16-%d", i+1)); len(life) != 5 {
					t.Errorf("life %v", life)
				}
			}
			w.same("strays", w.kinds(api.KindStray))
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestAnotherMachineInTheHostsPlaceIsNotTheHost(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(4*hour), func(w *world) {
		w.need(10*time.Minute, 8, hour)
		w.boots = func(m maker.Machine) boot { b := newBoot(); b.never = m.ID == "i-2"; return b }
		w.h.At(21*time.Minute, func() { w.makers[cloud].Swap(hostA) })
	})
	w.same("life", w.life(hostA), "00:10:01 requested", "00:10:02 expected", "00:12:02 joined", "00:21:00 joined suspect", "00:25:11 returned")
	w.same("machines", w.machines(cloud), "00:10:02 c16-1 i-1 made", "00:21:00 c16-1 i-1 ended", "00:21:00 c16-1 i-2 made", "00:25:13 c16-2 i-3 made", "00:40:12 c16-1 i-2 ended", "01:37:14 c16-2 i-3 ended")
	w.hostsSettled()
	w.allDone()
}

func TestAHostThatIsSmallerThanItsTemplateSaysIsNotBoughtAThirdTime(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(5*hour), func(w *world) {
		w.boots = func(maker.Machine) boot {
			b := newBoot()
			b.has.MemoryMB = 63_488
			return b
		}
		w.needWith(10*time.Minute, cluster.JobSpec{CPUs: 4, MemoryMB: 64_000}, 10*time.Minute)
		w.need(3*hour, 8, 10*time.Minute) // for which they are large enough
	})
	w.same("asked", w.asked("c16"), "00:10:01", "00:12:02", "03:00:00")
	w.hostsSettled()
}

func TestNoMoreHostsAreAskedForThanTheClusterWants(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		set  func(*cluster.HostRules)
		most int // at once
		by   string
	}{
		{"max", func(r *cluster.HostRules) { r.Max = 2 }, 2, ""},
		{"step", func(r *cluster.HostRules) { r.Step = cluster.HostStep{Hosts: 2, Within: 10 * cluster.Minute} }, 6, ""},
		{"group", func(r *cluster.HostRules) {
			r.Limits = []cluster.HostLimit{{Name: "c", Max: 3, Templates: []string{"c16", "c17"}}}
		}, 3, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newHostScene(6 * hour)
			test.set(&s.hosts)
			w := play(t, s, func(w *world) {
				for range 6 {
					w.need(10*time.Minute, 16, 30*time.Minute)
				}
			})
			most, there := 0, 0
			for _, m := range w.makers[cloud].Moves {
				there += map[bool]int{true: 1, false: -1}[m.Made]
				most = max(most, there)
			}
			if most != test.most {
				t.Errorf("%d machines at once:\n%s", most, w.makers[cloud])
			}
			if test.name == "step" {
				w.same("asked", w.asked("c16"), "00:10:01", "00:10:01", "00:21:00", "00:21:00", "00:32:00", "00:32:00")
			}
			w.hostsSettled()
			w.allDone()
		})
	}
}

func TestNoMoreHostsAreAskedForWhileTooManyDoNotAnswer(t *testing.T) {
	t.Parallel()
	w := play(t, newHostScene(6*hour), func(w *world) {
		for range 4 {
			w.need(10*time.Minute, 16, 4*hour)
		}
		w.h.At(30*time.Minute, func() {
			for _, a := range w.agents {
				a.silent = a.machine.ID != "i-4"
			}
		})
		w.need(40*time.Minute, 16, 10*time.Minute)
		w.h.At(90*time.Minute, func() {
			for _, a := range w.agents {
				a.silent = false
			}
		})
	})
	w.same("asked", w.asked("c16")[4:], "01:30:01")
	w.hostsSettled()
	w.allDone()
}

package scheduling

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestHalvesAreHereAndKeptForJobsThatWaitForTheRest(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		for i, h := range r.Halves {
			if i > 0 && (r.Halves[i-1].Resource == "") != (h.Resource == "") && h.Host == "" {
				t.Fatalf("resources come first: %+v", r.Halves)
			}
			if h.Units < 1 || len(h.Jobs) == 0 || h.Count < int64(len(h.Jobs)) || len(h.Awaits) == 0 || (h.Resource == "") == (h.Host == "") {
				t.Fatalf("it says too little: %+v", h)
			}
			for _, id := range h.Jobs {
				if u := reasonsOf(r, id); !slices.ContainsFunc(u, isOnItsWay) {
					t.Fatalf("%+v is kept for job %d, which waits for nothing that comes: %+v", h, id, u)
				}
			}
		}
	})
}

// reasonsOf answers why the elements of a job wait.
func reasonsOf(r Result, job int64) (why []Unplaced) {
	for _, u := range r.Unplaced {
		if slices.Contains(u.Jobs, job) {
			why = append(why, u)
		}
	}
	return why
}

func isOnItsWay(u Unplaced) bool {
	return u.Code == WaitComing || u.Code == WaitBorrow || u.Code == WaitMade || u.Code == WaitReserved
}

func TestNoHalfIsIdle(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		after := started(in, r)
		for _, h := range r.Halves {
			if h.Host != "" {
				host := hostOf(in, h.Host)
				free := freeOn(after, host)
				if free[len(free)-1] != wholeHost || host.Closed != "" || host.Template != h.Template || h.Units != 1 {
					t.Fatalf("%+v is a half with %v free: %+v", h, free, host)
				}
				if slices.ContainsFunc(r.Idle, func(s cluster.IdleSupply) bool { return s.Host == h.Host }) {
					t.Fatalf("%s is idle and kept: %+v", h.Host, h)
				}
				continue
			}
			res := after.Resources[slices.IndexFunc(in.Resources, func(r Resource) bool { return r.Name == h.Resource })]
			if idle := r.Clocks[h.Resource].Units(); h.Units+idle > res.Total-res.InUse-res.KeepBack {
				t.Fatalf("%d kept and %d idle of %+v", h.Units, idle, res)
			}
		}
	})
}

// What jobs count on is free, coming, or asked for; so what is free of it is kept.
func TestAllThatIsHereForJobsThatWaitForTheRestIsKept(t *testing.T) {
	drawing{hosts: true, alike: true}.always(t, func(t *rapid.T, in Input, r Result) {
		for _, res := range in.Resources {
			counted, here := int64(0), int64(0)
			for _, job := range in.Jobs {
				if u, waits := reasonOf(r, job.ID); waits && isOnItsWay(u) {
					counted += job.Tokens[res.Name]
				}
			}
			for _, h := range r.Halves {
				if h.Resource == res.Name {
					here += h.Units
				}
			}
			for _, l := range res.Loans {
				if l.State == cluster.LoanRequested {
					counted -= l.Units
				}
			}
			for _, d := range r.Demand {
				if d.Resource == res.Name {
					counted -= d.Units
				}
			}
			if here < counted {
				t.Fatalf("of %s %d must be here for jobs that wait, %d are kept: %+v", res.Name, counted, here, r.Unplaced)
			}
		}
	})
}

// However long it takes until what was asked for is there, what is here for it is kept.
func TestAHalfIsKeptUntilTheRestHasCome(t *testing.T) {
	drawing{hosts: true, alike: true}.always(t, func(t *rapid.T, in Input, r Result) {
		again := Run(tenMinutesLater(askedFor(in, r), r))
		for _, h := range r.Halves {
			i := slices.IndexFunc(again.Halves, func(later cluster.Half) bool { return later.Resource == h.Resource && later.Host == h.Host })
			if i < 0 || again.Halves[i].Units < h.Units {
				t.Fatalf("%+v\nis kept no more, only %+v", h, again.Halves)
			}
			if h.Host != "" && slices.ContainsFunc(again.Idle, func(s cluster.IdleSupply) bool { return s.Host == h.Host }) {
				t.Fatalf("%+v is idle", h)
			}
		}
	})
}

// tenMinutesLater lets time pass, and nothing else happen.
func tenMinutesLater(next Input, r Result) Input {
	const wait = 10 * cluster.Minute
	next.Now = next.Now.Add(wait)
	next.Templates, next.Offers, next.Resources, next.Hosts = slices.Clone(next.Templates), slices.Clone(next.Offers), slices.Clone(next.Resources), slices.Clone(next.Hosts)
	for i := range next.Templates {
		next.Templates[i].BackoffUntil = next.Templates[i].BackoffUntil.Add(wait)
	}
	for i := range next.Offers {
		next.Offers[i].BackoffUntil = next.Offers[i].BackoffUntil.Add(wait)
	}
	for i := range next.Resources {
		next.Resources[i].Idle = r.Clocks[next.Resources[i].Name]
	}
	for i := range next.Hosts {
		next.Hosts[i].IdleSince = 0
		for _, idle := range r.Idle {
			if idle.Host == next.Hosts[i].Name {
				next.Hosts[i].IdleSince = idle.Since
			}
		}
	}
	return next
}

// withoutHosts is the input of the next session if no host comes any more.
func withoutHosts(in Input, r Result) Input {
	next := started(in, r)
	next.Reservations, next.Expected, next.Templates = r.Reservations, nil, slices.Clone(in.Templates)
	for i := range next.Templates {
		next.Templates[i].BackoffUntil = now.Add(cluster.Hour)
	}
	return next
}

// withoutTokens is that if no token comes any more.
func withoutTokens(next Input) Input {
	next.Offers, next.Resources = nil, slices.Clone(next.Resources)
	for i := range next.Resources {
		res := &next.Resources[i]
		res.Loans = slices.DeleteFunc(slices.Clone(res.Loans), func(l cluster.Loan) bool { return l.State == cluster.LoanRequested })
	}
	return next
}

func TestWhereNothingComesNoHalfIsKept(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		if failed := Run(withoutTokens(withoutHosts(in, r))); len(failed.Halves) > 0 {
			t.Fatalf("%+v\nis kept for %+v", failed.Halves, failed.Unplaced)
		}
	})
}

// Tokens whose jobs find no host lie idle at once, but for those that other jobs keep.
func TestTokensLieIdleOnceTheirHostsFail(t *testing.T) {
	failures := 0
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		failed := Run(withoutHosts(in, r))
		if slices.ContainsFunc(failed.Unplaced, func(u Unplaced) bool {
			return u.Code == WaitTokens || u.Code == WaitBehind || isOnItsWay(u)
		}) || in.Policy.reserves() == 0 && len(failed.Starts) > 0 {
			return // a job that starts may take the host of one before it that keeps tokens: the next session sees that
		}
		after := started(in, failed)
		for _, h := range r.Halves {
			i := slices.IndexFunc(in.Resources, func(r Resource) bool { return r.Name == h.Resource })
			if i < 0 {
				continue
			}
			failures++
			res := after.Resources[i]
			res.InUse += started(in, r).Resources[i].InUse - in.Resources[i].InUse
			if free, idle := res.Total-res.InUse-res.KeepBack, failed.Clocks[h.Resource].Units(); idle != free {
				t.Fatalf("%d of %d free %s are idle: %+v", idle, free, h.Resource, failed.Unplaced)
			}
			for _, id := range h.Jobs {
				told := res.Elastic != nil && len(jobOf(in, id).Alternatives) == 0
				if u, waits := reasonOf(failed, id); told && waits && u.Code == WaitHosts && !strings.Contains(u.Why, h.Resource) {
					t.Fatalf("job %d does not say that its %s are kept no more: %s", id, h.Resource, u.Why)
				}
			}
		}
	})
	if failures == 0 {
		t.Error("no host failed whose tokens were kept, so that this shows nothing")
	}
}

// Hosts whose jobs find no tokens lie idle at once, but for those that other jobs keep.
func TestHostsLieIdleOnceTheirTokensFail(t *testing.T) {
	failures := 0
	drawing{hosts: true}.always(t, func(t *rapid.T, in Input, r Result) {
		failed := Run(withoutTokens(started(in, r)))
		if slices.ContainsFunc(failed.Unplaced, func(u Unplaced) bool { return u.Code == WaitBehind || isOnItsWay(u) }) {
			return
		}
		for _, h := range r.Halves {
			if h.Host == "" || slices.ContainsFunc(failed.Starts, func(s Start) bool { return slices.Contains(s.Hosts, h.Host) }) {
				continue
			}
			failures++
			if !slices.ContainsFunc(failed.Idle, func(s cluster.IdleSupply) bool { return s.Host == h.Host }) {
				t.Fatalf("%s is not idle, though %+v", h.Host, failed.Unplaced)
			}
		}
	})
	if failures == 0 {
		t.Error("no tokens failed whose hosts were kept, so that this shows nothing")
	}
}

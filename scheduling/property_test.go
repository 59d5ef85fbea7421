package scheduling

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

// everything draws all that a cluster can have.
var everything = drawing{hosts: true, policies: true}

// always checks that something holds for every session.
func (d drawing) always(t *testing.T, holds func(*rapid.T, Input, Result)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		in := d.input(t)
		holds(t, in, Run(in))
	})
}

func TestOrderOfTheInputMakesNoDifferenceToAByte(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		shuffled := in
		shuffled.Hosts = rapid.Permutation(in.Hosts).Draw(t, "hosts")
		shuffled.Jobs = rapid.Permutation(in.Jobs).Draw(t, "jobs")
		shuffled.Running = rapid.Permutation(in.Running).Draw(t, "running")
		shuffled.Offers = rapid.Permutation(in.Offers).Draw(t, "offers")
		shuffled.Templates = rapid.Permutation(in.Templates).Draw(t, "templates")
		shuffled.Quotas = rapid.Permutation(in.Quotas).Draw(t, "quotas")
		shuffled.Expected = rapid.Permutation(in.Expected).Draw(t, "expected")
		shuffled.Resources = rapid.Permutation(in.Resources).Draw(t, "resources")
		for i := range shuffled.Resources {
			shuffled.Resources[i].Loans = rapid.Permutation(shuffled.Resources[i].Loans).Draw(t, "loans")
		}
		if want, got := encode(t, r), encode(t, Run(shuffled)); !bytes.Equal(want, got) {
			t.Fatalf("%s\nbecomes\n%s", want, got)
		}
	})
}

func TestTheInputIsLeftAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := everything.input(t)
		before := encode(t, in)
		Run(in)
		if after := encode(t, in); !bytes.Equal(before, after) {
			t.Fatalf("%s\nbecomes\n%s", before, after)
		}
	})
}

func TestEveryJobStartsOrHasAReason(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		started, named := map[int64]int64{}, map[int64]bool{}
		for _, s := range r.Starts {
			started[s.Job]++
		}
		var waiting, counted int64
		for _, u := range r.Unplaced {
			if u.Code == "" || u.Why == "" || u.Change == "" || u.Count < 1 {
				t.Fatalf("jobs wait without a reason: %+v", u)
			}
			counted += u.Count
			for _, id := range u.Jobs {
				if job := jobOf(in, id); named[id] && job.Array == 0 {
					t.Fatalf("job %d has two reasons", id)
				}
				named[id] = true
			}
		}
		for _, job := range in.Jobs {
			elements := max(job.Array-job.Begun, 1)
			waiting += elements - started[job.ID]
			if started[job.ID] > elements || named[job.ID] != (started[job.ID] < elements) {
				t.Fatalf("job %d: %d of %d started, and waits: %t", job.ID, started[job.ID], elements, named[job.ID])
			}
		}
		if waiting != counted {
			t.Fatalf("%d wait, %d are counted", waiting, counted)
		}
	})
}

func TestStartsNeverExceedWhatIsThere(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		after := started(in, r)
		for _, h := range after.Hosts {
			if free := freeOn(after, h); slices.Min(free) < 0 {
				t.Fatalf("%s is overfull: %v", h.Name, free)
			}
		}
		for i, res := range after.Resources {
			taken := res.InUse > in.Resources[i].InUse
			if taken && res.InUse > res.Total-res.KeepBack {
				t.Fatalf("%d of %d %s are in use, %d are kept back", res.InUse, res.Total, res.Name, res.KeepBack)
			}
		}
		for _, s := range r.Starts {
			checkHosts(t, in, s)
		}
	})
}

func checkHosts(t *rapid.T, in Input, s Start) {
	job := jobOf(in, s.Job)
	names := slices.Compact(slices.Sorted(slices.Values(s.Hosts)))
	if int64(len(names)) != max(job.Nodes, 1) {
		t.Fatalf("job %d needs %d hosts and has %v", job.ID, job.Nodes, s.Hosts)
	}
	constraint, _ := cluster.ParseConstraint(job.Constraint)
	for _, name := range names {
		h := hostOf(in, name)
		if h.Closed != "" || !constraint.Holds(func(f string) bool { return slices.Contains(h.Features, f) }) {
			t.Fatalf("job %d may not run on %+v", job.ID, h)
		}
	}
}

// No start and no reservation of a session leaves less than nothing free at any
// later instant, if every job uses all of its time limit: so nothing that starts
// delays a reservation.
func TestNothingDelaysAReservation(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		if in.Policy.Order == EASY && len(r.Reservations) > 1 {
			t.Fatalf("%d reservations", len(r.Reservations))
		}
		after := started(in, r)
		instants := []cluster.Time{now}
		for _, res := range r.Reservations {
			if res.At <= now {
				t.Fatalf("job %d is promised %s, which is not later", res.Job, res.At)
			}
			instants = append(instants, res.At)
		}
		for _, at := range instants {
			for _, h := range in.Hosts {
				if free := freeAt(after, r, h, at); slices.Min(free) < 0 {
					t.Fatalf("%s is overfull at %s: %v", h.Name, at, free)
				}
			}
			for _, x := range in.Expected {
				if free := freeOnExpected(in, r, x, at); slices.Min(free) < 0 {
					t.Fatalf("%s is overfull at %s: %v", x.ID, at, free)
				}
			}
			for _, res := range in.Resources {
				if used, most := tokensAt(in, r, res, at); used > most {
					t.Fatalf("%d %s are used at %s, there are %d", used, res.Name, at, most)
				}
			}
		}
	})
}

// tokensAt is what the starts and reservations of a session use of a resource at
// an instant, and what there is for them.
func tokensAt(in Input, r Result, res Resource, at cluster.Time) (used, most int64) {
	use := func(id, alternative int64, from cluster.Time) {
		job := jobOf(in, id)
		ends := from.Add(job.TimeLimit)
		if job.TimeLimit == 0 {
			ends = forever
		}
		if from <= at && at < ends {
			used += job.Tokens[res.Name]
			if alternative > 0 {
				used += job.Alternatives[alternative-1][res.Name]
			}
		}
	}
	for _, s := range r.Starts {
		use(s.Job, s.Alternative, now)
	}
	for _, promised := range r.Reservations {
		use(promised.Job, promised.Alternative, promised.At)
	}
	most = max(res.Total-res.InUse-res.KeepBack, 0)
	for _, l := range res.Loans {
		if l.State == cluster.LoanRequested && max(l.Intended, now.Add(overtime)) <= at {
			most += l.Units
		}
	}
	return used, most
}

// freeOnExpected is what is free on an expected host at an instant if it comes in time.
func freeOnExpected(in Input, r Result, x cluster.ExpectedHost, at cluster.Time) []int64 {
	free := make([]int64, 4)
	if at >= max(x.Expected, now.Add(overtime)) {
		free = binOf(x.Capacity.Least(templateOf(in, x.Template).Believed())).free
	}
	for _, res := range r.Reservations {
		job := jobOf(in, res.Job)
		if slices.Contains(res.Hosts, x.ID) && res.At <= at && (job.TimeLimit == 0 || at < res.At.Add(job.TimeLimit)) {
			take(free, job)
		}
	}
	return free
}

// freeAt is what is free on a host at an instant if everything goes as promised.
func freeAt(in Input, r Result, h Host, at cluster.Time) []int64 {
	free := sizeOn(in, h)
	for _, job := range in.Running {
		ends := job.Started.Add(job.TimeLimit)
		if job.TimeLimit == 0 {
			ends = forever
		} else if ends <= now {
			ends = now.Add(overtime)
		}
		if at < ends && (job.Host == h.Name || slices.Contains(job.Hosts, h.Name)) {
			take(free, job)
		}
	}
	for _, res := range r.Reservations {
		job := jobOf(in, res.Job)
		limit := job.TimeLimit
		if limit == 0 {
			limit = noLimit
		}
		if res.At <= at && at < res.At.Add(limit) && slices.Contains(res.Hosts, h.Name) {
			take(free, job)
		}
	}
	return free
}

// A job that waits for tokens is never overtaken under fcfs by one that needs
// them too.
func TestNobodyOvertakesForTokens(t *testing.T) {
	drawing{}.always(t, func(t *rapid.T, in Input, r Result) {
		placed := map[int64]bool{}
		for _, s := range r.Starts {
			placed[s.Job] = true
		}
		waited := map[string]int64{} // by resource, what earlier jobs lack beyond what is free
		for _, job := range inOrderOf(in) {
			if placed[job.ID] {
				for name := range job.Tokens {
					if waited[name] > 0 {
						t.Fatalf("job %d overtakes one that lacks %d %s", job.ID, waited[name], name)
					}
				}
			}
			if u, waits := reasonOf(r, job.ID); !waits || u.Code == Never {
				continue
			}
			for name, units := range job.Tokens {
				i := slices.IndexFunc(in.Resources, func(r Resource) bool { return r.Name == name })
				res := started(in, r).Resources[i]
				if units > res.Total-res.InUse-res.KeepBack {
					waited[name] = units
				}
			}
		}
	})
}

func TestIdleIsWhatNobodyNeeds(t *testing.T) {
	drawing{}.always(t, func(t *rapid.T, in Input, r Result) {
		after := started(in, r)
		for _, res := range after.Resources {
			idle := r.Clocks[res.Name].Units()
			reserved := int64(0)
			for _, job := range in.Jobs {
				if u, waits := reasonOf(r, job.ID); waits && (u.Code == WaitComing || u.Code == WaitBorrow) {
					reserved += job.Tokens[res.Name]
				}
			}
			if idle > max(res.Total-res.InUse-res.KeepBack-reserved, 0) {
				t.Fatalf("%d %s idle, total %d, in use %d, kept back %d, reserved %d", idle, res.Name, res.Total, res.InUse, res.KeepBack, reserved)
			}
			i := slices.IndexFunc(r.Idle, func(s cluster.IdleSupply) bool { return s.Resource == res.Name })
			if (i >= 0) != (idle > 0) || i >= 0 && (r.Idle[i].Units != idle || r.Idle[i].Since != r.Clocks[res.Name].Since()) {
				t.Fatalf("clock %v of %s, idle supply %+v", r.Clocks[res.Name], res.Name, r.Idle)
			}
		}
	})
}

func TestIdleHostsHaveNoJobsAndNoPromises(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		for _, idle := range r.Idle {
			if idle.Host == "" {
				continue
			}
			h := hostOf(in, idle.Host)
			if free := freeOn(started(in, r), h); free[len(free)-1] != wholeHost || h.Closed != "" {
				t.Fatalf("%s is idle with %v free: %+v", idle.Host, free, h)
			}
			for _, res := range r.Reservations {
				if slices.Contains(res.Hosts, idle.Host) {
					t.Fatalf("%s is idle and promised to job %d", idle.Host, res.Job)
				}
			}
			if since := max(h.IdleSince, idle.Since); idle.Since != since || idle.Since == 0 || h.IdleSince != 0 && idle.Since != h.IdleSince {
				t.Fatalf("%s is idle since %s, was since %s", idle.Host, idle.Since, h.IdleSince)
			}
		}
	})
}

func TestAHostThatNoJobCanUseChangesNothing(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		more := in
		name := rapid.SampledFrom([]string{"aaa", "node15", "zzz"}).Draw(t, "name")
		more.Hosts = append(slices.Clone(in.Hosts), Host{Name: name, Capacity: cluster.Capacity{MemoryMB: 100, Features: []string{"avx"}}})
		got := Run(more)
		got.Idle = slices.DeleteFunc(got.Idle, func(s cluster.IdleSupply) bool { return s.Host == name })
		// Words about what is free may change with it, decisions may not.
		for _, result := range []*Result{&r, &got} {
			result.Idle = append([]cluster.IdleSupply{}, result.Idle...)
			for i := range result.Unplaced {
				result.Unplaced[i].Why = ""
			}
		}
		if !slices.ContainsFunc(in.Hosts, func(h Host) bool { return h.Closed == "" }) {
			return // where no host is up, what waits for one is told so
		}
		if want, got := encode(t, r), encode(t, got); !bytes.Equal(want, got) {
			t.Fatalf("%s\nbecomes\n%s", want, got)
		}
	})
}

func encode(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

package scheduling

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestDemandStaysWithinHeadroomAndLimits(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		for _, res := range in.Resources {
			checkOffers(t, in, res, r.Demand)
		}
		checkTemplates(t, in, r.Demand)
	})
}

func checkOffers(t *rapid.T, in Input, res Resource, demand []cluster.Demand) {
	var demanded, taken int64
	for _, l := range res.Loans {
		taken += l.Borrowed
		if l.State == cluster.LoanRequested {
			taken += l.Units
		}
	}
	for _, d := range demand {
		if d.Resource != res.Name {
			continue
		}
		demanded += d.Units
		i := slices.IndexFunc(in.Offers, func(o cluster.Offer) bool { return o.Resource == d.Resource && o.Provider == d.Provider })
		switch {
		case d.Units < 1 || len(d.Jobs) == 0 || d.Reason == "":
			t.Fatalf("demand for nothing: %+v", d)
		case i < 0 || res.Elastic == nil || !slices.Contains(res.Elastic.Lenders, d.Provider):
			t.Fatalf("%s lends no %s", d.Provider, d.Resource)
		case in.Now < in.Offers[i].BackoffUntil:
			t.Fatalf("%s is to be left alone", d.Provider)
		}
		headroom := in.Offers[i].Headroom
		for _, l := range res.Loans {
			if l.Provider == d.Provider && l.Intended > in.Offers[i].Published {
				headroom -= l.Units
			}
		}
		if d.Units > headroom {
			t.Fatalf("%d demanded, the headroom is %d", d.Units, headroom)
		}
	}
	if demanded > 0 && demanded+taken > res.Elastic.MaxBorrowed {
		t.Fatalf("%d demanded, %d requested or borrowed, max borrowed %d", demanded, taken, res.Elastic.MaxBorrowed)
	}
}

func checkTemplates(t *rapid.T, in Input, demand []cluster.Demand) {
	left := map[string]int64{}
	for _, q := range in.Quotas {
		left[q.Name] = q.Limit - q.Used
		for _, x := range in.Expected {
			if tmpl := templateOf(in, x.Template); x.Requested > q.Published && slices.Contains(tmpl.Quotas, q.Name) {
				left[q.Name] -= chargeOf(q, tmpl)
			}
		}
	}
	for _, d := range demand {
		if d.Template == "" {
			continue
		}
		tmpl := templateOf(in, d.Template)
		headroom := tmpl.Headroom
		for _, x := range in.Expected {
			if x.Template == tmpl.Name && x.Requested > tmpl.Published {
				headroom--
			}
		}
		if d.Units < 1 || len(d.Jobs) == 0 || d.Units > headroom || in.Now < tmpl.BackoffUntil || d.Price != tmpl.Price*cluster.Price(d.Units) {
			t.Fatalf("demand %+v of %+v, headroom %d", d, tmpl, headroom)
		}
		for _, q := range in.Quotas {
			if slices.Contains(tmpl.Quotas, q.Name) {
				if left[q.Name] -= d.Units * chargeOf(q, tmpl); left[q.Name] < 0 && chargeOf(q, tmpl) > 0 {
					t.Fatalf("demand %+v exceeds quota %+v", d, q)
				}
			}
		}
	}
}

func templateOf(in Input, name string) cluster.Template {
	return in.Templates[slices.IndexFunc(in.Templates, func(t cluster.Template) bool { return t.Name == name })]
}

func chargeOf(q cluster.Quota, t cluster.Template) int64 {
	switch q.Counts {
	case "cpus":
		return t.CPUs
	case "gpus":
		return t.Countables["gpus"]
	}
	return 1
}

func TestDemandNamesTheJobsThatWaitForIt(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		named := map[int64]bool{}
		for _, d := range r.Demand {
			for _, id := range d.Jobs {
				named[id] = true
			}
		}
		asked := map[int64]bool{}
		for _, u := range r.Unplaced {
			for _, id := range u.Jobs {
				asked[id] = asked[id] || u.Code == WaitBorrow || u.Code == WaitMade
			}
		}
		for _, job := range in.Jobs {
			if named[job.ID] != asked[job.ID] {
				t.Fatalf("job %d is in demand: %t, asked for: %t", job.ID, named[job.ID], asked[job.ID])
			}
		}
	})
}

// The hosts that are demanded take the jobs that they are demanded for, together
// with those that count on what is free or coming; and none of the hosts is
// there for nothing.
func TestDemandCoversTheJobsThatItNames(t *testing.T) {
	everything.always(t, func(t *rapid.T, in Input, r Result) {
		var bins []bin
		for _, h := range in.Hosts {
			if h.Closed == "" {
				bins = append(bins, bin{freeOn(started(in, r), h), h.Features})
			}
		}
		for _, x := range in.Expected {
			bins = append(bins, binOf(x.Capacity.Least(templateOf(in, x.Template).Believed())))
		}
		for _, d := range r.Demand {
			if d.Template != "" {
				tmpl := templateOf(in, d.Template)
				for range d.Units {
					bins = append(bins, binOf(tmpl.Believed()))
				}
				if hosts := hostsNeededBy(in, r, d.Jobs); d.Units > hosts {
					t.Fatalf("%d hosts for jobs %v, which run on %d at most", d.Units, d.Jobs, hosts)
				}
			}
		}
		var jobs []cluster.Job
		for _, u := range r.Unplaced {
			if u.Code == WaitBorrow || u.Code == WaitMade || u.Code == WaitComing {
				for _, id := range u.Jobs {
					for range u.Count / int64(len(u.Jobs)) {
						jobs = append(jobs, jobOf(in, id))
					}
				}
			}
		}
		if len(jobs) < 7 && !packs(bins, jobs) {
			t.Fatalf("jobs do not fit: %+v\non %+v", jobs, bins)
		}
	})
}

func hostsNeededBy(in Input, r Result, ids []int64) (n int64) {
	for _, id := range ids {
		job := jobOf(in, id)
		n += max(job.Nodes, 1) * max(job.Array-job.Begun, 1)
	}
	return n
}

type bin struct {
	free     []int64
	features []string
}

// binOf is an empty host.
func binOf(c cluster.Capacity) bin {
	return bin{[]int64{c.CPUs, c.MemoryMB, c.Countables["gpus"], wholeHost}, c.Features}
}

// packs tells whether all jobs fit on the hosts, by trying everything.
func packs(bins []bin, jobs []cluster.Job) bool {
	if len(jobs) == 0 {
		return true
	}
	return packJob(bins, jobs[0], max(jobs[0].Nodes, 1), 0, func() bool { return packs(bins, jobs[1:]) })
}

func packJob(bins []bin, job cluster.Job, nodes int64, from int, rest func() bool) bool {
	if nodes == 0 {
		return rest()
	}
	constraint, _ := cluster.ParseConstraint(job.Constraint)
	for i := from; i < len(bins); i++ {
		if !constraint.Holds(func(f string) bool { return slices.Contains(bins[i].features, f) }) {
			continue
		}
		before := slices.Clone(bins[i].free)
		take(bins[i].free, job)
		done := slices.Min(bins[i].free) >= 0 && packJob(bins, job, nodes-1, i+1, rest)
		copy(bins[i].free, before)
		if done {
			return true
		}
	}
	return false
}

// What is demanded is exactly what lacks: with it every job that counts on it
// runs, and with one token less of it not all of them do.
func TestWhoeverRaisedDemandRunsOnceItIsThere(t *testing.T) {
	drawing{}.always(t, func(t *rapid.T, in Input, r Result) {
		var counting []int64
		for _, u := range r.Unplaced {
			if u.Code == WaitBorrow || u.Code == WaitComing {
				counting = append(counting, u.Jobs...)
			}
		}
		if late := waitingOf(counting, Run(arrived(in, r))); len(late) > 0 {
			t.Fatalf("jobs %v still wait", late)
		}
		for i, d := range r.Demand {
			short := arrived(in, r)
			for j := range short.Resources {
				if short.Resources[j].Name == d.Resource {
					short.Resources[j].Total--
				}
			}
			if late := waitingOf(counting, Run(short)); len(late) == 0 {
				t.Fatalf("demand %d asks for more than is needed: %+v", i, d)
			}
		}
	})
}

// Where jobs differ in what they need of hosts, the next session may divide them
// otherwise over the hosts that are coming, and find that one more would help. With
// reservations it may find that a job whose promise kept it from asking takes what
// is coming for another, who then asks once more.
func TestWhatIsRequestedIsNotDemandedAgain(t *testing.T) {
	for name, d := range map[string]drawing{"tokens": {}, "hosts": {hosts: true, alike: true}} {
		t.Run(name, func(t *testing.T) { d.always(t, checkNotDemandedAgain) })
	}
}

// askedFor is the input of the next session once all that is demanded has been asked for.
func askedFor(in Input, r Result) Input {
	next := started(in, r)
	next.Reservations = r.Reservations
	for _, d := range r.Demand {
		if d.Template != "" {
			tmpl := templateOf(in, d.Template)
			for i := range d.Units {
				next.Expected = append(slices.Clone(next.Expected), cluster.ExpectedHost{
					ID: "host/new-" + d.Template + string(rune('a'+i)), Template: d.Template, Capacity: tmpl.Believed(), Requested: now.Add(1), Expected: now.Add(cluster.Minute),
				})
			}
		}
		for i := range next.Resources {
			if res := &next.Resources[i]; d.Resource == res.Name {
				l := cluster.Loan{State: cluster.LoanRequested, Intended: now.Add(1)}
				l.Provider, l.Units = d.Provider, d.Units
				res.Loans = append(slices.Clone(res.Loans), l)
			}
		}
	}
	return next
}

func checkNotDemandedAgain(t *rapid.T, in Input, r Result) {
	next := askedFor(in, r)
	again := Run(next)
	if in.Policy.Order != FCFS && (len(again.Starts) > 0 || !slices.EqualFunc(r.Reservations, again.Reservations, sameJob)) {
		return // what is coming lets a job start or have a reservation, which takes what others counted on
	}
	for _, d := range again.Demand {
		if in.Policy.Order == FCFS || namedIn(r.Demand, d.Jobs) {
			t.Fatalf("the next session wants more: %+v, first it was %+v", again.Demand, r.Demand)
		}
	}
	if len(again.Starts) > 0 {
		t.Fatalf("the next session starts more: %v", again.Starts)
	}
}

func sameJob(a, b Reservation) bool { return a.Job == b.Job && a.Element == b.Element }

// namedIn tells whether any of the jobs is named in a demand.
func namedIn(demand []cluster.Demand, jobs []int64) bool {
	return slices.ContainsFunc(demand, func(d cluster.Demand) bool {
		return slices.ContainsFunc(d.Jobs, func(id int64) bool { return slices.Contains(jobs, id) })
	})
}

// Where jobs differ in what they need of hosts, more headroom may let one that
// comes first run in place of several that come later.
func TestMoreHeadroomNeverLeavesMoreJobsWithoutAnything(t *testing.T) {
	drawing{hosts: true, alike: true}.always(t, func(t *rapid.T, in Input, r Result) {
		more := in
		more.Offers, more.Templates = slices.Clone(in.Offers), slices.Clone(in.Templates)
		for i := range more.Offers {
			more.Offers[i].Headroom += upTo(2).Draw(t, "more units")
		}
		for i := range more.Templates {
			more.Templates[i].Headroom += upTo(2).Draw(t, "more hosts")
		}
		before, after := unserved(r), unserved(Run(more))
		if after > before {
			t.Fatalf("%d jobs got nothing, with more headroom %d", before, after)
		}
	})
}

// unserved counts the jobs that neither start nor get anything.
func unserved(r Result) (n int64) {
	for _, u := range r.Unplaced {
		if u.Code != WaitBorrow && u.Code != WaitMade && u.Code != WaitComing {
			n += u.Count
		}
	}
	return n
}

func waitingOf(jobs []int64, r Result) []int64 {
	var late []int64
	for _, u := range r.Unplaced {
		for _, id := range u.Jobs {
			if slices.Contains(jobs, id) {
				late = append(late, id)
			}
		}
	}
	return late
}

// arrived is the input of the next session once all tokens that are requested
// and demanded have been granted, and the lenders have no more.
func arrived(in Input, r Result) Input {
	next := started(in, r)
	next.Offers = nil
	for i := range next.Resources {
		res := &next.Resources[i]
		res.Loans = slices.Clone(res.Loans)
		for j := range res.Loans {
			if l := &res.Loans[j]; l.State == cluster.LoanRequested {
				l.State, l.Borrowed = cluster.LoanBorrowed, l.Units
				res.Total += l.Units
			}
		}
		for _, d := range r.Demand {
			if d.Resource == res.Name {
				res.Total += d.Units
			}
		}
	}
	return next
}

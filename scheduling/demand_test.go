package scheduling

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestDemandStaysWithinHeadroomAndLimits(t *testing.T) {
	always(t, func(t *rapid.T, in Input, r Result) {
		for _, res := range in.Resources {
			var demanded, taken int64
			for _, l := range res.Loans {
				taken += l.Borrowed
				if l.State == cluster.LoanRequested {
					taken += l.Units
				}
			}
			for _, d := range r.Demand {
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
	})
}

func TestDemandNamesTheJobsThatWaitForIt(t *testing.T) {
	always(t, func(t *rapid.T, _ Input, r Result) {
		named := map[int64]bool{}
		for _, d := range r.Demand {
			for _, id := range d.Jobs {
				named[id] = true
			}
		}
		for _, u := range r.Unplaced {
			if named[u.Job] != (u.Code == WaitBorrow) {
				t.Fatalf("job %d is %s, and in demand: %t", u.Job, u.Code, named[u.Job])
			}
		}
	})
}

// What is demanded is exactly what lacks: with it every job that counts on it
// runs, and with one unit less of it not all of them do.
func TestWhoeverRaisedDemandRunsOnceItIsThere(t *testing.T) {
	always(t, func(t *rapid.T, in Input, r Result) {
		var counting []int64
		for _, u := range r.Unplaced {
			if u.Code == WaitBorrow || u.Code == WaitComing {
				counting = append(counting, u.Job)
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

func TestWhatIsRequestedIsNotDemandedAgain(t *testing.T) {
	always(t, func(t *rapid.T, in Input, r Result) {
		next := started(in, r)
		for i := range next.Resources {
			res := &next.Resources[i]
			res.Loans = slices.Clone(res.Loans)
			for _, d := range r.Demand {
				if d.Resource == res.Name {
					l := cluster.Loan{State: cluster.LoanRequested, Intended: now.Add(1)}
					l.Provider, l.Units = d.Provider, d.Units
					res.Loans = append(res.Loans, l)
				}
			}
		}
		if again := Run(next); len(again.Starts)+len(again.Demand) > 0 {
			t.Fatalf("the next session wants more: starts %v, demand %v", again.Starts, again.Demand)
		}
	})
}

func waitingOf(jobs []int64, r Result) []int64 {
	var late []int64
	for _, u := range r.Unplaced {
		if slices.Contains(jobs, u.Job) {
			late = append(late, u.Job)
		}
	}
	return late
}

// started is the input of the next session if nothing happens but what r starts.
func started(in Input, r Result) Input {
	next := in
	next.Hosts, next.Resources, next.Jobs = slices.Clone(in.Hosts), slices.Clone(in.Resources), nil
	for _, job := range in.Jobs {
		i := slices.IndexFunc(r.Starts, func(s Start) bool { return s.Job == job.ID })
		if i < 0 {
			next.Jobs = append(next.Jobs, job)
			continue
		}
		h := slices.IndexFunc(next.Hosts, func(h Host) bool { return h.Name == r.Starts[i].Host })
		next.Hosts[h].CPUs -= job.CPUs
		next.Hosts[h].MemoryMB -= job.MemoryMB
		for j := range next.Resources {
			next.Resources[j].InUse += job.Tokens[next.Resources[j].Name]
		}
	}
	return next
}

// arrived is the input of the next session once all that is requested and
// demanded has been granted, and the lenders have no more.
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

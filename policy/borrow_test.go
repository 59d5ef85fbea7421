package policy

import (
	"reflect"
	"slices"
	"testing"

	"xce.internal/elastic/cluster"
)

func demandFor(resource string, units int64) cluster.Demand {
	return cluster.Demand{Resource: resource, Provider: "pool", Units: units, Jobs: []int64{1, 2}, Reason: "jobs 1, 2 wait"}
}

func requested(resource string) cluster.Loan {
	l := cluster.Loan{State: cluster.LoanRequested}
	l.Resource, l.Units = resource, 1
	return l
}

func TestBorrow(t *testing.T) {
	offer := func(change func(*cluster.Offer)) []cluster.Offer {
		o := cluster.Offer{Provider: "pool", Resource: "vcs", Headroom: 9, MaxOpen: 1}
		change(&o)
		return []cluster.Offer{o}
	}
	plain := offer(func(*cluster.Offer) {})
	one := []cluster.Demand{demandFor("vcs", 5)}
	tests := []struct {
		name   string
		demand []cluster.Demand
		offers []cluster.Offer
		room   int64
		open   []cluster.Loan
		want   int64 // units of the one plan; 0 means no plan
	}{
		{"all jobs in one request", one, plain, 8, nil, 5},
		{"no demand", nil, plain, 8, nil, 0},
		{"the demand is used up", []cluster.Demand{demandFor("vcs", 0)}, plain, 8, nil, 0},
		{"more is on its way than is demanded", []cluster.Demand{demandFor("vcs", -2)}, plain, 8, nil, 0},
		{"no offer", one, nil, 8, nil, 0},
		{"an offer of something else", []cluster.Demand{demandFor("verdi", 5)}, plain, 8, nil, 0},

		{"the headroom is less", one, offer(func(o *cluster.Offer) { o.Headroom = 3 }), 8, nil, 3},
		{"there is no headroom", one, offer(func(o *cluster.Offer) { o.Headroom = 0 }), 8, nil, 0},
		{"the room is less", one, plain, 2, nil, 2},
		{"there is no room", one, plain, 0, nil, 0},
		{"too much is borrowed", one, plain, -3, nil, 0},
		{"one request takes less", one, offer(func(o *cluster.Offer) { o.MaxRequest = 2 }), 8, nil, 2},
		{"one request takes more", one, offer(func(o *cluster.Offer) { o.MaxRequest = 7 }), 8, nil, 5},

		{"a request is open", one, plain, 8, []cluster.Loan{requested("vcs")}, 0},
		{"a request of something else is open", one, plain, 8, []cluster.Loan{requested("verdi")}, 5},
		{"only loans are open", one, plain, 8, []cluster.Loan{{State: cluster.LoanBorrowed, LoanRequest: cluster.LoanRequest{Resource: "vcs"}}}, 5},
		{"two may be open, one is", one, offer(func(o *cluster.Offer) { o.MaxOpen = 2 }), 8, []cluster.Loan{requested("vcs")}, 5},
		{"two may be open and are", one, offer(func(o *cluster.Offer) { o.MaxOpen = 2 }), 8, []cluster.Loan{requested("vcs"), requested("vcs")}, 0},
		{"it says nothing of open requests", one, offer(func(o *cluster.Offer) { o.MaxOpen = 0 }), 8, nil, 5},

		{"it is to be left alone", one, offer(func(o *cluster.Offer) { o.BackoffUntil = start + 1 }), 8, nil, 0},
		{"no longer", one, offer(func(o *cluster.Offer) { o.BackoffUntil = start }), 8, nil, 5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plans := Borrow(View{
				Provider: "pool", Demand: test.demand, Offers: test.offers, Open: test.open, Room: map[string]int64{"vcs": test.room},
			}, start)
			switch {
			case test.want == 0 && len(plans) > 0, test.want > 0 && len(plans) != 1:
				t.Fatalf("got %+v", plans)
			case test.want > 0 && (plans[0].Units != test.want || !reflect.DeepEqual(plans[0].Demand, test.demand[0])):
				t.Errorf("got %+v, want %d units", plans[0], test.want)
			}
		})
	}
}

func TestEachResourceIsDecidedByItself(t *testing.T) {
	view := View{Room: map[string]int64{"a": 9, "b": 9, "c": 0, "d": 9}}
	for _, name := range []string{"d", "c", "b", "a"} {
		view.Demand = append(view.Demand, demandFor(name, 1))
		view.Offers = append(view.Offers, cluster.Offer{Provider: "pool", Resource: name, Headroom: 9})
	}
	view.Offers[2].BackoffUntil = start + 1 // b's
	var got []string
	for _, p := range Borrow(view, start) {
		got = append(got, p.Demand.Resource)
	}
	if want := []string{"a", "d"}; !slices.Equal(got, want) {
		t.Errorf("got plans for %v, want %v", got, want)
	}
	if view.Demand[0].Resource != "d" {
		t.Error("the demand itself was put in order")
	}
}

func TestAPlanTakesTheTermsOfItsOffer(t *testing.T) {
	offer := cluster.Offer{
		Provider: "pool", Resource: "vcs", Headroom: 9, Price: 250_000, MinimumHold: cluster.Hour,
		BillingStep: cluster.Minute, PartialReturn: true, PollInterval: cluster.Second,
	}
	for weight, want := range map[int64]int64{0: 1, 1000: 1000} {
		plans := Borrow(View{
			Demand: []cluster.Demand{demandFor("vcs", 1)}, Offers: []cluster.Offer{offer},
			Room: map[string]int64{"vcs": 1}, Weights: map[string]int64{"vcs": weight},
		}, start)
		terms := cluster.Terms{
			Price: 250_000, MinimumHold: cluster.Hour, BillingStep: cluster.Minute,
			PartialReturn: true, PollInterval: cluster.Second, UnitWeight: want,
		}
		if len(plans) != 1 || plans[0].Terms != terms {
			t.Errorf("weight %d: got %+v, want %+v", weight, plans, terms)
		}
	}
}

func TestBackoff(t *testing.T) {
	tests := []struct {
		name       string
		n          int64
		retryAfter cluster.Duration
		want       cluster.Duration
	}{
		{"the first refusal", 1, 0, 30 * cluster.Second},
		{"the second", 2, 0, cluster.Minute},
		{"the sixth", 6, 0, 16 * cluster.Minute},
		{"the seventh", 7, 0, 30 * cluster.Minute},
		{"the millionth", 1_000_000, 0, 30 * cluster.Minute},
		{"as the lender asked for", 5, 7 * cluster.Second, 7 * cluster.Second},
		{"however long", 1, 48 * cluster.Hour, 48 * cluster.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Backoff(test.n, test.retryAfter); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestDemandForHostsIsNoMatterOfBorrowing(t *testing.T) {
	view := View{
		Demand: []cluster.Demand{{Template: "small", Units: 3, Jobs: []int64{1}}, {Resource: "vcs", Units: 2, Jobs: []int64{1}}},
		Offers: []cluster.Offer{{Headroom: 9}, {Resource: "vcs", Headroom: 9}},
		Room:   map[string]int64{"": 9, "vcs": 9},
	}
	if plans := Borrow(view, start); len(plans) != 1 || plans[0].Demand.Resource != "vcs" || plans[0].Units != 2 {
		t.Errorf("got %+v, want one for vcs", plans)
	}
}

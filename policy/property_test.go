package policy

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "1000") // the command line may say otherwise
	os.Exit(m.Run())
}

func drawMinutes(t *rapid.T, most int64, what string) cluster.Time {
	return cluster.Time(rapid.Int64Range(0, most).Draw(t, what)) * mins
}

func drawLoans(t *rapid.T, most int) (loans []cluster.Loan) {
	for i := range rapid.IntRange(1, most).Draw(t, "loans") {
		l := loan(fmt.Sprintf("loan%d", i), rapid.Int64Range(0, 4).Draw(t, "borrowed"), cluster.Price(rapid.Int64Range(0, 2).Draw(t, "price")), drawMinutes(t, 60, "committed"))
		l.PartialReturn = rapid.Bool().Draw(t, "partial return")
		l.HoldUntil = l.Committed + drawMinutes(t, 60, "hold")
		l.BillingStep = cluster.Duration(drawMinutes(t, 60, "billing step"))
		loans = append(loans, l)
	}
	return loans
}

func drawIdle(t *rapid.T) (c cluster.IdleClock) {
	at := start
	for range rapid.IntRange(0, 4).Draw(t, "lots") {
		at += drawMinutes(t, 20, "later")
		c = c.Follow(rapid.Int64Range(0, 9).Draw(t, "idle"), at)
	}
	return c
}

func TestSharesAreNoMoreThanWhatIsRipeAndBorrowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loans, idle := drawLoans(t, 5), drawIdle(t)
		idleTime := cluster.Duration(drawMinutes(t, 20, "idle time"))
		now := start + 60*mins + drawMinutes(t, 90, "now")
		ripe := idle.Ripe(idleTime, now)
		shuffled := rapid.Permutation(loans).Draw(t, "order")
		var sum int64
		for _, l := range loans {
			give, again := Share(loans, idle, idleTime, l.ID, now)
			sum += give
			switch {
			case give < 0 || give > l.Borrowed:
				t.Fatalf("%d of %+v", give, l)
			case give > 0 && now < l.HoldUntil:
				t.Fatalf("%d of %+v before its hold is over", give, l)
			case give > 0 && give < l.Borrowed && !l.PartialReturn:
				t.Fatalf("%d of %+v, which goes back whole", give, l)
			case again <= now:
				t.Fatalf("%+v asks again at once: %s", l, again.Sub(now))
			}
			if give2, again2 := Share(shuffled, idle, idleTime, l.ID, now); give2 != give || again2 != again {
				t.Fatalf("another order gives %d, %s instead of %d, %s", give2, again2, give, again)
			}
		}
		if sum > ripe {
			t.Fatalf("%d are shared out, %d are ripe", sum, ripe)
		}
	})
}

// A loan that asks only when it is told to misses no instant at which it could
// have given units back.
func TestNothingIsMissedBeforeItIsTimeToAskAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loans, idle := drawLoans(t, 1), drawIdle(t)
		idleTime := cluster.Duration(drawMinutes(t, 20, "idle time"))
		now := start + 60*mins + drawMinutes(t, 90, "now")
		give, again := Share(loans, idle, idleTime, loans[0].ID, now)
		if give > 0 {
			return
		}
		for at := now; at < again; at += cluster.Time(30 * cluster.Second) {
			if missed, _ := Share(loans, idle, idleTime, loans[0].ID, at); missed > 0 {
				t.Fatalf("asked at %s, again at %s; could give %d at %s", now.Clock(), again.Clock(), missed, at.Clock())
			}
		}
	})
}

func TestReturnableIsTheFirstInstantThatMakesSense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLoans(t, 1)[0]
		now := l.Committed + drawMinutes(t, 200, "now")
		at := Returnable(l, now)
		if at < now || at < l.HoldUntil || Returnable(l, at) != at {
			t.Fatalf("%+v at %s is returnable at %s", l, now.Clock(), at.Clock())
		}
		if later := Returnable(l, now.Add(cluster.Second)); later < at {
			t.Fatalf("a second later it is returnable earlier: %s, not %s", later.Clock(), at.Clock())
		}
		if at > now && l.BillingStep > 0 && at != l.HoldUntil {
			left := l.BillingStep - at.Sub(l.Committed)%l.BillingStep
			if left != returnLead(l.BillingStep) {
				t.Fatalf("%+v is returnable at %s, %s before the next step", l, at.Clock(), left)
			}
		}
	})
}

func TestPlansStayWithinDemandHeadroomAndRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		view := View{Provider: "pool", Room: map[string]int64{}}
		for i := range rapid.IntRange(0, 4).Draw(t, "resources") {
			name := fmt.Sprintf("r%d", i)
			view.Demand = append(view.Demand, demandFor(name, rapid.Int64Range(-1, 9).Draw(t, "demand")))
			view.Room[name] = rapid.Int64Range(-1, 9).Draw(t, "room")
			view.Offers = append(view.Offers, cluster.Offer{
				Provider: "pool", Resource: name, Headroom: rapid.Int64Range(0, 9).Draw(t, "headroom"),
				MaxRequest: rapid.Int64Range(0, 4).Draw(t, "max request"), MaxOpen: rapid.Int64Range(0, 2).Draw(t, "max open"),
			})
			for range rapid.IntRange(0, 2).Draw(t, "open") {
				view.Open = append(view.Open, requested(name))
			}
		}
		plans := Borrow(view, start)
		sum := map[string]int64{}
		for _, p := range plans {
			sum[p.Demand.Resource] += p.Units
			if p.Units < 1 {
				t.Fatalf("a plan of nothing: %+v", p)
			}
		}
		for i, d := range view.Demand {
			if n := sum[d.Resource]; n > max(0, min(d.Units, view.Offers[i].Headroom, view.Room[d.Resource])) {
				t.Fatalf("%d %s planned, %d demanded, headroom %d, room %d", n, d.Resource, d.Units, view.Offers[i].Headroom, view.Room[d.Resource])
			}
		}
		view.Demand = rapid.Permutation(view.Demand).Draw(t, "demand in order")
		view.Offers = rapid.Permutation(view.Offers).Draw(t, "offers in order")
		if again := Borrow(view, start); !reflect.DeepEqual(plans, again) {
			t.Fatalf("another order gives %+v instead of %+v", again, plans)
		}
	})
}

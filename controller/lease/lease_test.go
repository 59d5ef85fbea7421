package lease

import (
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
)

var rules = cluster.LeaseRules{TimeToLive: 15 * cluster.Second, Settle: cluster.Minute}

// farm is a book, and the time at which it is looked at.
type farm struct {
	Book
	t       *testing.T
	now     cluster.Time
	changes []Change
}

func newFarm(t *testing.T, providers ...string) *farm {
	return &farm{Book: Book{Providers: providers}, t: t, now: 1_000_000}
}

func (f *farm) call(c Call) error {
	f.t.Helper()
	if c.Instance == "" {
		c.Instance = c.Name + "-1"
	}
	if c.Owns == nil {
		c.Owns = f.Providers
	}
	changes, err := f.Tend(c, f.now, rules)
	f.changes = append(f.changes, changes...)
	return err
}

// tend has provisioners call, which give up what they are to.
func (f *farm) tend(names ...string) {
	f.t.Helper()
	for _, name := range names {
		var gives []string
		for _, l := range f.Held(name) {
			if l.MoveTo != "" {
				gives = append(gives, l.Provider)
			}
		}
		if err := f.call(Call{Name: name, Gives: gives}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// pass lets time pass, in which the provisioners go on calling.
func (f *farm) pass(d cluster.Duration, names ...string) {
	f.t.Helper()
	for end := f.now.Add(d); f.now < end; f.now = f.now.Add(5 * cluster.Second) {
		f.tend(names...)
	}
}

// wants checks who holds what, as in "a:1 b:1 -:0": holder and epoch by provider.
func (f *farm) wants(want string) {
	f.t.Helper()
	var have []string
	for _, l := range f.Leases {
		holder := l.Holder
		if holder == "" {
			holder = "-"
		}
		have = append(have, holder+":"+string(rune('0'+l.Epoch)))
	}
	if got := strings.Join(have, " "); got != want {
		f.t.Errorf("leases are %s, want %s", got, want)
	}
}

func TestTheFirstToComeGetsAllAndTheNextWaitsUntilItHasSettled(t *testing.T) {
	f := newFarm(t, "p", "q", "r", "s")
	f.tend("a", "b")
	f.wants("a:1 a:1 a:1 a:1")
	f.pass(rules.Settle-cluster.Second, "a", "b")
	f.wants("a:1 a:1 a:1 a:1")
	f.pass(cluster.Minute, "a", "b")
	f.wants("b:2 b:2 a:1 a:1")
}

func TestOfTwoWhoAreThereEachGetsHalfOfWhatIsFree(t *testing.T) {
	f := newFarm(t, "p", "q", "r", "s")
	f.tend("a", "b", "c")
	f.now = f.now.Add(rules.TimeToLive / 2)
	f.tend("b", "c")
	f.now = f.now.Add(rules.TimeToLive / 2)
	f.tend("b", "c", "b")
	f.wants("b:2 c:2 b:2 c:2")
}

func TestALeaseEndsWhereItsHolderIsNotHeardOfInTime(t *testing.T) {
	f := newFarm(t, "p")
	f.tend("a", "b")
	f.now = f.now.Add(rules.TimeToLive - 1)
	f.tend("b")
	f.wants("a:1")
	if err := f.Check("p", "a", 1, f.now); err != nil {
		t.Error(err)
	}
	f.now++
	if err := f.Check("p", "a", 1, f.now); err == nil || !strings.Contains(err.Error(), "not renewed in time") {
		t.Errorf("a lease that has ended lets a change in: %v", err)
	}
	f.tend("b")
	f.wants("b:2")
	if err := f.Check("p", "a", 1, f.now); err == nil || !strings.Contains(err.Error(), "b's under epoch 2") {
		t.Errorf("an old holder may act: %v", err)
	}
	f.tend("a")
	f.wants("b:2")
}

func TestTheSameHolderGetsANewEpochOnceItsLeaseHasEnded(t *testing.T) {
	f := newFarm(t, "p")
	f.tend("a")
	f.now = f.now.Add(rules.TimeToLive)
	f.tend("a")
	f.wants("a:2")
	if err := f.Check("p", "a", 1, f.now); err == nil {
		t.Error("what was begun under the old epoch may still act")
	}
}

func TestAnotherProcessUnderOneNameWaitsForTheFirst(t *testing.T) {
	f := newFarm(t, "p")
	f.tend("a")
	if err := f.call(Call{Name: "a", Instance: "a-2"}); err == nil || !strings.Contains(err.Error(), "another process is provisioner a") {
		t.Errorf("two processes act under one name: %v", err)
	}
	f.now = f.now.Add(rules.TimeToLive)
	if err := f.call(Call{Name: "a", Instance: "a-2"}); err != nil {
		t.Error(err)
	}
	f.wants("a:2")
}

func TestWhoStopsGivesAllUpAtOnce(t *testing.T) {
	f := newFarm(t, "p", "q")
	f.tend("a", "b")
	if err := f.call(Call{Name: "a", Stops: true}); err != nil {
		t.Fatal(err)
	}
	f.wants("-:1 -:1")
	f.tend("b")
	f.wants("b:2 b:2")
	if len(f.Provisioners) != 1 {
		t.Errorf("who stopped is still there: %v", f.Provisioners)
	}
}

func TestWhoPrefersAProviderGetsItOnceItHasSettled(t *testing.T) {
	f := newFarm(t, "p", "q")
	f.tend("a")
	fond := Call{Name: "b", Prefers: []string{"p", "q"}}
	for range 20 {
		f.now = f.now.Add(5 * cluster.Second)
		for _, l := range f.Held("a") {
			if l.MoveTo == "b" {
				_ = f.call(Call{Name: "a", Gives: []string{l.Provider}})
			}
		}
		f.tend("a")
		if err := f.call(fond); err != nil {
			t.Fatal(err)
		}
	}
	f.wants("b:2 b:2")
}

func TestWhoMayNotOwnAProviderNeverGetsIt(t *testing.T) {
	f := newFarm(t, "p")
	if err := f.call(Call{Name: "a", Owns: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	f.wants("-:0")
	f.tend("b")
	f.wants("b:1")
	if err := f.call(Call{Name: "b", Owns: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	f.wants("-:1")
}

func TestAnOperatorsMoveGoesByWayOfTheHolderAndStays(t *testing.T) {
	f := newFarm(t, "p", "q")
	f.tend("a", "b")
	if _, err := f.Move("p", "b", f.now); err != nil {
		t.Fatal(err)
	}
	f.wants("a:1 a:1")
	f.tend("b") // it may not be had before the holder has ended what it does
	f.wants("a:1 a:1")
	f.tend("a")
	f.wants("-:1 a:1")
	f.tend("b")
	f.wants("b:2 a:1")
	if _, err := f.Move("q", "b", f.now); err != nil {
		t.Fatal(err)
	}
	f.pass(5*cluster.Minute, "a", "b")
	f.wants("b:2 b:2")
}

func TestAMoveToWhoGoesAwayIsForgotten(t *testing.T) {
	f := newFarm(t, "p")
	f.tend("a", "b")
	if _, err := f.Move("p", "b", f.now); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(rules.TimeToLive - 1)
	if err := f.call(Call{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	f.now++ // now b is not heard of any more
	if err := f.call(Call{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	f.pass(cluster.Minute, "a")
	f.wants("a:1")
	if f.Leases[0].Pinned || f.Leases[0].MoveTo != "" {
		t.Errorf("the move is not forgotten: %+v", f.Leases[0])
	}
}

func TestAMoveThatCannotBeIsRefused(t *testing.T) {
	f := newFarm(t, "p")
	f.tend("a")
	_ = f.call(Call{Name: "b", Owns: []string{}})
	for _, c := range []struct{ provider, to, want string }{
		{"x", "a", `no provider "x"`}, {"p", "x", `no provisioner "x"`}, {"p", "b", "may not act for p"},
	} {
		if _, err := f.Move(c.provider, c.to, f.now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("move %s to %s: %v, want %q", c.provider, c.to, err, c.want)
		}
	}
}

func TestEveryChangeOfALeaseSaysWhy(t *testing.T) {
	f := newFarm(t, "p", "q", "r")
	f.pass(3*cluster.Minute, "a", "b")
	f.pass(cluster.Minute, "b")
	if len(f.changes) < 6 || slices.ContainsFunc(f.changes, func(c Change) bool { return c.Why == "" || c.Before == c.After }) {
		t.Errorf("changes are %+v", f.changes)
	}
}

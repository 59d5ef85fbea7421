package ledger

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

// deed is one write to a host's row, or a fact, and what is on the host when it comes.
type deed struct {
	step   int64
	change HostChange // or
	fact   HostFact
	now    cluster.Time
	jobs   int64
}

// drawDeeds draws the story of a host: most of it makes sense where it stands, and
// some of it is refused.
func drawDeeds(t *rapid.T) []deed {
	start := []deed{
		{change: IntendHost{HostRequest: cluster.HostRequest{ID: hostID, Provider: "cloud", Template: "c16"}, Capacity: size, Terms: cluster.HostTerms{JoinWithin: cluster.Hour}}},
		{change: ExpectHost{Instance: "i-1", Name: "c16-1"}},
		{fact: Join{size}},
	}
	var deeds []deed
	step := int64(0)
	for i := range rapid.SampledFrom([]int{3, 8, 15, 25}).Draw(t, "deeds") {
		d := deed{change: drawHostChange(t)}
		switch {
		case i < len(start) && rapid.IntRange(0, 9).Draw(t, "in order") > 0:
			d = start[i]
		case rapid.IntRange(0, 2).Draw(t, "fact") == 0:
			d = deed{fact: drawFact(t)}
		}
		if d.change != nil {
			step++
		}
		d.step, d.now, d.jobs = step, now.Add(cluster.Duration(i)*cluster.Minute), rapid.SampledFrom([]int64{0, 0, 1, 3}).Draw(t, "jobs")
		deeds = append(deeds, d)
	}
	return deeds
}

func drawHostChange(t *rapid.T) HostChange {
	drain := cluster.Drain{
		By: rapid.SampledFrom([]string{"admin/eve", "cloud"}).Draw(t, "by"), Forced: rapid.Bool().Draw(t, "forced"),
		Deadline: now.Add(cluster.Hour), Action: cluster.DrainRequeue,
	}
	return rapid.SampledFrom([]HostChange{
		IntendHost{HostRequest: cluster.HostRequest{ID: hostID}},
		ExpectHost{Instance: "i-2"},
		RefuseHost{Why: "quota"},
		LapseHost{Why: "late"},
		DrainHost{drain},
		DrainHost{drain},
		DrainHost{drain},
		UndrainHost{By: "admin/eve"},
		UndrainHost{By: "admin/eve"},
		KeepHost{cluster.Keep{By: "admin/eve", Why: "a demo"}},
		ReleaseHost{By: "admin/eve"},
		StopJobs{Why: "time is up"},
		FenceHost{Idle: rapid.Bool().Draw(t, "idle"), Why: "empty"},
		ConfirmHost{},
		LoseHost{Why: "gone"},
	}).Draw(t, "change")
}

func drawFact(t *rapid.T) HostFact {
	return rapid.SampledFrom([]HostFact{
		Join{size}, Seen{Health: cluster.Suspect}, Seen{Health: cluster.Lost}, Seen{Health: cluster.Well}, Load{Jobs: 0}, Load{Jobs: 1},
	}).Draw(t, "fact")
}

// to does the deed to a row, and answers the row after it.
func (d deed) to(row cluster.ElasticHost) (cluster.ElasticHost, HostEvent, error) {
	h := Host{Row: row, Jobs: d.jobs, Demanded: 1}
	if d.fact != nil {
		return h.Note(d.fact, d.now)
	}
	return h.Write(hostID, d.step, d.change, d.now)
}

// Activities are repeated, late ones too. Whatever is written again, and whenever,
// the row ends as if it had been written once.
func TestRepeatedWritesOfAHostAnywhereEndInTheSameRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var once, again cluster.ElasticHost
		var written []deed
		for _, d := range drawDeeds(t) {
			if once.State == "" && d.change == nil {
				continue
			}
			var err error
			once, _, err = d.to(once)
			again, _, _ = d.to(again)
			if err != nil || d.change == nil {
				continue
			}
			written = append(written, d)
			for range rapid.IntRange(0, 3).Draw(t, "repetitions") {
				late := rapid.SampledFrom(written).Draw(t, "again")
				late.now = d.now + 1
				row, event, _ := late.to(again)
				if event.Kind != "" || !reflect.DeepEqual(row, again) {
					t.Fatalf("%+v was written twice: %+v", late, event)
				}
			}
		}
		if !reflect.DeepEqual(once, again) {
			t.Fatalf("%+v\nbecomes\n%+v", once, again)
		}
	})
}

func TestTheRulesOfHostsHoldAfterEveryDeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var row cluster.ElasticHost
		for _, d := range drawDeeds(t) {
			if row.State == "" && d.change == nil {
				continue
			}
			before := row
			after, event, err := d.to(row)
			if err != nil && (!reflect.DeepEqual(after, before) || event.Kind != "") {
				t.Fatalf("refused %+v changed the row: %+v", d, after)
			}
			checkHost(t, d, before, after)
			row = after
		}
	})
}

// checkHost checks one deed: what is closed stays as it is, what has jobs is not
// fenced, states follow each other, and no drain is forgotten that cannot be undone.
func checkHost(t *rapid.T, d deed, before, after cluster.ElasticHost) {
	switch {
	case before.State != "" && !before.State.Open() && !reflect.DeepEqual(before, after):
		t.Fatalf("%+v was closed and is %+v", before, after)
	case before.State.Here() && after.State == cluster.HostLeaving && d.jobs > 0:
		t.Fatalf("a host with %d jobs leaves: %+v", d.jobs, d)
	case (after.State == cluster.HostDraining) != (after.Drain != nil && after.State.Here()):
		t.Fatalf("%s with drain %+v", after.State, after.Drain)
	case after.State.Open() == (after.Closed > 0):
		t.Fatalf("%s, closed at %s", after.State, after.Closed)
	case after.State.Made() && (after.Instance == "" || after.Made == 0):
		t.Fatalf("%s without a machine", after.State)
	case before.State == cluster.HostDraining && after.State == cluster.HostJoined && (before.Drain.Forced || before.Drain.Requeued > 0):
		t.Fatalf("the drain %+v was undone", before.Drain)
	case before.Drain != nil && before.Drain.Forced && after.Drain != nil && !after.Drain.Forced:
		t.Fatalf("the drain %+v became %+v", before.Drain, after.Drain)
	case order(after.State) < order(before.State):
		t.Fatalf("%s became %s", before.State, after.State)
	}
}

// order is how far in its life a host is.
func order(s cluster.HostState) int {
	return map[cluster.HostState]int{
		"": 0, cluster.HostRequested: 1, cluster.HostExpected: 2, cluster.HostJoined: 3, cluster.HostDraining: 3,
		cluster.HostLeaving: 4, cluster.HostReturned: 5, cluster.HostRefused: 5,
	}[s]
}

package ledger

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
)

const hostID = "host/c16-1"

// size is what a template promises.
var size = cluster.Capacity{CPUs: 16, MemoryMB: 65536}

// hostIn is the books around a host in a state.
func hostIn(state cluster.HostState) Host {
	row := cluster.ElasticHost{
		ID: hostID, Provider: "cloud", Template: "c16", State: state, Capacity: size, Step: 1, Intended: now - 100,
		HostTerms: cluster.HostTerms{JoinWithin: 15 * cluster.Minute, IdleTime: 10 * cluster.Minute, MinimumHold: cluster.Hour},
	}
	if state != cluster.HostRequested && state != cluster.HostRefused {
		row.Instance, row.Name, row.Made, row.JoinBy = "i-1", "c16-1", now-50, now+50
	}
	if state.Here() {
		row.Joined = now - 40
	}
	if state == cluster.HostDraining {
		row.Drain = &cluster.Drain{By: "admin/eve", Why: "maintenance", Since: now - 30, Action: cluster.DrainWait}
	}
	return Host{Row: row, Demanded: 1}
}

// with changes the row of books.
func (h Host) with(change func(*cluster.ElasticHost)) Host {
	change(&h.Row)
	return h
}

// briefHost is a row's state, and what is special about it.
func briefHost(r cluster.ElasticHost, err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return string(refusal.Code)
	}
	text := string(r.State)
	if r.Keep != nil {
		text += " kept"
	}
	if r.Drain != nil && r.Drain.Requeued > 0 {
		text += " stopped"
	}
	if r.Health != cluster.Well {
		text += " " + string(r.Health)
	}
	return text
}

// hostStates are books in every state, and in those that differ within one.
var hostStates = []struct {
	name string
	in   Host
}{
	{"no row", Host{Demanded: 1}},
	{"requested", hostIn(cluster.HostRequested)},
	{"expected", hostIn(cluster.HostExpected)},
	{"joined", hostIn(cluster.HostJoined)},
	{"joined, with a job", func() Host { h := hostIn(cluster.HostJoined); h.Jobs = 1; return h }()},
	{"joined and kept", hostIn(cluster.HostJoined).with(func(r *cluster.ElasticHost) { r.Keep = &cluster.Keep{By: "admin/eve", Why: "a demo"} })},
	{"draining", hostIn(cluster.HostDraining)},
	{"draining, with a job", func() Host { h := hostIn(cluster.HostDraining); h.Jobs = 1; return h }()},
	{"draining for its provider", hostIn(cluster.HostDraining).with(func(r *cluster.ElasticHost) { r.Drain.Forced = true })},
	{"draining, jobs stopped", hostIn(cluster.HostDraining).with(func(r *cluster.ElasticHost) { r.Drain.Requeued = now - 5 })},
	{"leaving", hostIn(cluster.HostLeaving)},
	{"returned", hostIn(cluster.HostReturned)},
	{"refused", hostIn(cluster.HostRefused)},
}

func TestEveryChangeOfAHostInEveryState(t *testing.T) {
	drain := cluster.Drain{By: "admin/eve", Why: "maintenance", Action: cluster.DrainWait}
	taken := cluster.Drain{By: "cloud", Why: "it is taken", Action: cluster.DrainRequeue, Forced: true}
	tests := []struct {
		change HostChange
		want   string // by states
	}{
		{
			IntendHost{HostRequest: cluster.HostRequest{ID: hostID}},
			"requested, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, closed, closed",
		},
		{
			ExpectHost{Instance: "i-1", Name: "c16-1"},
			"unknown, expected, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, closed, closed",
		},
		{
			RefuseHost{Why: "quota"},
			"unknown, refused, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, closed, closed",
		},
		{
			LapseHost{Why: "late"},
			"unknown, invalid, leaving, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, closed, closed",
		},
		{
			DrainHost{drain},
			"unknown, invalid, invalid, draining, draining, hold, draining, draining, invalid, draining stopped, invalid, closed, closed",
		},
		{
			DrainHost{taken},
			"unknown, invalid, invalid, draining, draining, draining kept, draining, draining, draining, draining stopped, invalid, closed, closed",
		},
		{
			UndrainHost{By: "admin/eve"},
			"unknown, invalid, invalid, invalid, invalid, invalid, joined, joined, invalid, invalid, invalid, closed, closed",
		},
		{
			KeepHost{cluster.Keep{By: "admin/eve", Why: "a demo"}},
			"unknown, invalid, invalid, joined kept, joined kept, joined kept, invalid, invalid, invalid, invalid, invalid, closed, closed",
		},
		{
			ReleaseHost{By: "admin/eve"},
			"unknown, invalid, invalid, invalid, invalid, joined, invalid, invalid, invalid, invalid, invalid, closed, closed",
		},
		{
			StopJobs{Why: "maintenance"},
			"unknown, invalid, invalid, invalid, invalid, invalid, draining stopped, draining stopped, draining stopped, draining stopped, invalid, closed, closed",
		},
		{
			FenceHost{AskAgain: now + 9, Why: "empty"},
			"unknown, invalid, invalid, joined, joined, joined kept, leaving, draining, leaving, leaving stopped, invalid, closed, closed",
		},
		{
			FenceHost{Idle: true, AskAgain: now + 9, Why: "idle"},
			"unknown, invalid, invalid, leaving, joined, joined kept, leaving, draining, leaving, leaving stopped, invalid, closed, closed",
		},
		{
			ConfirmHost{},
			"unknown, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, returned, closed, closed",
		},
		{
			LoseHost{Why: "gone"},
			"unknown, invalid, returned, returned, returned, returned kept, returned, returned, returned, returned stopped, returned, closed, closed",
		},
	}
	for i, test := range tests {
		var got []string
		for _, s := range hostStates {
			before := s.in
			row, event, err := s.in.Write(hostID, 2, test.change, now)
			got = append(got, briefHost(row, err))
			if !reflect.DeepEqual(s.in, before) {
				t.Errorf("%s, %s: it wrote into the books that it was given", s.name, test.change.kind())
			}
			if err != nil && (event.Kind != "" || !reflect.DeepEqual(row, before.Row)) {
				t.Errorf("%s, %s: refused, and changed: %+v", s.name, test.change.kind(), event)
			}
			if err == nil && (event.Kind != test.change.kind() || row.Step != 2 || !reflect.DeepEqual(event.After, row)) {
				t.Errorf("%s: event %+v", s.name, event)
			}
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%d %s:\ngot  %s\nwant %s", i, test.change.kind(), text, test.want)
		}
	}
}

func TestEveryFactOfAHostInEveryState(t *testing.T) {
	tests := []struct {
		fact HostFact
		want string // by states
	}{
		{
			Join{size},
			"closed, joined, joined, joined, joined kept, draining, draining, draining, draining stopped, closed, closed, closed",
		},
		{
			Seen{Health: cluster.Suspect, Why: "silent"},
			"invalid, invalid, joined suspect, joined suspect, joined kept suspect, draining suspect, draining suspect, draining suspect, draining stopped suspect, invalid, invalid, invalid",
		},
		{
			Seen{Health: cluster.Lost, Why: "silent"},
			"invalid, invalid, joined lost, joined lost, joined kept lost, draining lost, draining lost, draining lost, draining stopped lost, invalid, invalid, invalid",
		},
		{
			Seen{Health: cluster.Well, Why: "heard of"},
			"invalid, invalid, joined, joined, joined kept, draining, draining, draining, draining stopped, invalid, invalid, invalid",
		},
	}
	for i, test := range tests {
		var got []string
		for _, s := range hostStates[1:] {
			row, event, err := s.in.Note(test.fact, now)
			got = append(got, briefHost(row, err))
			if (err != nil || reflect.DeepEqual(row, s.in.Row)) != (event.Kind == "") {
				t.Errorf("%s, %s: event %+v", s.name, test.fact.kind(), event)
			}
			if row.Step != s.in.Row.Step {
				t.Errorf("%s: a fact has no step, and %d became %d", s.name, s.in.Row.Step, row.Step)
			}
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%d %s:\ngot  %s\nwant %s", i, test.fact.kind(), text, test.want)
		}
	}
}

func TestAnIntentIsRefusedWhereNoHostIsDemandedAnyMore(t *testing.T) {
	row, event, err := Host{}.Write(hostID, 1, IntendHost{HostRequest: cluster.HostRequest{ID: hostID, Template: "c16", Reason: "a job waits"}}, now)
	if err != nil || row.State != cluster.HostRefused || row.Closed != now || row.Why != "not asked for: no host of c16 is demanded any more" || !event.Material() {
		t.Errorf("%+v (%v)", row, err)
	}
}

func TestAnExpectedHostHasItsDeadlines(t *testing.T) {
	row, _, err := hostIn(cluster.HostRequested).Write(hostID, 2, ExpectHost{Instance: "i-7", Name: "node7", Address: "10.0.0.7"}, now)
	if err != nil || row.Made != now || row.JoinBy != now.Add(15*cluster.Minute) || row.HoldUntil != now.Add(cluster.Hour) || row.Instance != "i-7" || row.Name != "node7" || row.Address != "10.0.0.7" {
		t.Errorf("%+v (%v)", row, err)
	}
}

func TestAHostJoinsUntilItsDeadline(t *testing.T) {
	h := hostIn(cluster.HostExpected)
	for _, test := range []struct {
		at   cluster.Time
		want string
	}{{now + 49, "joined"}, {now + 50, "joined"}, {now + 51, "stale"}} {
		row, _, err := h.Note(Join{size}, test.at)
		if got := briefHost(row, err); got != test.want {
			t.Errorf("%d before its deadline: %s", h.Row.JoinBy-test.at, got)
		}
	}
}

func TestWhatAHostHasTakesTheTemplatesPlace(t *testing.T) {
	for _, test := range []struct {
		has cluster.Capacity
		why string
	}{
		{size, "joined with 16 cpus and 65536 MB"},
		{cluster.Capacity{CPUs: 16, MemoryMB: 63488}, "joined with 16 cpus and 63488 MB, less than the 16 cpus and 65536 MB that c16 says"},
		{cluster.Capacity{CPUs: 32, MemoryMB: 65536}, "joined with 32 cpus and 65536 MB"},
	} {
		row, _, err := hostIn(cluster.HostExpected).Note(Join{test.has}, now)
		if err != nil || row.Why != test.why || !reflect.DeepEqual(row.Capacity, test.has) || row.Joined != now {
			t.Errorf("%+v (%v)", row, err)
		}
	}
}

func TestASecondDrainTakesOverAllButSinceWhenAndWhetherJobsWereStopped(t *testing.T) {
	h := hostIn(cluster.HostDraining).with(func(r *cluster.ElasticHost) { r.Drain.Requeued = now - 5 })
	first := *h.Row.Drain
	row, _, err := h.Write(hostID, 2, DrainHost{cluster.Drain{By: "admin/ann", Why: "now", Deadline: now + 9, Action: cluster.DrainRequeue}}, now)
	want := cluster.Drain{By: "admin/ann", Why: "now", Deadline: now + 9, Action: cluster.DrainRequeue, Since: now - 30, Requeued: now - 5}
	if err != nil || *row.Drain != want || *h.Row.Drain != first {
		t.Errorf("%+v (%v), of %+v", row.Drain, err, h.Row.Drain)
	}
}

func TestADrainForTheProviderPassesAHold(t *testing.T) {
	h := hostIn(cluster.HostJoined).with(func(r *cluster.ElasticHost) { r.Keep = &cluster.Keep{By: "admin/eve"} })
	row, _, err := h.Write(hostID, 2, DrainHost{cluster.Drain{By: "cloud", Forced: true}}, now)
	if err != nil || row.State != cluster.HostDraining {
		t.Errorf("%s (%v)", row.State, err)
	}
	if row, _, err = (Host{Row: row}).Write(hostID, 3, FenceHost{}, now); err != nil || row.State != cluster.HostLeaving {
		t.Errorf("%s (%v)", row.State, err)
	}
}

func TestAFenceThatDoesNothingKeepsWhenToAskAgain(t *testing.T) {
	row, event, err := hostIn(cluster.HostJoined).Write(hostID, 2, FenceHost{AskAgain: now + 9, Why: "idle"}, now)
	if err != nil || row.AskAgain != now+9 || row.Fenced != 0 || row.Why == "idle" || event.Material() {
		t.Errorf("%+v (%v)", row, err)
	}
	row, event, err = hostIn(cluster.HostJoined).Write(hostID, 2, FenceHost{Idle: true, AskAgain: now + 9, Why: "idle"}, now)
	if err != nil || row.AskAgain != 0 || row.Fenced != now || row.Why != "idle" || !event.Material() {
		t.Errorf("%+v (%v)", row, err)
	}
}

func TestTheStepsOfAHostAreWrittenOnceAndInOrder(t *testing.T) {
	for _, test := range []struct {
		step int64
		want string
	}{{6, "draining"}, {60, "draining"}, {5, "joined"}, {4, "stale"}} {
		h := hostIn(cluster.HostJoined).with(func(r *cluster.ElasticHost) { r.Step = 5 })
		row, event, err := h.Write(hostID, test.step, DrainHost{}, now)
		if got := briefHost(row, err); got != test.want || (event.Kind != "") != (test.step > 5) {
			t.Errorf("step %d: %s, event %+v", test.step, got, event)
		}
	}
}

func TestAClosedHostAnswersItsLastStepAgain(t *testing.T) {
	first, _, err := hostIn(cluster.HostLeaving).Write(hostID, 2, ConfirmHost{}, now)
	if err != nil || first.Closed != now {
		t.Fatalf("%+v (%v)", first, err)
	}
	again, event, err := Host{Row: first}.Write(hostID, 2, ConfirmHost{}, now+1)
	if err != nil || !reflect.DeepEqual(first, again) || event.Kind != "" {
		t.Errorf("%+v, event %+v (%v)", again, event, err)
	}
}

func TestTheTimeWithJobsIsSummed(t *testing.T) {
	h := hostIn(cluster.HostJoined)
	for _, load := range []struct {
		at   cluster.Time
		jobs int64
		kind string
	}{{now, 1, "busy"}, {now + 10, 2, ""}, {now + 20, 1, ""}, {now + 30, 0, "emptied"}, {now + 35, 0, ""}, {now + 50, 1, "busy"}} {
		row, event, err := h.Note(Load{load.jobs}, load.at)
		if err != nil || event.Kind != load.kind {
			t.Errorf("%d jobs: event %q, want %q (%v)", load.jobs, event.Kind, load.kind, err)
		}
		h.Row = row
	}
	if used := h.Row.Used(now + 60); used != 40 {
		t.Errorf("used for %s", used)
	}
	row, _, err := h.Write(hostID, 2, LoseHost{Why: "gone"}, now+70)
	if err != nil || row.Used(now+1000) != 50 {
		t.Errorf("used for %s (%v)", row.Used(now+1000), err)
	}
}

func TestRefusalsOfAHostSayWhy(t *testing.T) {
	for _, test := range []struct {
		in     Host
		change HostChange
		want   string
	}{
		{Host{}, ConfirmHost{}, "there is no host host/c16-1 to confirm"},
		{hostIn(cluster.HostReturned), FenceHost{}, "host host/c16-1 is returned and closed"},
		{hostStates[5].in, DrainHost{}, "host host/c16-1 is kept by admin/eve (a demo); release it first"},
		{hostStates[8].in, UndrainHost{}, "the drain of host host/c16-1 cannot be undone: maintenance"},
		{hostStates[9].in, UndrainHost{}, "the drain of host host/c16-1 cannot be undone: its jobs have been told to stop"},
	} {
		if _, _, err := test.in.Write(hostID, 2, test.change, now); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

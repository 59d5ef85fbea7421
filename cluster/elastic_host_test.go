package cluster

import "testing"

func TestWhatAHostStandsForInEachState(t *testing.T) {
	tests := []struct {
		state            HostState
		open, here, made bool
	}{
		{HostRequested, true, false, false},
		{HostExpected, true, false, true},
		{HostJoined, true, true, true},
		{HostDraining, true, true, true},
		{HostLeaving, true, false, true},
		{HostReturned, false, false, false},
		{HostRefused, false, false, false},
	}
	for _, test := range tests {
		t.Run(string(test.state), func(t *testing.T) {
			if s := test.state; s.Open() != test.open || s.Here() != test.here || s.Made() != test.made {
				t.Errorf("open: %t, here: %t, made: %t", s.Open(), s.Here(), s.Made())
			}
		})
	}
}

func TestAHostIsCalledByItsIDWhereItsProviderGivesNoName(t *testing.T) {
	for id, want := range map[string]string{"host/c16-7": "c16-7", "c16-7": "c16-7", "host/a/c16-7": "c16-7"} {
		if got := (ElasticHost{ID: id}).DefaultName(); got != want || !ValidName(got) {
			t.Errorf("%s is called %q, want %q", id, got, want)
		}
	}
}

func TestForHowLongAHostIsPaidForAndUsed(t *testing.T) {
	const begin = Time(1_767_261_600_000)
	at := func(m Duration) Time { return begin.Add(m * Minute) }
	tests := []struct {
		name       string
		host       ElasticHost
		paid, used Duration // in minutes, at minute 60
	}{
		{"only asked for", ElasticHost{Intended: begin}, 0, 0},
		{"refused", ElasticHost{Intended: begin, Closed: at(5)}, 0, 0},
		{"made", ElasticHost{Made: at(10)}, 50, 0},
		{"with jobs since a while", ElasticHost{Made: at(10), BusySince: at(40)}, 50, 20},
		{"with jobs again", ElasticHost{Made: at(10), BusySince: at(40), Busy: 5 * Minute}, 50, 25},
		{"with jobs before", ElasticHost{Made: at(10), Busy: 5 * Minute}, 50, 5},
		{"gone", ElasticHost{Made: at(10), Busy: 5 * Minute, Closed: at(30)}, 20, 5},
		{"gone with jobs on it", ElasticHost{Made: at(10), BusySince: at(25), Closed: at(30)}, 20, 5},
		{"made in what is the future by a clock set back", ElasticHost{Made: at(70), BusySince: at(80)}, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			paid, used := test.host.Paid(at(60)), test.host.Used(at(60))
			if paid != test.paid*Minute || used != test.used*Minute {
				t.Errorf("paid for %s and used for %s, want %s and %s", paid, used, test.paid*Minute, test.used*Minute)
			}
			if test.host.Busy <= test.paid*Minute && used > paid {
				t.Errorf("used for longer than it is paid for")
			}
		})
	}
}

func TestAnExpectedHostIsWhatItsRowSays(t *testing.T) {
	row := ElasticHost{
		ID: "host/c16-7", Template: "c16", Capacity: Capacity{CPUs: 16}, Intended: 1000,
		HostTerms: HostTerms{Latency: Minute, JoinWithin: 15 * Minute},
	}
	x := row.Expected()
	if x.ID != row.ID || x.Template != "c16" || x.CPUs != 16 || x.Requested != 1000 || x.Expected != Time(1000).Add(Minute) {
		t.Errorf("got %+v", x)
	}
	row.Latency = 0 // its provider does not say how long it takes
	if x := row.Expected(); x.Expected != Time(1000).Add(15*Minute) {
		t.Errorf("expected by %s", x.Expected)
	}
	row.JoinBy = Time(1000).Add(20 * Minute) // it is made
	if x := row.Expected(); x.Expected != row.JoinBy {
		t.Errorf("expected by %s", x.Expected)
	}
}

package slurm

import (
	"reflect"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

func TestResources(t *testing.T) {
	names := map[string]string{"vcs": "vcs@pool"}
	held := func(state string, units int64) []Reservation {
		return []Reservation{{Name: "theirs", State: "ACTIVE", Licences: map[string]int64{"vcs@pool": 2}}, {Name: "xce-withheld.vcs@pool", State: state, Licences: map[string]int64{"vcs@pool": units}}}
	}
	for name, c := range map[string]struct {
		licence      Licence
		reservations []Reservation
		want         backend.Resource
		warning      string
	}{
		"withheld and reserved":               {Licence{Total: 10, Used: 2, Reserved: 5}, held("ACTIVE", 3), backend.Resource{Ceiling: 10, Used: 2, Withheld: 3, Reserved: 2}, ""},
		"our reservation is not on":           {Licence{Total: 10, Reserved: 2}, held("INACTIVE", 3), backend.Resource{Ceiling: 10, Reserved: 2}, ""},
		"there is none":                       {Licence{Total: 10}, nil, backend.Resource{Ceiling: 10}, ""},
		"as many are used as are had":         {Licence{Total: 10, Used: 7, Reserved: 5}, held("ACTIVE", 3), backend.Resource{Ceiling: 10, Used: 7, Withheld: 3, Reserved: 2}, ""},
		"more jobs were started than are had": {Licence{Total: 10, Used: 8, Reserved: 5}, held("ACTIVE", 3), backend.Resource{Ceiling: 10, Used: 8, Withheld: 3, Reserved: 2}, "8 tokens of licence vcs@pool are used, and 7 are had"},
		"Free is what nobody can have":        {Licence{Total: 420, Used: 213, Free: 205, Reserved: 359, LastConsumed: 215, Deficit: 2}, held("ACTIVE", 357), backend.Resource{Ceiling: 420, Used: 213, Withheld: 357, Reserved: 2, Elsewhere: 2}, "213 tokens of licence vcs@pool are used, and 63 are had"},
		"the licence server was never asked":  {Licence{Total: 10, Used: 2, LastConsumed: 0, Deficit: -1}, nil, backend.Resource{Ceiling: 10, Used: 2}, ""},
		"more is used than there is":          {Licence{Total: 5, Used: 13}, held("ACTIVE", 0), backend.Resource{Ceiling: 5, Used: 13}, "13 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			c.licence.Name = "vcs@pool"
			got, warnings := resourcesOf(names, map[string]Licence{"vcs@pool": c.licence}, c.reservations, "xce-withheld")
			if !reflect.DeepEqual(got, map[string]backend.Resource{"vcs": c.want}) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if text := strings.Join(warnings, " "); (text == "") != (c.warning == "") || !strings.Contains(text, c.warning) {
				t.Errorf("warnings %q, want %q", warnings, c.warning)
			}
		})
	}
	got, warnings := resourcesOf(names, nil, held("ACTIVE", 0), "xce-withheld")
	if len(got) != 0 || len(warnings) != 1 || !strings.Contains(warnings[0], "no licence vcs@pool") {
		t.Errorf("a licence that is gone: %v, %q", got, warnings)
	}
}

// What goes wrong with one licence is said of it alone, local and remote ones beside each other.
func TestOneLicenceThatIsGoneLeavesTheOthers(t *testing.T) {
	names := map[string]string{"vcs": "vcs@pool", "sim": "sim", "zebu": "zebu"}
	licences := map[string]Licence{"vcs@pool": {Name: "vcs@pool", Total: 10, Used: 2, Remote: true}, "vcs": {Name: "vcs", Total: 3}, "sim": {Name: "sim", Total: 4}}
	got, warnings := resourcesOf(names, licences, nil, "xce-withheld")
	want := map[string]backend.Resource{"vcs": {Ceiling: 10, Used: 2}, "sim": {Ceiling: 4}}
	if !reflect.DeepEqual(got, want) || len(warnings) != 1 || !strings.Contains(warnings[0], "no licence zebu, which is our zebu") {
		t.Errorf("%+v, %q; want %+v", got, warnings, want)
	}
	view := Translation{Resources: names, Licences: licences, At: viewedAt}
	jobs, _ := view.Jobs([]Job{
		aJob(func(j *Job) { j.ID, j.Licences = 1, map[string]int64{"vcs@pool": 1} }),
		aJob(func(j *Job) { j.ID, j.Licences = 2, map[string]int64{"sim": 1, "zebu": 1} }),
		aJob(func(j *Job) { j.ID, j.State, j.Licences = 3, "RUNNING", map[string]int64{"zebu": 1} }),
		aJob(func(j *Job) { j.ID, j.Licences = 4, nil }), // what asks for none, or for zero of one, needs none
	})
	if jobs[0].Told.Barred != "" || !strings.Contains(jobs[1].Told.Barred, "licence zebu, which is gone") || jobs[2].Tokens["zebu"] != 1 || jobs[3].Tokens != nil || jobs[3].Told.Barred != "" {
		t.Errorf("%+v", jobs)
	}
}

// Units that a job has got since it was listed as waiting are used, and are none that lastingly nobody listed has.
func TestUnitsOfJobsThatBeginMeanwhileAreNotUnlisted(t *testing.T) {
	type reading struct{ before, listed, after int64 }
	for name, c := range map[string]struct {
		readings []reading
		want     int64 // unlisted, at the last of them
	}{
		"all are listed":                      {[]reading{{5, 5, 5}, {5, 5, 5}}, 0},
		"one began after it was listed":       {[]reading{{0, 0, 0}, {0, 0, 6}}, 0},
		"so it was at two readings":           {[]reading{{0, 0, 6}, {6, 6, 9}}, 0},
		"one ended, and the next began":       {[]reading{{6, 6, 6}, {6, 0, 6}}, 0},
		"one ended while jobs were listed":    {[]reading{{6, 6, 6}, {6, 6, 0}}, 0},
		"some are listed never":               {[]reading{{7, 5, 7}, {7, 5, 7}}, 2},
		"and others began":                    {[]reading{{7, 5, 7}, {7, 5, 10}}, 2},
		"some more than before":               {[]reading{{6, 5, 6}, {9, 5, 9}}, 1},
		"some that are listed now":            {[]reading{{7, 5, 7}, {7, 7, 7}}, 0},
		"nothing is known of a time before":   {[]reading{{7, 5, 7}}, 0},
		"fewer are counted than jobs ask for": {[]reading{{2, 5, 2}, {2, 5, 2}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(Options{Licences: map[string]string{"vcs": "foo"}})
			var v backend.View
			for _, r := range c.readings {
				v = backend.View{
					Jobs: []cluster.Job{
						{ID: 1, State: cluster.JobRunning, JobSpec: cluster.JobSpec{Tokens: map[string]int64{"vcs": r.listed}}},
						{ID: 2, State: cluster.JobWaiting, JobSpec: cluster.JobSpec{Tokens: map[string]int64{"vcs": 6}}},
					},
					Resources: map[string]backend.Resource{"vcs": {Ceiling: 20, Used: r.after}},
				}
				b.noteUnlisted(v, map[string]Licence{"foo": {Name: "foo", Total: 20, Used: r.before}})
			}
			if got := v.Resources["vcs"].Unlisted; got != c.want {
				t.Errorf("%d are unlisted, want %d", got, c.want)
			}
		})
	}
}

// What is doubted of one resource leaves what was last believed of it, and the others as they are.
func TestWhatIsDoubtedKeepsWhatWasBelieved(t *testing.T) {
	b := New(Options{Licences: map[string]string{"vcs": "foo", "sim": "bar"}})
	reads := func(doubted map[string]string, vcs, sim int64) map[string]backend.Resource {
		resources := map[string]backend.Resource{"vcs": {Ceiling: 10, Used: vcs}, "sim": {Ceiling: 4, Used: sim}}
		if vcs < 0 {
			delete(resources, "vcs")
		}
		b.believe(resources, doubted)
		return resources
	}
	fell := map[string]string{"foo": "it fell"}
	for i, c := range []struct {
		doubted   map[string]string
		vcs, sim  int64
		want, and backend.Resource
	}{
		{fell, 1, 1, backend.Resource{Ceiling: 10, Used: 1, Doubted: "it fell"}, backend.Resource{Ceiling: 4, Used: 1}},
		{nil, 8, 1, backend.Resource{Ceiling: 10, Used: 8}, backend.Resource{Ceiling: 4, Used: 1}},
		{fell, 0, 2, backend.Resource{Ceiling: 10, Used: 8, Doubted: "it fell"}, backend.Resource{Ceiling: 4, Used: 2}},
		{fell, -1, 3, backend.Resource{Ceiling: 10, Used: 8, Doubted: "it fell"}, backend.Resource{Ceiling: 4, Used: 3}},
		{nil, 0, 3, backend.Resource{Ceiling: 10}, backend.Resource{Ceiling: 4, Used: 3}},
	} {
		if got := reads(c.doubted, c.vcs, c.sim); got["vcs"] != c.want || got["sim"] != c.and {
			t.Errorf("reading %d: %+v, want %+v and %+v", i, got, c.want, c.and)
		}
	}
}

func TestHosts(t *testing.T) {
	nodes := []Node{
		{Name: "n2", CPUs: 4, Base: "IDLE", Booted: 1},
		{Name: "n1", CPUs: 4, Base: "MIXED", Booted: 1, AllocatedCPUs: 2},
		{Name: "xce-large", CPUs: 64, Base: "FUTURE", Flags: []string{"DYNAMIC_NORM"}},
		{Name: "xce-old", CPUs: 64, Base: "FUTURE"},
		{Name: "xce-small-1", CPUs: 2, Base: "IDLE", Booted: 1, Flags: []string{"DYNAMIC_NORM"}},
		{Name: "f1", CPUs: 4, Base: "FUTURE"},
	}
	jobs := []Job{{State: "RUNNING", On: []string{"n1"}}, {State: "COMPLETING", On: []string{"n1", "n2"}}, {State: "PENDING"}}
	hosts, placeholders := hostsAndPlaceholders(nodes, jobs)
	busy := map[string]int64{}
	for _, h := range hosts {
		busy[h.Name] = h.Busy
	}
	if want := map[string]int64{"f1": 0, "n1": 2, "n2": 1, "xce-old": 0, "xce-small-1": 0}; !reflect.DeepEqual(busy, want) || hosts[0].Name != "f1" {
		t.Errorf("busy %v, want %v", busy, want)
	}
	if p := placeholders["large"]; len(placeholders) != 1 || p.Name != "xce-large" || p.CPUs != 64 {
		t.Errorf("placeholders %+v", placeholders)
	}
}

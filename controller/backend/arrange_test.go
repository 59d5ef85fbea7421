package backend

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestArrangeHost(t *testing.T) {
	ready, away := Host{State: HostReady, Removable: true}, Host{State: HostAwaited, Removable: true}
	drained := Host{State: HostClosed, Drained: true, Removable: true}
	theirs := Host{State: HostClosed, Removable: true} // someone else drained it
	for name, c := range map[string]struct {
		row  cluster.HostState
		host *Host
		want Do // "" for nothing
	}{
		"requested, and known to nobody":         {cluster.HostRequested, nil, ""},
		"expected, and not known":                {cluster.HostExpected, nil, DoDeclare},
		"expected, known, open to jobs too soon": {cluster.HostExpected, &away, DoDeclare},
		"expected, known, drained until it comes": {
			cluster.HostExpected, &Host{State: HostAwaited, Drained: true, Removable: true}, "",
		},
		"expected, and it came, to be taken in": {cluster.HostExpected, &drained, ""},
		"expected, and it came open":            {cluster.HostExpected, &ready, ""},
		"joined, and Slurm has forgotten it":    {cluster.HostJoined, nil, DoDeclare},
		"joined":                                {cluster.HostJoined, &ready, ""},
		"joined, and drained by us":             {cluster.HostJoined, &drained, DoOpen},
		"joined, and drained by someone else":   {cluster.HostJoined, &theirs, ""},
		"joined, and put off":                   {cluster.HostJoined, &Host{State: HostAwaited, PutOff: true}, DoOpen},
		"expected, and put off":                 {cluster.HostExpected, &Host{State: HostAwaited, Drained: true, PutOff: true}, ""},
		"joined, and silent":                    {cluster.HostJoined, &Host{State: HostSilent, Drained: true}, ""},
		"draining, and open":                    {cluster.HostDraining, &ready, DoDrain},
		"draining, and drained":                 {cluster.HostDraining, &drained, ""},
		"draining, and silent":                  {cluster.HostDraining, &Host{State: HostSilent}, DoDrain},
		"draining, and not known":               {cluster.HostDraining, nil, ""},
		"leaving":                               {cluster.HostLeaving, &drained, DoRemove},
		"leaving, and it never came":            {cluster.HostLeaving, &away, DoRemove},
		"leaving, written down, and still here": {cluster.HostLeaving, &Host{State: HostClosed, Drained: true, Ours: true}, DoRemove},
		"leaving, written down, and away":       {cluster.HostLeaving, &Host{State: HostAwaited, Drained: true, Ours: true}, ""},
		"leaving, and not known":                {cluster.HostLeaving, nil, ""},
	} {
		row := cluster.ElasticHost{Name: "h1", Template: "big", Address: "10.0.0.7", State: c.row, Drain: &cluster.Drain{Why: "asked for"}}
		row.CPUs = 4
		step, needed := arrangeHost(row, c.host)
		if step.Do != c.want || needed != (c.want != "") || needed && step.Host != "h1" {
			t.Errorf("%s: %+v, want %q", name, step, c.want)
		}
		if c.want == DoDeclare && !reflect.DeepEqual(step.Machine, Machine{"h1", "10.0.0.7", "big", cluster.Capacity{CPUs: 4}}) {
			t.Errorf("%s: declared is %+v", name, step.Machine)
		}
	}
}

func TestArrangePlaceholders(t *testing.T) {
	of := func(name string, cpus int64, features ...string) cluster.Template {
		return cluster.Template{Name: name, Provider: "farm", Capacity: cluster.Capacity{CPUs: cpus, Features: features}}
	}
	held := func(cpus int64, features ...string) Host {
		return Host{State: HostAwaited, Capacity: cluster.Capacity{CPUs: cpus, Features: features}}
	}
	for name, c := range map[string]struct {
		templates []cluster.Template
		held      map[string]Host
		want      string
	}{
		"none":                   {nil, nil, ""},
		"one that lacks":         {[]cluster.Template{of("big", 16)}, nil, "placeholder big"},
		"one that is there":      {[]cluster.Template{of("big", 16, "avx")}, map[string]Host{"big": held(16, "avx", "partition:main")}, ""},
		"one that has more":      {[]cluster.Template{of("big", 16)}, map[string]Host{"big": held(64, "avx")}, ""},
		"one that is too small":  {[]cluster.Template{of("big", 16)}, map[string]Host{"big": held(8)}, "placeholder big"},
		"one without a feature":  {[]cluster.Template{of("big", 16, "avx")}, map[string]Host{"big": held(16)}, "placeholder big"},
		"one too many":           {nil, map[string]Host{"old": held(16)}, "drop-placeholder old"},
		"each by its own needs":  {[]cluster.Template{of("new", 4), of("big", 16)}, map[string]Host{"big": held(16), "old": held(16)}, "placeholder new, drop-placeholder old"},
		"they come in one order": {[]cluster.Template{of("c", 4), of("a", 4), of("b", 4)}, nil, "placeholder a, placeholder b, placeholder c"},
	} {
		var got []string
		for _, s := range Arrange(nil, c.templates, View{Placeholders: c.held}) {
			got = append(got, string(s.Do)+" "+s.Machine.Template)
			if s.Why == "" {
				t.Errorf("%s: %+v says no reason", name, s)
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// site is a scheduler's hosts, as its backend changes them.
type site struct {
	View
	theirs map[string]bool // drained by someone else
}

func (s *site) find(name string) *Host {
	i := slices.IndexFunc(s.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Hosts[i]
}

// take takes a step as a backend does: it leaves alone what someone else has drained, and
// never takes out a host with jobs on it, or one of the scheduler's configuration.
func (s *site) take(step Step) {
	switch h := s.find(step.Host); step.Do {
	case DoDeclare:
		switch {
		case h == nil:
			s.Hosts = append(s.Hosts, Host{Name: step.Host, Capacity: step.Machine.Capacity, State: HostAwaited, Drained: true, Removable: true})
		case h.State == HostAwaited && !s.theirs[h.Name]:
			h.Drained = true
		}
	case DoDrain:
		s.drain(h)
	case DoOpen:
		h.Drained, h.PutOff, h.State = false, false, HostReady
	case DoRemove:
		s.drain(h)
		switch {
		case h.Busy > 0:
		case h.Removable:
			s.Hosts = slices.DeleteFunc(s.Hosts, func(h Host) bool { return h.Name == step.Host })
		case h.Ours:
			h.State = HostAwaited // once its daemon is stopped
		}
	case DoPlaceholder:
		s.Placeholders[step.Machine.Template] = Host{State: HostAwaited, Capacity: step.Machine.Capacity}
	case DoDropPlaceholder:
		delete(s.Placeholders, step.Machine.Template)
	}
}

func (s *site) drain(h *Host) {
	if s.theirs[h.Name] {
		return
	}
	h.Drained = true
	if h.State == HostReady {
		h.State = HostClosed
	}
}

func (s *site) copied() site {
	return site{View{Hosts: slices.Clone(s.Hosts), Placeholders: maps.Clone(s.Placeholders)}, s.theirs}
}

func drawSite(t *rapid.T) *site {
	s := &site{View{Placeholders: map[string]Host{}}, map[string]bool{}}
	for i := range 5 {
		name := fmt.Sprintf("h%d", i)
		if !rapid.Bool().Draw(t, name+" is known") {
			continue
		}
		h := Host{
			Name: name, State: rapid.SampledFrom([]HostState{HostReady, HostClosed, HostAwaited, HostSilent, HostRemoving}).Draw(t, name+" is"),
			Busy: rapid.Int64Range(0, 2).Draw(t, name+" has jobs"),
		}
		switch h.State {
		case HostClosed:
			h.Drained = rapid.Bool().Draw(t, name+" is drained by us")
			s.theirs[name] = !h.Drained
		case HostAwaited, HostSilent:
			h.Drained = rapid.Bool().Draw(t, name+" is drained by us")
			s.theirs[name] = !h.Drained && rapid.Bool().Draw(t, name+" is drained by others")
			h.PutOff = h.State == HostAwaited && !s.theirs[name] && rapid.Bool().Draw(t, name+" is put off")
		}
		switch rapid.IntRange(0, 2).Draw(t, name+" is from") {
		case 0:
			h.Removable = true
		case 1:
			h.Ours = true
		}
		s.Hosts = append(s.Hosts, h)
	}
	for _, name := range []string{"a", "b", "c"} {
		if rapid.Bool().Draw(t, name+" is held") {
			s.Placeholders[name] = Host{State: HostAwaited, Capacity: cluster.Capacity{CPUs: rapid.Int64Range(1, 4).Draw(t, name+" holds")}}
		}
	}
	return s
}

func drawRows(t *rapid.T) (rows []cluster.ElasticHost, templates []cluster.Template) {
	states := []cluster.HostState{cluster.HostRequested, cluster.HostExpected, cluster.HostJoined, cluster.HostDraining, cluster.HostLeaving}
	for i := range 5 {
		name := fmt.Sprintf("h%d", i)
		if rapid.Bool().Draw(t, name+" has a row") {
			row := cluster.ElasticHost{Name: name, Template: "a", State: rapid.SampledFrom(states).Draw(t, name+"'s row"), Drain: &cluster.Drain{}}
			row.CPUs = 4
			rows = append(rows, row)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		if rapid.Bool().Draw(t, name+" is made") {
			templates = append(templates, cluster.Template{Name: name, Capacity: cluster.Capacity{CPUs: rapid.Int64Range(1, 4).Draw(t, name+" has")}})
		}
	}
	return rows, templates
}

// careful demands of a step that the host's row is one for which it may be taken.
func careful(t *rapid.T, s *site, states map[string]cluster.HostState, step Step) {
	state := states[step.Host]
	h := s.find(step.Host)
	may := true
	switch step.Do {
	case DoRemove:
		may = state == cluster.HostLeaving
	case DoDrain:
		may = state == cluster.HostDraining
	case DoOpen:
		may = state == cluster.HostJoined && (h.Drained || h.PutOff) && !s.theirs[h.Name]
	case DoDeclare:
		may = h == nil && state == cluster.HostJoined || state == cluster.HostExpected
	}
	if !may {
		t.Fatalf("%s of %s, whose row is %q: %+v", step.Do, step.Host, state, h)
	}
}

// Jobs for a host whose address is another's by now would be sent to that one.
func TestAHostTakesNoJobsAndTheNextIsNotKnownWhileItHasItsAddress(t *testing.T) {
	row := func(name string, state cluster.HostState, intended cluster.Time) cluster.ElasticHost {
		r := cluster.ElasticHost{Name: name, Address: "10.0.0.7", State: state, Intended: intended, Drain: &cluster.Drain{}}
		return r
	}
	old, next, alone := row("h9", cluster.HostJoined, 1), row("h10", cluster.HostExpected, 2), row("h11", cluster.HostJoined, 3)
	alone.Address = "10.0.0.8"
	ready := Host{Name: "h9", State: HostReady, Removable: true}
	drained := Host{Name: "h9", State: HostClosed, Drained: true, Removable: true}
	elsewhere := Host{Name: "n1", State: HostReady}
	leaving := old
	leaving.State = cluster.HostLeaving
	for name, c := range map[string]struct {
		rows []cluster.ElasticHost
		host Host
		want string
	}{
		"it takes jobs":    {[]cluster.ElasticHost{next, old}, ready, "drain h9"},
		"it comes first":   {[]cluster.ElasticHost{old, next}, ready, "drain h9"},
		"it is drained":    {[]cluster.ElasticHost{old, next}, drained, ""},
		"it leaves":        {[]cluster.ElasticHost{leaving, next}, drained, "remove h9"},
		"it is out":        {[]cluster.ElasticHost{old, next}, elsewhere, "declare h10"},
		"there is no heir": {[]cluster.ElasticHost{old}, drained, "open h9"},
		"another is there": {[]cluster.ElasticHost{old, alone}, ready, "declare h11"},
	} {
		var steps []string
		for _, step := range Arrange(c.rows, nil, View{Hosts: []Host{c.host}}) {
			steps = append(steps, string(step.Do)+" "+step.Host)
		}
		if got := strings.Join(steps, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Whatever the scheduler has and the rows say: only a host that leaves is taken out, only one
// that we drained is opened, and what the steps lead to is changed by no step more; where jobs end
// and nobody else has a hand in it, none is even left.
func TestArrangeLeadsToWhereNothingIsLeftToDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSite(t)
		rows, templates := drawRows(t)
		states := map[string]cluster.HostState{}
		for _, row := range rows {
			states[row.Name] = row.State
		}
		for range 3 {
			for _, step := range Arrange(rows, templates, s.View) {
				careful(t, s, states, step)
				s.take(step)
			}
			for i := range s.Hosts {
				s.Hosts[i].Busy = 0 // by now
			}
		}
		before := s.copied()
		for _, step := range Arrange(rows, templates, s.View) {
			careful(t, s, states, step)
			h := s.find(step.Host)
			if h == nil || !s.theirs[h.Name] && (h.Removable || h.Ours) {
				t.Fatalf("still %+v: %+v", step, h)
			}
			s.take(step)
		}
		if !reflect.DeepEqual(before.View, s.View) {
			t.Fatalf("the last steps change\n%+v to\n%+v", before.View, s.View)
		}
	})
}

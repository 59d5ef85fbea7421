package slurm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

const oursFoo = "xce-withheld.foo"

// keeps is a reservation of so many of foo, active and far from its end.
func keeps(name string, n int64) Reservation {
	return Reservation{Name: name, Licences: map[string]int64{"foo": n}, State: "ACTIVE", End: cluster.Time(300 * 24 * cluster.Hour)}
}

func TestPlan(t *testing.T) {
	later := keeps("later", 3)
	later.State = "INACTIVE"
	ending := keeps(oursFoo, 6)
	ending.End = cluster.Time(10 * cluster.Hour)
	asleep := keeps(oursFoo, 6)
	asleep.State = "INACTIVE"
	hosts := keeps(oursFoo, 6)
	hosts.Nodes = []string{"n1"}
	other := keeps(oursFoo, 0)
	other.Licences = map[string]int64{"bar": 2}
	both := keeps(oursFoo, 6)
	both.Licences = map[string]int64{"bar": 2, "foo": 6}
	for name, c := range map[string]struct {
		total, reserved, usable int64
		all                     []Reservation
		want, fails             string
	}{
		"made":                       {total: 10, usable: 4, want: "create reservation reservationname=xce-withheld.foo starttime=now endtime=now+365days users=root flags=LICENSE_ONLY licenses=foo:6"},
		"nothing to keep back":       {total: 10, usable: 10},
		"more than there is":         {total: 10, usable: 15},
		"right already":              {total: 10, usable: 4, reserved: 6, all: []Reservation{keeps(oursFoo, 6)}},
		"more kept back":             {total: 10, usable: 2, reserved: 6, all: []Reservation{keeps(oursFoo, 6)}, want: "update reservationname=xce-withheld.foo licenses=foo:8"},
		"less kept back":             {total: 10, usable: 9, reserved: 6, all: []Reservation{keeps(oursFoo, 6)}, want: "update reservationname=xce-withheld.foo licenses=foo:1"},
		"nothing kept back any more": {total: 10, usable: 10, reserved: 6, all: []Reservation{keeps(oursFoo, 6)}, want: "delete reservationname=xce-withheld.foo"},
		"all kept back":              {total: 10, usable: 0, reserved: 6, all: []Reservation{keeps(oursFoo, 6)}, want: "update reservationname=xce-withheld.foo licenses=foo:10"},
		"forgotten by a refusal":     {total: 10, usable: 4, reserved: 0, all: []Reservation{keeps(oursFoo, 6)}, want: "update reservationname=xce-withheld.foo licenses=foo:6"},
		"total fell below it":        {total: 4, usable: 3, reserved: 6, all: []Reservation{keeps(oursFoo, 6)}, want: "update reservationname=xce-withheld.foo licenses=foo:1"},
		"total is nothing":           {total: 0, usable: 3, reserved: 6, all: []Reservation{keeps(oursFoo, 6)}, want: "delete reservationname=xce-withheld.foo"},
		"made longer in time":        {total: 10, usable: 4, reserved: 6, all: []Reservation{ending}, want: "update reservationname=xce-withheld.foo endtime=now+365days licenses=foo:6"},
		"not begun":                  {total: 10, usable: 4, all: []Reservation{asleep}, want: "delete reservationname=xce-withheld.foo"},
		"of another licence":         {total: 10, usable: 4, all: []Reservation{other}, want: "update reservationname=xce-withheld.foo licenses=foo:6"},
		"of two licences":            {total: 10, usable: 4, reserved: 6, all: []Reservation{both}, want: "update reservationname=xce-withheld.foo licenses=foo:6"},
		"others reserve too":         {total: 10, usable: 4, reserved: 3, all: []Reservation{keeps("theirs", 3)}, want: "licenses=foo:6"},
		"others leave too little":    {total: 10, usable: 4, reserved: 5, all: []Reservation{keeps("theirs", 5)}, want: "licenses=foo:5"},
		"it is then made larger":     {total: 10, usable: 4, reserved: 10, all: []Reservation{keeps("theirs", 5), keeps(oursFoo, 5)}, want: "update reservationname=xce-withheld.foo licenses=foo:6"},
		"both keep back all":         {total: 10, usable: 4, reserved: 11, all: []Reservation{keeps("theirs", 5), keeps(oursFoo, 6)}},
		"others will leave less":     {total: 10, usable: 2, all: []Reservation{later}, want: "licenses=foo:7"},
		"which keeps back no less":   {total: 10, usable: 2, reserved: 7, all: []Reservation{later, keeps(oursFoo, 7)}, want: "update reservationname=xce-withheld.foo licenses=foo:8"},
		"others leave nothing":       {total: 10, usable: 2, reserved: 12, all: []Reservation{keeps("theirs", 12)}, want: "licenses=foo:0"},
		"others begin, and it stays": {total: 10, usable: 2, reserved: 15, all: []Reservation{keeps("theirs", 7), keeps(oursFoo, 8)}},
		"one of hosts":               {total: 10, usable: 4, all: []Reservation{hosts}, fails: "not ours"},
		"a wrong total":              {total: 42949671, usable: 4, fails: "makes no sense"},
	} {
		k, err := plan(0, Licence{Name: "foo", Total: c.total, Reserved: c.reserved}, c.all, oursFoo, "root", c.usable)
		command := strings.Join(k.command, " ")
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v", name, err)
		}
		if (command == "") != (c.want == "") || !strings.HasSuffix(command, c.want) {
			t.Errorf("%s: %q; want %q", name, command, c.want)
		}
	}
}

// model is what Slurm was seen to do with reservations of foo.
type model struct {
	l   Licence
	all []Reservation
}

func (m *model) do(t *rapid.T, command []string) {
	args := map[string]string{}
	for _, a := range command {
		k, v, _ := strings.Cut(a, "=")
		args[k] = v
	}
	name := args["reservationname"]
	i := slices.IndexFunc(m.all, func(r Reservation) bool { return r.Name == name })
	need, err := licencesOf(args["licenses"])
	counts := need.units
	if err != nil || counts["foo"] > m.l.Total {
		t.Fatalf("%v is out of range", command)
	}
	if command[0] != "create" && i < 0 || command[0] == "create" && i >= 0 {
		t.Fatalf("%v makes no sense", command)
	}
	switch command[0] {
	case "create":
		m.all = append(m.all, keeps(name, counts["foo"]))
	case "update":
		m.all[i].Licences = counts
		if args["endtime"] != "" {
			m.all[i].End = keeps(name, 0).End
		}
	case "delete":
		m.all = slices.Delete(m.all, i, i+1)
	}
	var sum, active int64
	for _, r := range m.all {
		sum += r.Licences["foo"]
		if r.State == "ACTIVE" {
			active += r.Licences["foo"]
		}
	}
	if command[0] == "create" && sum > m.l.Total {
		t.Fatalf("%v: Slurm refuses it, and forgets what it reserves", command)
	}
	m.l.Reserved = active
}

// Whatever is found, a few commands, none of which Slurm refuses, lead to where nothing
// is left to do, and there what is kept back and what is usable are the whole.
func TestPlanLeadsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Int64Range(0, 20)
		m := model{l: Licence{Name: "foo", Total: count.Draw(t, "total"), Used: count.Draw(t, "used"), Reserved: count.Draw(t, "reserved")}}
		var room int64 = m.l.Total
		for i := range rapid.IntRange(0, 3).Draw(t, "others") {
			r := keeps(fmt.Sprintf("o%d", i), rapid.Int64Range(0, 6).Draw(t, "theirs"))
			if rapid.Bool().Draw(t, "later") {
				r.State = "INACTIVE"
			}
			if r.Licences["foo"] > room {
				continue // Slurm would have refused it
			}
			room -= r.Licences["foo"]
			m.all = append(m.all, r)
		}
		if rapid.Bool().Draw(t, "ours") {
			r := keeps(oursFoo, count.Draw(t, "withheld"))
			r.End = cluster.Time(rapid.SampledFrom([]cluster.Duration{cluster.Hour, 300 * 24 * cluster.Hour}).Draw(t, "end"))
			r.State = rapid.SampledFrom([]string{"ACTIVE", "ACTIVE", "INACTIVE"}).Draw(t, "state")
			m.all = append(m.all, r)
		}
		usable := rapid.Int64Range(0, 25).Draw(t, "usable")
		var k keepBack
		for range mostRounds {
			var err error
			if k, err = plan(0, m.l, m.all, oursFoo, "root", usable); err != nil {
				t.Fatal(err)
			}
			if k.command == nil {
				break
			}
			m.do(t, k.command)
		}
		is := resourceOf(m.l, m.all, oursFoo)
		switch {
		case k.command != nil:
			t.Fatalf("still %v", k.command)
		case is.Withheld != k.want || k.want < 0 || k.want > m.l.Total:
			t.Fatalf("%d are kept back, not %d", is.Withheld, k.want)
		case is.Withheld+min(usable, m.l.Total) != m.l.Total:
			t.Fatalf("%d kept back and %d usable of %d", is.Withheld, usable, m.l.Total)
		case is.Withheld+is.Reserved > m.l.Total:
			t.Fatalf("%d kept back by us and %d by others of %d", is.Withheld, is.Reserved, m.l.Total)
		}
	})
}

func TestResourceOf(t *testing.T) {
	l := Licence{Name: "foo", Total: 10, Used: 4, Reserved: 5}
	later := keeps("later", 2)
	later.State = "INACTIVE"
	for name, c := range map[string]struct {
		reserved int64
		all      []Reservation
		want     backend.Resource
	}{
		"none":            {want: backend.Resource{Ceiling: 10, Used: 4}},
		"ours":            {reserved: 5, all: []Reservation{keeps(oursFoo, 5), later}, want: backend.Resource{Ceiling: 10, Used: 4, Withheld: 5}},
		"and others'":     {reserved: 8, all: []Reservation{keeps(oursFoo, 5), keeps("a", 3)}, want: backend.Resource{Ceiling: 10, Used: 4, Withheld: 5, Reserved: 3}},
		"ours forgotten":  {reserved: 3, all: []Reservation{keeps(oursFoo, 5), keeps("a", 3)}, want: backend.Resource{Ceiling: 10, Used: 4, Reserved: 3}},
		"others want it":  {reserved: 14, all: []Reservation{keeps(oursFoo, 8), keeps("a", 6)}, want: backend.Resource{Ceiling: 10, Used: 4, Withheld: 8, Reserved: 2}},
		"of a like name":  {reserved: 3, all: []Reservation{keeps(oursFoo+"2", 3)}, want: backend.Resource{Ceiling: 10, Used: 4, Reserved: 3}},
		"all forgotten":   {all: []Reservation{keeps(oursFoo, 5), keeps("a", 3)}, want: backend.Resource{Ceiling: 10, Used: 4}},
		"more than total": {reserved: 12, all: []Reservation{keeps(oursFoo, 12)}, want: backend.Resource{Ceiling: 10, Used: 4, Withheld: 12}},
	} {
		l.Reserved = c.reserved
		if got := resourceOf(l, c.all, oursFoo); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

func TestForeign(t *testing.T) {
	was := backend.Resource{Ceiling: 10, Used: 4, Withheld: 5, Reserved: 1}
	for want, is := range map[string]backend.Resource{
		"":                            {Ceiling: 10, Used: 1, Withheld: 5, Reserved: 1},
		"was changed from 10 to 4":    {Ceiling: 4, Withheld: 5, Reserved: 1},
		"keeps back 0 units of vcs":   {Ceiling: 10, Reserved: 1},
		"wait for units that are had": {Ceiling: 10, Withheld: 9, Reserved: 1},
		"Others keep back 3 units":    {Ceiling: 10, Withheld: 5, Reserved: 3},
	} {
		said := Foreign("vcs", was, is)
		if want == "" && said != nil || want != "" && (len(said) != 1 || !strings.Contains(said[0], want)) {
			t.Errorf("%+v: %q; want %q", is, said, want)
		}
	}
}

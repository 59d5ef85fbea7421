package ledger

import (
	"errors"
	"reflect"
	"testing"

	"xce.internal/elastic/cluster"
)

func TestLending(t *testing.T) {
	row := func(id string, units int64, since cluster.Time) cluster.Lending {
		return cluster.Lending{ID: id, Resource: "vcs", Units: units, To: "west", Since: since}
	}
	tests := []struct {
		name    string
		id      string
		units   int64
		inUse   int64
		refused Code
		text    string
		want    []cluster.Lending
	}{
		{name: "the first of its id opens a row", id: "a", units: 3, want: []cluster.Lending{row("a", 3, now), row("m", 4, 1)}},
		{name: "rows are in order of ids", id: "z", units: 3, want: []cluster.Lending{row("m", 4, 1), row("z", 3, now)}},
		{name: "the same again changes nothing", id: "m", units: 4, want: []cluster.Lending{row("m", 4, 1)}},
		{name: "more", id: "m", units: 6, want: []cluster.Lending{row("m", 6, 1)}},
		{name: "less", id: "m", units: 1, want: []cluster.Lending{row("m", 1, 1)}},
		{name: "the same in spite of an overdraft", id: "m", units: 4, inUse: 99, want: []cluster.Lending{row("m", 4, 1)}},
		{name: "less in spite of an overdraft", id: "m", units: 3, inUse: 99, want: []cluster.Lending{row("m", 3, 1)}},
		{name: "none closes the row", id: "m", units: 0, want: []cluster.Lending{}},
		{name: "none of an unknown id", id: "a", units: 0, want: []cluster.Lending{row("m", 4, 1)}},
		{name: "all that is unused", id: "m", units: 8, inUse: 2, want: []cluster.Lending{row("m", 8, 1)}},
		{name: "what is in use is not lent", id: "m", units: 9, inUse: 2, refused: InUse, text: "5 more vcs cannot be lent: 4 are unused"},
		{name: "less than nothing", id: "m", units: -1, refused: Invalid, text: "lending m of -1 units makes no sense"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := Account{Resource: "vcs", Owned: 10, InUse: test.inUse, Lendings: []cluster.Lending{row("m", 4, 1)}}
			earlier, before := a, clone(a)
			err := a.Lend(row(test.id, test.units, 0), now)
			if !reflect.DeepEqual(earlier, before) {
				t.Errorf("it wrote into an earlier copy: %+v", earlier)
			}
			if test.refused == "" {
				before.Lendings = test.want
			}
			var refusal *Refusal
			if errors.As(err, &refusal) != (test.refused != "") || refusal != nil && (refusal.Code != test.refused || refusal.Text != test.text) {
				t.Errorf("got %v, want %s: %s", err, test.refused, test.text)
			}
			if !reflect.DeepEqual(a, before) {
				t.Errorf("got %+v, want %+v", a, before)
			}
		})
	}
}

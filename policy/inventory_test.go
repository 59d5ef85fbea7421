package policy

import (
	"testing"

	"pgregory.net/rapid"
)

// lacking is a list that lacks some of the machines that are held.
func lacking(held, missing int64) Inventory {
	return Inventory{Held: held, Missing: missing, Listed: held - missing}
}

func TestDoubt(t *testing.T) {
	tests := []struct {
		name     string
		last, in Inventory
		want     string
	}{
		{"nothing is held", Inventory{}, Inventory{}, ""},
		{"nothing is missing", lacking(100, 0), lacking(100, 0), ""},
		{"the only one is missing", lacking(1, 0), lacking(1, 1), ""},
		{"both are missing", lacking(2, 0), lacking(2, 2), "it shows none of our hosts, and had 2 of them before"},
		{"all are", lacking(40, 0), lacking(40, 40), "it shows none of our hosts, and had 40 of them before"},
		{"all are, one after the other", lacking(3, 2), lacking(3, 3), ""},
		{"none of two was ever listed", Inventory{}, lacking(2, 2), "it shows none of the 2 hosts that we have, and never had"},
		{"the only one was never listed", Inventory{}, lacking(1, 1), ""},
		{"many that we do not have", Inventory{}, Inventory{Orphans: 4}, "it shows 4 hosts more than before that we do not have, beside 0 that we have"},
		{"some more that we do not have", Inventory{Held: 5, Listed: 5, Orphans: 4}, Inventory{Held: 5, Listed: 5, Orphans: 7}, ""},
		{"none is held, and none listed", lacking(3, 0), Inventory{}, ""},
		{"all but those on their way back", Inventory{Held: 5, Listed: 8}, Inventory{Held: 5, Missing: 5, Listed: 3}, "it lacks 5 more of the 5 hosts that we have than before, which is too many at once"},
		{"all but one of a few", lacking(4, 0), lacking(4, 3), ""},
		{"four of five", lacking(5, 0), lacking(5, 4), "it lacks 4 more of the 5 hosts that we have than before, which is too many at once"},
		{"four of five, two of which were missing before", lacking(5, 2), lacking(5, 4), ""},
		{"a quarter", lacking(40, 0), lacking(40, 10), ""},
		{"more than a quarter", lacking(40, 0), lacking(40, 11), "it lacks 11 more of the 40 hosts that we have than before, which is too many at once"},
		{"more than a quarter again", lacking(40, 10), lacking(40, 21), "it lacks 11 more of the 40 hosts that we have than before, which is too many at once"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.in.Doubt(test.last); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAListThatLacksMoreIsNeverBelievedRather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held := rapid.Int64Range(0, 60).Draw(t, "held")
		last := lacking(held, rapid.Int64Range(0, held).Draw(t, "missing before"))
		missing := rapid.Int64Range(0, held).Draw(t, "missing")
		list, worse := lacking(held, missing), lacking(held, rapid.Int64Range(missing, held).Draw(t, "more missing"))
		if list.Doubt(last) != "" && worse.Doubt(last) == "" {
			t.Fatalf("after %+v, %+v is believed and %+v is not", last, worse, list)
		}
		if missing <= last.Missing && list.Listed > 0 && list.Doubt(last) != "" {
			t.Fatalf("after %+v, %+v is not believed", last, list)
		}
	})
}

package policy

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDoubt(t *testing.T) {
	tests := []struct {
		name string
		in   Inventory
		want string
	}{
		{"nothing is held", Inventory{}, ""},
		{"nothing is missing", Inventory{Held: 100, Listed: 100}, ""},
		{"the only one is missing", Inventory{Held: 1, Missing: 1}, ""},
		{"both are missing", Inventory{Held: 2, Missing: 2}, "it shows none of the 2 hosts that we have"},
		{"both are missing and silent", Inventory{Held: 2, Missing: 2, Silent: 2}, "it shows none of the 2 hosts that we have"},
		{"all are", Inventory{Held: 40, Missing: 40}, "it shows none of the 40 hosts that we have"},
		{"all but those on their way back, and they are silent", Inventory{Held: 5, Listed: 3, Missing: 5, Silent: 5}, ""},
		{"all but those on their way back, though they answer", Inventory{Held: 5, Listed: 3, Missing: 5}, "it lacks 5 of the 5 hosts that we have, though they answer, which is too many at once"},
		{"all but one of a few", Inventory{Held: 4, Listed: 1, Missing: 3}, ""},
		{"four of five", Inventory{Held: 5, Listed: 1, Missing: 4}, "it lacks 4 of the 5 hosts that we have, though they answer, which is too many at once"},
		{"a quarter", Inventory{Held: 40, Listed: 30, Missing: 10}, ""},
		{"more than a quarter", Inventory{Held: 40, Listed: 29, Missing: 11}, "it lacks 11 of the 40 hosts that we have, though they answer, which is too many at once"},
		{"more than a quarter, of which some are silent", Inventory{Held: 40, Listed: 20, Missing: 20, Silent: 10}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.in.Doubt(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAListThatLacksMoreIsNeverBelievedRather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := Inventory{Held: rapid.Int64Range(0, 60).Draw(t, "held")}
		i.Missing = rapid.Int64Range(0, i.Held).Draw(t, "missing")
		i.Silent = rapid.Int64Range(0, i.Missing).Draw(t, "silent")
		i.Listed = i.Held - i.Missing
		more := i
		more.Missing = rapid.Int64Range(i.Missing, i.Held).Draw(t, "more missing")
		more.Listed = more.Held - more.Missing
		if i.Doubt() != "" && more.Doubt() == "" {
			t.Fatalf("%+v is believed and %+v is not", more, i)
		}
		if i.Missing == 0 && i.Doubt() != "" {
			t.Fatalf("%+v is not believed", i)
		}
	})
}

package policy

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDoubt(t *testing.T) {
	tests := []struct {
		name          string
		held, missing int64
		want          string
	}{
		{"nothing is held", 0, 0, ""},
		{"nothing is missing", 100, 0, ""},
		{"the only one is missing", 1, 1, ""},
		{"both are missing", 2, 2, "it shows none of the 2 hosts that we have"},
		{"all are", 40, 40, "it shows none of the 40 hosts that we have"},
		{"more than all are", 2, 3, "it shows none of the 2 hosts that we have"},
		{"all but one of a few", 4, 3, ""},
		{"four of five", 5, 4, "it lacks 4 of the 5 hosts that we have, which is too many at once"},
		{"a quarter", 40, 10, ""},
		{"more than a quarter", 40, 11, "it lacks 11 of the 40 hosts that we have, which is too many at once"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := (Inventory{Held: test.held, Missing: test.missing}).Doubt(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAListThatLacksMoreIsNeverBelievedRather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := Inventory{Held: rapid.Int64Range(0, 60).Draw(t, "held")}
		i.Missing = rapid.Int64Range(0, i.Held).Draw(t, "missing")
		more := i
		more.Missing = rapid.Int64Range(i.Missing, i.Held).Draw(t, "more missing")
		if i.Doubt() != "" && more.Doubt() == "" {
			t.Fatalf("%+v is believed and %+v is not", more, i)
		}
		if i.Missing == 0 && i.Doubt() != "" {
			t.Fatalf("%+v is not believed", i)
		}
	})
}

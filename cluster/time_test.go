package cluster

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimesRoundTripAsText(t *testing.T) {
	first := TimeOf(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Millisecond))
	last := TimeOf(time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC))
	rapid.Check(t, func(t *rapid.T) {
		want := Time(rapid.Int64Range(int64(first), int64(last)).Draw(t, "ms"))
		text, err := want.MarshalText()
		var got Time
		if err != nil || got.UnmarshalText(text) != nil || got != want {
			t.Fatalf("%d is %q, which is %d (%v)", want, text, got, err)
		}
		if TimeOf(want.Std()) != want {
			t.Fatalf("%d is %s, which is %d", want, want.Std(), TimeOf(want.Std()))
		}
	})
}

func TestDurationsRoundTripAsText(t *testing.T) {
	longest := int64(DurationOf(1<<63 - 1))
	rapid.Check(t, func(t *rapid.T) {
		want := Duration(rapid.Int64Range(-longest, longest).Draw(t, "ms"))
		text, err := want.MarshalText()
		var got Duration
		if err != nil || got.UnmarshalText(text) != nil || got != want {
			t.Fatalf("%d is %q, which is %d (%v)", want, text, got, err)
		}
	})
}

func TestPricesPrintExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Price(rapid.Int64().Draw(t, "millionths"))
		text := want.String()
		got, ok := new(big.Rat).SetString(text)
		if !ok || got.Mul(got, big.NewRat(1_000_000, 1)).Cmp(new(big.Rat).SetInt64(int64(want))) != 0 {
			t.Fatalf("%d millionths are %q", want, text)
		}
	})
}

func TestTextsOfTimesDurationsAndPrices(t *testing.T) {
	tests := []struct{ got, want string }{
		{Time(0).String(), ""},
		{Time(1_767_225_600_000).String(), "2026-01-01T00:00:00.000Z"},
		{Time(1_767_225_600_007).String(), "2026-01-01T00:00:00.007Z"},
		{Time(0).Clock(), "-"},
		{Time(1_767_258_061_999).Clock(), "09:01:01"},
		{Time(0).Stamp(), "-"},
		{Time(1_767_258_061_999).Stamp(), "Jan 1 09:01:01 UTC"},
		{Duration(0).String(), "0s"},
		{(90 * Minute).String(), "1h30m0s"},
		{Time(5000).Sub(Time(3500)).String(), "1.5s"},
		{Time(5000).Add(-2 * Second).Sub(0).String(), "3s"},
		{Price(0).String(), "0"},
		{Price(250_000).String(), "0.25"},
		{Price(10_000_000).String(), "10"},
		{Price(1).String(), "0.000001"},
		{Price(-1_500_000).String(), "-1.5"},
		{Price(-500_000).String(), "-0.5"},
	}
	for _, test := range tests {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestTimesAreReadAsPeopleWriteThem(t *testing.T) {
	tests := []struct {
		text, fault string
		want        Time
	}{
		{text: "", want: 0},
		{text: "2026-01-01T00:00:00Z", want: 1_767_225_600_000},
		{text: "2026-01-01T02:00:00+02:00", want: 1_767_225_600_000},
		{text: "2026-01-01T00:00:00.0079Z", want: 1_767_225_600_007},
		{text: "2026-01-01 00:00", fault: `time "2026-01-01 00:00" is not RFC 3339 (as in`},
		{text: "1767225600000", fault: "is not RFC 3339"},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			got := Time(-1)
			checkFault(t, got.UnmarshalText([]byte(test.text)), test.fault)
			if test.fault == "" && got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
			if test.fault != "" && got != -1 {
				t.Errorf("a refused text was written: %d", got)
			}
		})
	}
}

func TestDurationsAreReadAsPeopleWriteThem(t *testing.T) {
	tests := []struct {
		text, fault string
		want        Duration
	}{
		{text: "90s", want: 90 * Second},
		{text: "1h30m", want: 90 * Minute},
		{text: "0", want: 0},
		{text: "1500us", fault: "is finer than a millisecond"},
		{text: "90", fault: `duration "90" is not a number with a unit (as in`},
		{text: "", fault: "is not a number with a unit"},
		{text: "3 days", fault: "is not a number with a unit"},
		{text: "9999999h", fault: `duration "9999999h" is too long`},
		{text: "-9999999h1.5m", fault: "is too long"},
		{text: ".h", fault: "is not a number with a unit"},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			got := Duration(-1)
			checkFault(t, got.UnmarshalText([]byte(test.text)), test.fault)
			if test.fault == "" && got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
			if test.fault != "" && got != -1 {
				t.Errorf("a refused text was written: %d", got)
			}
		})
	}
}

func TestAZeroTimeIsNoTime(t *testing.T) {
	if got := TimeOf(time.Time{}); got != 0 {
		t.Errorf("got %d", got)
	}
	if got := Time(0).Std(); !got.IsZero() {
		t.Errorf("got %s", got)
	}
}

func checkFault(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %q", err, want)
	}
}

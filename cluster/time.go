package cluster

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Time is an instant in milliseconds since the Unix epoch, UTC. Zero means
// "no time". Its text form is RFC 3339 with milliseconds, and "" for zero.
type Time int64

// Duration is a length of time in milliseconds. Its text form is that of
// time.Duration, such as "4h0m0s".
type Duration int64

// Lengths of time in milliseconds.
const (
	Millisecond Duration = 1
	Second               = 1000 * Millisecond
	Minute               = 60 * Second
	Hour                 = 60 * Minute
)

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// TimeOf converts a time.Time, cutting it to whole milliseconds.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Std converts t to a time.Time in UTC; zero becomes the zero time.Time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// Add answers t moved by d.
func (t Time) Add(d Duration) Time { return t + Time(d) }

// Sub answers the length of time from u to t.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// String answers the text form of t.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return t.Std().Format(timeLayout)
}

// Clock answers the time of day of t in UTC, for what happens within minutes.
func (t Time) Clock() string {
	if t == 0 {
		return "-"
	}
	return t.Std().Format("15:04:05")
}

// Stamp answers day and time of t in UTC, for sentences about long lives.
func (t Time) Stamp() string {
	if t == 0 {
		return "-"
	}
	return t.Std().Format("Jan 2 15:04:05 UTC")
}

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It refuses what is
// neither empty nor RFC 3339.
func (t *Time) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*t = 0
		return nil
	}
	std, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fmt.Errorf("time %q is not RFC 3339 (as in 2026-01-31T08:00:00Z)", text)
	}
	*t = TimeOf(std)
	return nil
}

// DurationOf converts a time.Duration, cutting it to whole milliseconds.
func DurationOf(d time.Duration) Duration { return Duration(d.Milliseconds()) }

// Std converts d to a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) * time.Millisecond }

// String answers the text form of d.
func (d Duration) String() string { return d.Std().String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// lengthPattern is what time.ParseDuration takes, but for its limit.
var lengthPattern = regexp.MustCompile(`^[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$`)

// UnmarshalText implements encoding.TextUnmarshaler. It refuses what
// time.ParseDuration refuses and what is finer than a millisecond.
func (d *Duration) UnmarshalText(text []byte) error {
	std, err := time.ParseDuration(string(text))
	if err != nil {
		if lengthPattern.Match(text) {
			return fmt.Errorf("duration %q is too long", text)
		}
		return fmt.Errorf("duration %q is not a number with a unit (as in 90s, 30m, 4h)", text)
	}
	if std%time.Millisecond != 0 {
		return fmt.Errorf("duration %q is finer than a millisecond; write whole milliseconds", text)
	}
	*d = DurationOf(std)
	return nil
}

// Price is money per unit and hour, in millionths of a currency unit.
type Price int64

// String answers p in currency units, such as "0.25".
func (p Price) String() string {
	sign, millionths := "", uint64(p)
	if p < 0 {
		sign, millionths = "-", -millionths
	}
	text := fmt.Sprintf("%s%d.%06d", sign, millionths/1_000_000, millionths%1_000_000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// For answers what one unit costs that is held for so long. A billing step that has
// begun counts whole; 0 means that there are none.
func (p Price) For(held, step Duration) Price {
	if step > 0 {
		held = (held + step - 1) / step * step
	}
	return p*Price(held/Hour) + p*Price(held%Hour)/Price(Hour)
}

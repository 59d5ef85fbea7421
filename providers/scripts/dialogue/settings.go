package dialogue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Number reads a setting of the environment; 0 where it is not set.
func Number(name string) (int64, error) {
	text := os.Getenv(name)
	if text == "" {
		return 0, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 || number > 1e9 {
		return 0, fmt.Errorf("%s=%q: give a whole number from 0 to 1000000000, or unset it", name, text)
	}
	return number, nil
}

// Milliseconds reads a setting of the environment as a time.
func Milliseconds(name string) (time.Duration, error) {
	number, err := Number(name)
	return time.Duration(number) * time.Millisecond, err
}

// Misbehaviour is what try-out settings ask a script to do after the deed.
type Misbehaviour struct {
	Latency   time.Duration
	FailEvery int64 // each so manyth call answers nothing; 0 = none
	call      int64 // the number of this call, when calls are counted
}

// MisbehaviourOf reads PREFIX_LATENCY_MS and PREFIX_FAIL.
func MisbehaviourOf(prefix string) (m Misbehaviour, err error) {
	latency, latencyErr := Milliseconds(prefix + "_LATENCY_MS")
	every, everyErr := Number(prefix + "_FAIL")
	return Misbehaviour{Latency: latency, FailEvery: every}, errors.Join(latencyErr, everyErr)
}

// Count counts this call, where that is needed.
func (m *Misbehaviour) Count(calls *int64) {
	if m.FailEvery > 0 {
		*calls++
		m.call = *calls
	}
}

// After misbehaves.
func (m *Misbehaviour) After(ctx context.Context) error {
	select {
	case <-time.After(m.Latency):
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.FailEvery > 0 && m.call%m.FailEvery == 0 {
		return ErrSilent
	}
	return nil
}

package snapshot

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"xce.internal/elastic/cluster"
)

// Limits within which a session counts without overflow.
const (
	mostCount = 1_000_000_000_000
	// mostPrice is 10,000 currency units per hour.
	mostPrice = 10_000_000_000
	// longest is ten years.
	longest = 10 * 366 * 24 * cluster.Hour
	// latest is the end of the year 9999, after which times have no text form.
	latest cluster.Time = 253_402_300_799_999
)

const (
	noTime     = "the time is not within the years 1970 to 9999"
	timeRemedy = "write a time such as 2026-01-31T08:00:00Z"
)

// signed are the numbers that may be negative, and are only compared or, as for
// total, small.
var signed = map[string]int64{"priority": 1<<63 - 1, "preference": 1<<63 - 1, "exit_code": 1<<63 - 1, "total": mostCount}

// magnitudes finds every number in v that is negative or too large to count with.
func (c *checks) magnitudes(at string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Int64:
		if what, remedy := magnitude(v); what != "" {
			c.add(at, what, remedy)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			c.magnitudes(at, v.Elem())
		}
	case reflect.Struct:
		c.fieldMagnitudes(at, v)
	case reflect.Slice:
		for i := range v.Len() {
			if v.Type().Elem().Kind() != reflect.String {
				c.magnitudes(fmt.Sprintf("%s[%d]", at, i), v.Index(i))
			}
		}
	case reflect.Map:
		if counts, ok := v.Interface().(map[string]int64); ok {
			for _, name := range slices.Sorted(maps.Keys(counts)) {
				if what, remedy := outside(counts[name], 0, mostCount); what != "" {
					c.add(at+"."+shown(name), what, remedy)
				}
			}
		}
	}
}

// fieldMagnitudes does so for a struct. Paths are put together only where they
// are told or lead further, since a state has very many numbers.
func (c *checks) fieldMagnitudes(at string, v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		inner := v.FieldByIndex(f.index)
		switch kind := inner.Kind(); {
		case kind == reflect.Int64:
			what, remedy := magnitude(inner)
			if most, ok := signed[f.name]; ok {
				what, remedy = outside(inner.Int(), -most, most)
			}
			if what != "" {
				c.add(at+"."+f.name, what, remedy)
			}
		case kind == reflect.Struct || kind == reflect.Pointer || (kind == reflect.Slice || kind == reflect.Map) && inner.Len() > 0:
			c.magnitudes(at+"."+f.name, inner)
		}
	}
}

// magnitude says what is wrong with a number; nothing where it is sound.
func magnitude(v reflect.Value) (what, remedy string) {
	n := v.Int()
	switch v.Type() {
	case reflect.TypeFor[cluster.Time]():
		if n < 0 || n > int64(latest) {
			return noTime, timeRemedy
		}
		return "", ""
	case reflect.TypeFor[cluster.Duration]():
		switch d := cluster.Duration(n); {
		case d < 0:
			return fmt.Sprintf("%s is negative", d), "write 0s or a length of time such as 30m"
		case d > longest:
			return fmt.Sprintf("%s is longer than %s", d, longest), "write less"
		}
		return "", ""
	case reflect.TypeFor[cluster.Price]():
		return outside(n, 0, mostPrice)
	}
	return outside(n, 0, mostCount)
}

// outside says what is wrong with a number that is not within limits.
func outside(n, least, most int64) (what, remedy string) {
	switch {
	case n < 0 && least == 0:
		return fmt.Sprintf("%d is negative", n), "write 0 or a positive whole number"
	case n > most || n < least:
		return fmt.Sprintf("%d is too large to count with", n), fmt.Sprintf("write at most %d", most)
	}
	return "", ""
}

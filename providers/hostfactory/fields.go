package hostfactory

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
)

// folded is a key without what plug-ins do not agree on: case, underscores and hyphens.
func folded(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}

// field answers the value of the first of the names that stands in the object, nil where there is none.
func field(object map[string]any, names ...string) any {
	for _, name := range names {
		if value, exact := object[name]; exact {
			return value
		}
	}
	for _, name := range names {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if folded(key) == folded(name) {
				return object[key]
			}
		}
	}
	return nil
}

// has tells whether one of the names stands in the object at all.
func has(object map[string]any, name string) bool {
	for key := range object {
		if folded(key) == folded(name) {
			return true
		}
	}
	return false
}

// text reads a value as text. What only stands for nothing is nothing.
func text(value any) string {
	switch value := value.(type) {
	case string:
		trimmed := strings.TrimSpace(value)
		if trimmed == "None" || trimmed == "null" {
			return ""
		}
		return trimmed
	case json.Number:
		return value.String()
	case bool:
		return strconv.FormatBool(value)
	case []any:
		if len(value) == 1 {
			return text(value[0])
		}
	}
	return ""
}

// identity reads what names a machine or a request, fit for our records.
func identity(value any) string {
	name := text(value)
	if strings.EqualFold(name, "unknown") || len(name) > longestName || strings.ContainsFunc(name, isControl) {
		return ""
	}
	return name
}

const longestName = 200

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// integer reads a whole number, however it is written.
func integer(value any) (n int64, ok bool) {
	written := strings.ReplaceAll(text(value), ",", "")
	if n, err := strconv.ParseInt(written, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(written, 64)
	if err != nil || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// instant reads seconds since the epoch or a written time; zero where there is none.
func instant(value any) cluster.Time {
	if seconds, ok := integer(value); ok {
		if seconds <= 0 || seconds > 1<<40 {
			return 0
		}
		return cluster.TimeOf(time.Unix(seconds, 0))
	}
	written := text(value)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05.999999999", time.DateTime} {
		if t, err := time.Parse(layout, written); err == nil {
			return cluster.TimeOf(t)
		}
	}
	return 0
}

// elements reads a list of objects; an object alone is a list of one. What is no object is left out.
func elements(value any) []map[string]any { return objects(value) }

// truth reads a Boolean attribute.
func truth(written string) bool {
	switch strings.ToLower(written) {
	case "1", "true", "yes", "y":
		return true
	}
	return false
}

package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// record is one thing that `scontrol -o` tells of: its values by their keys.
type record struct {
	kind   string // the key of its name, as in NodeName
	fields map[string]string
	fault  error // the first
}

// free are the keys of values that people or machines write as they like, blanks and
// equals signs included, and which keys may follow each.
var free = map[string][]string{
	"OS":      {"RealMemory"},
	"Reason":  {"Comment", "Extra", "InstanceId", "InstanceType", "Reservation"},
	"Comment": {"Extra", "InstanceId", "InstanceType", "Reservation"},
	"Extra":   {"InstanceId", "InstanceType", "Reservation"},
}

// records reads what `scontrol -o show` printed of things that are named by the key
// kind. That there are none is no records.
func records(kind, text string) ([]record, error) {
	var all []record
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, kind+"="):
			lines = append(lines, line)
		case strings.TrimSpace(line) == "" || len(lines) == 0 && strings.HasPrefix(line, "No "):
		case len(lines) == 0:
			return nil, fmt.Errorf("the answer begins with %q, where %s= was expected; Slurm's release may be one that is not known here", cut(line), kind)
		default:
			lines[len(lines)-1] += " " + line // a value with a line break in it
		}
	}
	for _, line := range lines {
		all = append(all, record{kind: kind, fields: fieldsOf(line)})
	}
	return all, nil
}

// fieldsOf cuts a line at its keys. Each key comes once: what looks like it again is part of a value.
func fieldsOf(line string) map[string]string {
	fields, key, before := map[string]string{}, "", ""
	for _, word := range strings.Split(line, " ") {
		name, value, isPair := strings.Cut(word, "=")
		if isPair && isKey(name) && begins(fields, key, name, before) {
			key = name
			fields[key] = value
		} else if key != "" {
			fields[key] += " " + word
		}
		before = word
	}
	for k, v := range fields {
		fields[k] = strings.TrimSpace(v)
	}
	return fields
}

// begins tells whether the key name ends the value of key, whose last word is before.
func begins(fields map[string]string, key, name, before string) bool {
	if _, again := fields[name]; again {
		return false
	}
	followers, isFree := free[key]
	if !isFree {
		return true
	}
	signed := strings.HasPrefix(before, "[") && strings.HasSuffix(before, "]")
	return slices.Contains(followers, name) && (key != "Reason" || signed)
}

func isKey(name string) bool {
	return name != "" && name[0] >= 'A' && name[0] <= 'Z' && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_:") == ""
}

func cut(line string) string { return line[:min(len(line), 60)] }

// absent tells whether a value is one of Slurm's words for none.
func absent(value string) bool {
	return slices.Contains([]string{"", "(null)", "N/A", "n/a", "n/s", "None", "NONE", "none", "Unknown"}, value)
}

// unlimited tells whether a value is one of Slurm's words for no limit.
func unlimited(value string) bool {
	return absent(value) || slices.Contains([]string{"UNLIMITED", "INFINITE", "Partition_Limit", "PARTITION_LIMIT", "NOT_SET", "INVALID"}, value)
}

func (r *record) fail(key string, err error) {
	if r.fault == nil && err != nil {
		r.fault = fmt.Errorf("%s=%s: %s=%s: %w", r.kind, r.fields[r.kind], key, cut(r.fields[key]), err)
	}
}

// text answers a value; "" where Slurm says that there is none.
func (r *record) text(key string) string {
	if absent(r.fields[key]) {
		return ""
	}
	return r.fields[key]
}

// must answers a value that every release tells.
func (r *record) must(key string) string {
	if _, told := r.fields[key]; !told {
		r.fail(key, errors.New("missing; Slurm's release may be one that is not known here"))
	}
	return r.fields[key]
}

// number answers a value that is a count; 0 where there is none, or no limit.
func (r *record) number(key string) int64 {
	if unlimited(r.fields[key]) {
		return 0
	}
	n, err := strconv.ParseInt(r.fields[key], 10, 64)
	if err != nil {
		r.fail(key, errors.New("not a number"))
	}
	return n
}

func (r *record) list(key string) []string {
	if r.text(key) == "" {
		return nil
	}
	return strings.Split(r.fields[key], ",")
}

func (r *record) names(key string) []string {
	names, err := namesIn(r.text(key))
	r.fail(key, err)
	return names
}

func (r *record) counts(key string) map[string]int64 {
	need, err := licencesOf(r.text(key))
	r.fail(key, err)
	return need.units
}

func (r *record) time(key string) cluster.Time {
	t, err := timeOf(r.fields[key])
	r.fail(key, err)
	return t
}

func (r *record) duration(key string) cluster.Duration {
	d, err := durationOf(r.fields[key])
	r.fail(key, err)
	return d
}

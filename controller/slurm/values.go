package slurm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
)

// timeOf reads a time as Slurm prints it: in seconds since the epoch as [Commands]
// has it print them, or as a date in UTC; 0 where there is none.
func timeOf(text string) (cluster.Time, error) {
	if unlimited(text) {
		return 0, nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return cluster.Time(seconds) * cluster.Time(cluster.Second), nil
	}
	t, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		return 0, errors.New("not a time")
	}
	return cluster.TimeOf(t), nil
}

// durationOf reads a length of time as Slurm prints it, [days-][[hours:]minutes:]seconds,
// or days-hours[:minutes[:seconds]]; 0 where there is none, or no limit.
func durationOf(text string) (cluster.Duration, error) {
	if unlimited(text) {
		return 0, nil
	}
	days, rest, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, rest = "0", text
	}
	parts := strings.Split(rest, ":")
	units := []cluster.Duration{cluster.Hour, cluster.Minute, cluster.Second}
	if !hasDays {
		units = units[max(0, len(units)-len(parts)):]
	}
	total := number(days)
	if total < 0 || len(parts) > len(units) {
		return 0, errors.New("not a length of time")
	}
	sum := cluster.Duration(total) * 24 * cluster.Hour
	for i, p := range parts {
		n := number(p)
		if n < 0 {
			return 0, errors.New("not a length of time")
		}
		sum += cluster.Duration(n) * units[i]
	}
	return sum, nil
}

// countsOf reads names with counts, as in "foo:3,vcs@pool:8"; a name alone counts as 1.
// What is named twice is added up. It is nil where there is none.
func countsOf(text string) (map[string]int64, error) {
	if absent(text) {
		return nil, nil
	}
	counts := map[string]int64{}
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;|&", r) }) {
		name, n := one, int64(1)
		if i := strings.LastIndexByte(one, ':'); i >= 0 {
			name, n = one[:i], number(one[i+1:])
		}
		if name == "" || n < 0 {
			return nil, fmt.Errorf("%q is no name with a count", one)
		}
		counts[name] += n
	}
	return counts, nil
}

// gresOf reads what a node has beside cpus and memory, as in "gpu:a100:2(S:0-1),gpu:v100:1,fpga",
// and adds up the types of each.
func gresOf(text string) (map[string]int64, error) {
	if absent(text) {
		return nil, nil
	}
	counts := map[string]int64{}
	for _, one := range strings.Split(outside(text), ",") {
		parts := strings.Split(strings.TrimPrefix(one, "gres/"), ":")
		n, last := int64(1), parts[len(parts)-1]
		if typed := len(parts) == 2 && strings.Trim(last[:min(1, len(last))], "0123456789-") != ""; len(parts) > 1 && !typed {
			n = scaled(last)
		}
		if parts[0] == "" || n < 0 {
			return nil, fmt.Errorf("%q is no name with a count", one)
		}
		counts[parts[0]] += n
	}
	return counts, nil
}

// outside answers what of a text is outside of round brackets.
func outside(text string) string {
	var kept strings.Builder
	depth := 0
	for _, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0:
			kept.WriteRune(r)
		}
	}
	return kept.String()
}

// scaled answers a count that may end in K, M, G or T, which are powers of 1024, or -1.
func scaled(text string) int64 {
	shift := 0
	if text != "" {
		if i := strings.IndexByte("KMGT", text[len(text)-1]&^0x20); i >= 0 {
			shift, text = 10*(i+1), text[:len(text)-1]
		}
	}
	n := number(text)
	if n < 0 || n > 1<<62>>shift {
		return -1
	}
	return n << shift
}

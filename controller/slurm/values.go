package slurm

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
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

// mostDigits is how many digits a number has at most.
const mostDigits = 18

// whole answers digits as a number.
func whole[T string | []byte](text T) (n int64, err error) {
	if len(text) == 0 || len(text) > mostDigits {
		return 0, errNumber
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, errNumber
		}
		n = n*10 + int64(text[i]-'0')
	}
	return n, nil
}

// count answers a number that may end with K, M, G or T for powers of 1024.
func count(text string) (int64, error) {
	unit := int64(1)
	if text != "" {
		if i := strings.IndexByte("KMGT", text[len(text)-1]&^0x20); i >= 0 {
			unit, text = int64(1)<<(10*(i+1)), text[:len(text)-1]
		}
	}
	n, err := whole(text)
	if err != nil || n > math.MaxInt64/4/unit {
		return 0, errNumber
	}
	return n * unit, nil
}

var errLimit = errors.New("is not a length of time such as 1-02:30:00")

// durationOf reads a length of time as Slurm prints it, [[hours:]minutes:]seconds,
// or days-hours[:minutes[:seconds]]; 0 where there is none, or no limit.
func durationOf(text string) (cluster.Duration, error) {
	if unlimited(text) {
		return 0, nil
	}
	days, rest, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, rest = "0", text
	}
	units := []int64{3600, 60, 1}
	parts := strings.Count(rest, ":") + 1
	if parts > len(units) {
		return 0, errLimit
	}
	if !hasDays {
		units = units[len(units)-parts:]
	}
	n, err := whole(days)
	if err != nil || n > mostSeconds/(24*3600)/2 {
		return 0, errLimit
	}
	seconds := n * 24 * 3600
	for part := range strings.SplitSeq(rest, ":") {
		n, err := whole(part)
		if err != nil || n > mostSeconds/3600/8 {
			return 0, errLimit
		}
		seconds += n * units[0]
		units = units[1:]
	}
	return cluster.Duration(seconds) * cluster.Second, nil
}

// countList answers counts as Slurm takes lists of them, as in a:1,b:2.
func countList(counts map[string]int64) string {
	var items []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		items = append(items, fmt.Sprintf("%s:%d", name, counts[name]))
	}
	return strings.Join(items, ",")
}

// licenceNeed is what one text asks of licences.
type licenceNeed struct {
	units    map[string]int64
	any      bool
	unjudged string
}

// licencesOf reads a list such as vcs@pool:3,foo, or vcs:1|foo:2 where one of them
// is enough. One that is asked for without a count is asked for once; none is no need.
func licencesOf(text string) (licenceNeed, error) {
	need := licenceNeed{units: map[string]int64{}, any: strings.Contains(text, "|")}
	if need.any && strings.ContainsAny(text, ",;") {
		need.unjudged = "it asks for licences joined by both , and |, which cannot be judged here"
	}
	for item := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",;|&", r) }) {
		name, units := item, int64(1)
		if i := strings.LastIndexAny(item, ":*"); i >= 0 {
			n, err := whole(item[i+1:])
			if err != nil {
				return need, fmt.Errorf("has %q, which is not NAME:COUNT", item)
			}
			name, units = item[:i], n
		}
		if len(name) == 0 || units > math.MaxInt32 {
			return need, fmt.Errorf("has %q, which is not NAME:COUNT", item)
		}
		if units > 0 {
			need.units[name] += units
		} else if need.any {
			return licenceNeed{}, nil // one that needs nothing is enough
		}
	}
	if len(need.units) == 0 {
		return licenceNeed{}, nil
	}
	return need, nil
}

// gresOf reads what a node has, or a job asks for, beside cpus and memory, as in "gpu:a100:2(S:0-1),fpga" or
// "gres:gpu:tesla:2,gres/gpu=1", and adds up the types of each; it is nil where there is none.
func gresOf(text string) (map[string]int64, error) {
	if absent(text) {
		return nil, nil
	}
	var counts map[string]int64
	for item := range strings.SplitSeq(outside(text), ",") {
		name, n, err := gresItem(item)
		if err != nil {
			return nil, fmt.Errorf("has %q: %w", item, err)
		}
		if n == 0 {
			continue
		}
		if counts == nil {
			counts = map[string]int64{}
		}
		counts[name] = min(counts[name]+n, mostCounted)
	}
	return counts, nil
}

func gresItem(item string) (name string, n int64, err error) {
	rest, prefixed := strings.CutPrefix(item, "gres")
	if prefixed && rest != "" && (rest[0] == ':' || rest[0] == '/') {
		rest = rest[1:]
	} else {
		rest = item
	}
	parts := strings.FieldsFunc(rest, func(r rune) bool { return r == ':' || r == '=' })
	if len(parts) == 0 || len(parts) > 4 {
		return "", 0, errors.New("this is not NAME:TYPE:COUNT")
	}
	// What Slurm tells in other fields too is none of these.
	switch kind, _, _ := strings.Cut(parts[0], "/"); kind {
	case "cpu", "mem", "node", "billing", "energy", "vmem", "pages", "fs", "bb", "ic", "license":
		return "", 0, nil
	}
	if len(parts) == 1 {
		return parts[0], 1, nil
	}
	last := parts[len(parts)-1]
	if n, err = count(last); err != nil && len(parts) == 2 && strings.Trim(last, "-0123456789") != "" {
		return parts[0], 1, nil // a type
	}
	return parts[0], n, err
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

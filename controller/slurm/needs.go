package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"xce.internal/elastic/cluster"
)

// licenceNeed is what one text asks of licences.
type licenceNeed struct {
	units    map[string]int64
	any      bool
	unjudged string
}

// needs reads licences and countables.
func (p *jobParser) needs(j *Job) error {
	need, err := p.licenceNeed(p.fields[fieldLicences])
	if err != nil {
		return p.fault(fieldLicences, err)
	}
	j.Licences, j.AnyLicence, j.Unjudged = need.units, need.any, need.unjudged
	return p.countables(j)
}

func (p *jobParser) licenceNeed(text []byte) (licenceNeed, error) {
	if isEmpty(text) {
		return licenceNeed{}, nil
	}
	if need, ok := p.licences[string(text)]; ok {
		return need, nil
	}
	need, err := parseLicences(text)
	if err == nil {
		p.licences[string(text)] = need
	}
	return need, err
}

// parseLicences reads a list such as vcs@pool:3,foo, or vcs:1|foo:2 where one of them
// is enough. One that is asked for without a count is asked for once; none is no need.
func parseLicences(text []byte) (licenceNeed, error) {
	need := licenceNeed{units: map[string]int64{}, any: bytes.IndexByte(text, '|') >= 0}
	if need.any && bytes.ContainsAny(text, ",;") {
		need.unjudged = "it asks for licences joined by both , and |, which cannot be judged here"
	}
	for item := range bytes.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '|' }) {
		name, units := item, int64(1)
		if i := bytes.LastIndexAny(item, ":*"); i >= 0 {
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
			need.units[string(name)] += units
		} else if need.any {
			return licenceNeed{}, nil // one that needs nothing is enough
		}
	}
	if len(need.units) == 0 {
		return licenceNeed{}, nil
	}
	return need, nil
}

// countables reads what a job takes of each node beside cpus and memory. Slurm lets
// it be asked for by node, by job, by socket and by task.
func (p *jobParser) countables(j *Job) error {
	for field := fieldPerJob; field <= fieldPerTask; field++ {
		raw := p.fields[field]
		if isEmpty(raw) {
			continue
		}
		asked, err := p.gresOf(raw)
		if err != nil {
			return p.fault(field, err)
		}
		switch field {
		case fieldPerNode:
			j.Gres = most(j.Gres, asked)
		case fieldPerJob:
			j.Gres = most(j.Gres, each(asked, func(n int64) int64 { return ceil(n, j.Nodes) }))
		case fieldPerTask:
			j.Gres = most(j.Gres, each(asked, func(n int64) int64 { return times(n, ceil(j.Tasks, j.Nodes)) }))
		case fieldPerSocket:
			if len(asked) > 0 {
				j.Gres = most(j.Gres, asked)
				j.Unjudged = "it asks for " + string(raw) + " on each socket, and how many sockets it gets is not known here"
			}
		}
	}
	for name := range j.Gres {
		if !cluster.ValidName(name) {
			j.Unjudged = fmt.Sprintf("it asks for %q, which cannot be counted under that name here", name)
		}
	}
	return nil
}

// most answers the larger of each entry.
func most(a, b map[string]int64) map[string]int64 {
	if len(a) == 0 {
		return b
	}
	sum := maps.Clone(a)
	for name, n := range b {
		sum[name] = max(sum[name], n)
	}
	return sum
}

func each(counts map[string]int64, change func(int64) int64) map[string]int64 {
	changed := make(map[string]int64, len(counts))
	for name, n := range counts {
		changed[name] = change(n)
	}
	return changed
}

func (p *jobParser) gresOf(text []byte) (map[string]int64, error) {
	if counts, ok := p.gres[string(text)]; ok {
		return counts, nil
	}
	counts, err := parseGres(text)
	if err == nil {
		p.gres[string(text)] = counts
	}
	return counts, err
}

// parseGres reads a list such as gres:gpu:tesla:2,gres/gpu=1, over all types of each.
func parseGres(text []byte) (map[string]int64, error) {
	var counts map[string]int64
	for item := range bytes.SplitSeq(text, []byte{','}) {
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

func gresItem(item []byte) (name string, n int64, err error) {
	rest, prefixed := bytes.CutPrefix(item, []byte("gres"))
	if prefixed && len(rest) > 0 && (rest[0] == ':' || rest[0] == '/') {
		rest = rest[1:]
	} else {
		rest = item
	}
	parts := bytes.FieldsFunc(rest, func(r rune) bool { return r == ':' || r == '=' })
	if len(parts) == 0 || len(parts) > 3 {
		return "", 0, errors.New("this is not NAME:TYPE:COUNT")
	}
	// What Slurm tells in other fields too is none of these.
	switch kind, _, _ := bytes.Cut(parts[0], []byte{'/'}); string(kind) {
	case "cpu", "mem", "node", "billing", "energy", "vmem", "pages", "fs", "bb", "ic", "license":
		return "", 0, nil
	}
	name, n = string(parts[0]), 1
	if len(parts) > 1 {
		last := parts[len(parts)-1]
		switch count, err := parseCount(last); {
		case err == nil:
			n = count
		case len(parts) == 3 || last[0] >= '0' && last[0] <= '9' && len(last) > 12:
			return "", 0, err
		}
	}
	return name, n, nil
}

// parseCount reads a count, which may end with K, M, G or T for powers of 1024.
func parseCount(text []byte) (int64, error) {
	unit := int64(1)
	if i := strings.IndexByte("KMGT", text[len(text)-1]&^0x20); i >= 0 {
		unit, text = int64(1)<<(10*(i+1)), text[:len(text)-1]
	}
	n, err := whole(text)
	if err != nil || n > math.MaxInt64/4/unit {
		return 0, errNumber
	}
	return n * unit, nil
}

package slurm

import (
	"fmt"
	"maps"

	"xce.internal/elastic/cluster"
)

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
	need, err := licencesOf(string(text))
	if err == nil {
		p.licences[string(text)] = need
	}
	return need, err
}

// countables reads what a job takes of each node beside cpus and memory. Slurm lets
// it be asked for by node, by job, by socket and by task.
func (p *jobParser) countables(j *Job) error {
	for field := fieldPerJob; field <= fieldPerTask; field++ {
		raw := p.fields[field]
		if isEmpty(raw) {
			continue
		}
		asked, err := p.gresAsked(raw)
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

func (p *jobParser) gresAsked(text []byte) (map[string]int64, error) {
	if counts, ok := p.gres[string(text)]; ok {
		return counts, nil
	}
	counts, err := gresOf(string(text))
	if err == nil {
		p.gres[string(text)] = counts
	}
	return counts, err
}

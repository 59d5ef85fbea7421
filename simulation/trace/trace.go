// Package trace holds the jobs of a cluster over some time: read from accounting
// files of batch systems, generated, or recorded from a live controller.
//
// Nothing is dropped or changed silently: what a reader or a mapping mends is
// counted under a rule, with its places, and each rule can be refused instead.
package trace

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// Trace is jobs in the order of their arrival. Of jobs that arrive at one
// instant, the one that stands first in the file comes first.
type Trace struct {
	// Source says where the jobs come from: files, or a generator and its seed.
	Source string
	Jobs   []Job
	// Repairs is what was mended, by rule, in the order of the rules.
	Repairs []Repair
}

// Job is a job of a trace, or one element of an array. Ten million of them are
// held at once, so what many have in common is in Shape.
type Job struct {
	// ID is the source's own number; Name is what the source calls the job where that is
	// no number ("4103947_100"), else empty.
	ID     int64
	Name   string
	Submit cluster.Time
	// Run is how long the job runs once it has started.
	Run cluster.Duration
	// Limit is its time limit; 0 means none. A job ends there if it has not before.
	Limit cluster.Duration
	// Waited is how long it waited where the trace comes from; -1 if that is not known.
	Waited cluster.Duration
	// TokensFor is how long after its start the job keeps its tokens; 0 means to its end.
	TokensFor cluster.Duration
	Shape     *Shape
}

// Shape is what a job asks for and whose it is; jobs that are alike share one. Its Spec has
// neither time limit nor earliest start nor array: those are the job's.
type Shape struct {
	cluster.JobSpec
	User, Group, Application string
}

// Repair is what was mended under one rule.
type Repair struct {
	// Rule is its name, as the flag that refuses it has it: "no-estimate".
	Rule string `json:"rule"`
	// What says what was found and what was done, in a sentence.
	What  string `json:"what"`
	Count int64  `json:"count"`
	// Places are the first few, as FILE:LINE with the field and its text.
	Places []string `json:"places,omitempty"`
}

// Sort brings the jobs into the order of their arrival.
func (t *Trace) Sort() {
	arrivals := make([]arrival, len(t.Jobs))
	for i := range t.Jobs {
		arrivals[i] = arrival{t.Jobs[i].Submit, i}
	}
	slices.SortFunc(arrivals, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.submit, b.submit), cmp.Compare(a.from, b.from))
	})
	// Each job moves once, along the cycles of the permutation.
	for i := range arrivals {
		if arrivals[i].from == i {
			continue
		}
		first := t.Jobs[i]
		at := i
		for arrivals[at].from != i {
			from := arrivals[at].from
			t.Jobs[at], arrivals[at].from = t.Jobs[from], at
			at = from
		}
		t.Jobs[at], arrivals[at].from = first, at
	}
}

// arrival is when a job arrives, and where it stands.
type arrival struct {
	submit cluster.Time
	from   int
}

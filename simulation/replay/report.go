package replay

import (
	"slices"

	"xce.internal/elastic/cluster"
)

// Report is what came of a replay.
type Report struct {
	Folder string `json:"folder"`
	// Releases are the versions of the program that wrote the record, in the order in which they turn up.
	Releases []string `json:"releases"`
	// From and To are the times of the first decision and the last; histories do not count.
	From cluster.Time `json:"from,omitempty"`
	To   cluster.Time `json:"to,omitempty"`
	// CutOff counts files of which the end is missing, as where a controller was killed, and Missed decisions that the
	// controller was too busy to write down.
	CutOff int64 `json:"cut_off"`
	Missed int64 `json:"missed"`
	// NotBegun counts stories of which no step had been taken.
	NotBegun int64 `json:"not_begun"`
	// Stopped tells that the replay was broken off before its end.
	Stopped bool `json:"stopped,omitempty"`
	// Kinds counts by kind of what was decided.
	Kinds []Kind `json:"kinds"`
	// Differences and Rewordings are the first of them.
	Differences []Difference `json:"differences"`
	Rewordings  []Difference `json:"rewordings"`
}

// Kind counts what was decided alike and what was not.
type Kind struct {
	Name     string `json:"name"`
	Replayed int64  `json:"replayed"`
	// Same are those that are decided alike; Reworded of them with other words. Different is the rest.
	Same      int64 `json:"same"`
	Reworded  int64 `json:"reworded"`
	Different int64 `json:"different"`
}

// Difference is a place at which something else is decided now.
type Difference struct {
	// Where is FILE:LINE, or the id of a workflow with its run and the event.
	Where string `json:"where"`
	What  string `json:"what"`
	// Path is the field that differs first; empty where the whole does.
	Path string `json:"path,omitempty"`
	// Live is what was decided, and Now what would be.
	Live string `json:"live"`
	Now  string `json:"now"`
}

// mostShown is how many differences are kept of each sort.
const mostShown = 20

// Kinds of what is replayed, in the order in which they are reported.
const (
	kindSessions = "sessions"
	kindLoans    = "writes to loans"
	kindHosts    = "writes to hosts"
	kindLendings = "lendings"
	kindFacts    = "facts of hosts"
	kindStories  = "stories"
	kindSteps    = "steps of stories"
)

var kinds = []string{kindSessions, kindLoans, kindLendings, kindHosts, kindFacts, kindStories, kindSteps}

func newReport(folder string) *Report {
	r := &Report{Folder: folder, Releases: []string{}, Differences: []Difference{}, Rewordings: []Difference{}}
	for _, name := range kinds {
		r.Kinds = append(r.Kinds, Kind{Name: name})
	}
	return r
}

// Different counts what is decided otherwise now.
func (r *Report) Different() (n int64) {
	for _, k := range r.Kinds {
		if k.Name != kindStories { // its steps count, or the one that it stopped at
			n += k.Different
		}
	}
	return n
}

func (r *Report) replayed() (n int64) {
	for _, k := range r.Kinds {
		n += k.Replayed
	}
	return n
}

func (r *Report) kind(name string) *Kind {
	return &r.Kinds[slices.Index(kinds, name)]
}

// count counts one decision, with what was found of it; either may be nil.
func (r *Report) count(kind string, differs, reworded *Difference) {
	k := r.kind(kind)
	k.Replayed++
	switch {
	case differs != nil:
		k.Different++
		r.Differences = kept(r.Differences, *differs)
		return
	case reworded != nil:
		k.Reworded++
		r.Rewordings = kept(r.Rewordings, *reworded)
	}
	k.Same++
}

func kept(list []Difference, d Difference) []Difference {
	if len(list) < mostShown {
		list = append(list, d)
	}
	return list
}

func (r *Report) wroteIt(release string) {
	if release != "" && !slices.Contains(r.Releases, release) {
		r.Releases = append(r.Releases, release)
	}
}

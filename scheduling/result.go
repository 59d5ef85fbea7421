package scheduling

import "xce.internal/elastic/cluster"

// Result is what a session decided and found.
type Result struct {
	Starts []Start `json:"starts"`
	// Reservations are all that stand after this session, in the order of the jobs.
	Reservations []Reservation `json:"reservations,omitempty"`
	// Demand is ordered as cluster.CompareDemand says.
	Demand []cluster.Demand `json:"demand"`
	// Idle has one entry per resource with idle units, ordered by resource, and
	// then one per idle host, ordered by host.
	Idle []cluster.IdleSupply `json:"idle"`
	// Halves are what is kept for jobs that wait for the rest of what they need, which
	// is on its way or about to be asked for; one entry per resource, ordered, and then
	// one per host without a job.
	Halves []cluster.Half `json:"halves,omitempty"`
	// Clocks are the idle clocks after this session, by resource.
	Clocks map[string]cluster.IdleClock `json:"clocks"`
	// Unplaced names every job that stays waiting, once, but arrays where their
	// elements wait for different things; jobs with the same needs that wait for
	// the same are in one entry. Entries are in the order of their first jobs.
	Unplaced []Unplaced `json:"unplaced"`
}

// Start places a job, or one element of an array, on its hosts; it takes its
// tokens with it.
type Start struct {
	Job int64 `json:"job"`
	// Element is which of an array's elements starts, from 1; 0 for a plain job.
	Element int64 `json:"element,omitempty"`
	// Alternative is which of the job's alternatives it takes, from 1; 0 means none.
	Alternative int64    `json:"alternative,omitempty"`
	Hosts       []string `json:"hosts"`
}

// Reservation promises a job that it can start at a time, if every running job
// keeps its time limit and nothing fails.
type Reservation struct {
	Job int64 `json:"job"`
	// Element is which of an array's elements it is for, from 1; 0 for a plain job.
	Element int64 `json:"element,omitempty"`
	// Alternative is which of the job's alternatives is kept, from 1; 0 means none.
	Alternative int64 `json:"alternative,omitempty"`
	// At is the latest start.
	At cluster.Time `json:"at"`
	// Hosts are those that it is promised; one that is expected by its id.
	Hosts []string `json:"hosts"`
}

// Unplaced says why jobs wait.
type Unplaced struct {
	Code Code `json:"code"`
	// Why says it in numbers; Change says what would have to change.
	Why    string `json:"why"`
	Change string `json:"change"`
	// Jobs are the ids, in session order; Count counts elements of arrays too.
	Jobs  []int64 `json:"jobs"`
	Count int64   `json:"count"`
}

// Code is the kind of reason for which a job waits.
type Code string

// Codes, ranked from what a person must change to what needs patience.
const (
	Never        Code = "never"        // nothing that is configured could ever run it
	WaitJobs     Code = "dependency"   // other jobs must end first
	WaitStart    Code = "not-before"   // its earliest start has not come
	WaitTokens   Code = "tokens"       // running jobs must give tokens back: no one can lend what lacks
	WaitHosts    Code = "hosts"        // a host must become free: no one can make one that it lacks
	WaitBehind   Code = "behind"       // an earlier job must start
	WaitReserved Code = "reserved"     // its reservation comes before new supply could
	WaitMore     Code = "threshold"    // too few jobs have waited for too short a time to ask for more
	WaitComing   Code = "coming"       // hosts or tokens that were requested must arrive
	WaitBorrow   Code = "borrowing"    // tokens are about to be borrowed
	WaitMade     Code = "provisioning" // hosts are about to be made, and perhaps tokens borrowed
)

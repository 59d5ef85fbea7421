package timeskip

// An Attempt names one attempt of one activity, for Options.Faults.
type Attempt struct {
	Workflow string // id of the workflow
	Activity string // type of the activity
	Sequence int    // counts the activities of this workflow id from 1, over all its runs
	Number   int    // counts the attempts of this activity from 1

	seed uint64
}

// Chance is true with probability p, always alike for the same seed and attempt.
func (a Attempt) Chance(p float64) bool {
	const most = 1 << 53
	n := draw(a.seed, "chance", a.Workflow, a.Activity, a.Sequence, a.Number) % most
	return float64(n)/most < p
}

// A Fault is what goes wrong with one attempt.
type Fault int

const (
	// None lets the body run once and its answer arrive.
	None Fault = iota
	// RunTwice runs the body twice, at two instants; the second answer is used. So it
	// goes when a task is delivered again.
	RunTwice
	// LostAnswer runs the body and loses its answer: the attempt times out.
	LostAnswer
	// NotRun does not run the body: the attempt times out.
	NotRun
)

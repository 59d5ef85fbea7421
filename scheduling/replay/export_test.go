package replay

import "xce.internal/elastic/cluster"

// Completions is the heap of a replay, for tests of other players.
type Completions struct {
	heap completions
	n    int64
}

// Next answers when the next job completes.
func (c *Completions) Next() (cluster.Time, bool) {
	if len(c.heap) == 0 {
		return 0, false
	}
	return c.heap[0].at, true
}

// Push adds a job.
func (c *Completions) Push(at cluster.Time, job int64) {
	c.n++
	c.heap.push(completion{at: at, start: c.n, job: job})
}

// Pop takes the next one.
func (c *Completions) Pop() int64 { return c.heap.pop().job }

package replay

import "xce.internal/elastic/cluster"

// completion is that of a running job.
type completion struct {
	at           cluster.Time
	limit        cluster.Time // when its time limit is over; 0 means never
	start        int64        // numbers the starts
	job, element int64
	// ended tells that the engine knows it already.
	ended bool
}

// before orders completions by time, then by start.
func (c *completion) before(other *completion) bool {
	if c.at != other.at {
		return c.at < other.at
	}
	return c.start < other.start
}

// completions is a heap of them; the next one is the first.
type completions []completion

func (h *completions) push(c completion) {
	*h = append(*h, c)
	all := *h
	i := len(all) - 1
	for i > 0 && c.before(&all[(i-1)/2]) {
		all[i] = all[(i-1)/2]
		i = (i - 1) / 2
	}
	all[i] = c
}

func (h *completions) pop() completion {
	all := *h
	first, moved := all[0], all[len(all)-1]
	all = all[:len(all)-1]
	*h = all
	i := 0
	for child := 1; child < len(all); child = 2*i + 1 {
		if child+1 < len(all) && all[child+1].before(&all[child]) {
			child++
		}
		if !all[child].before(&moved) {
			break
		}
		all[i] = all[child]
		i = child
	}
	if len(all) > 0 {
		all[i] = moved
	}
	return first
}

package replay

import (
	"cmp"

	"xce.internal/elastic/cluster"
)

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
	return cmp.Or(cmp.Compare(c.at, other.at), cmp.Compare(c.start, other.start)) < 0
}

// completions is a heap of them; the next one is the first.
type completions []completion

func (h *completions) push(c completion) {
	*h = append(*h, c)
	all := *h
	for i := len(all) - 1; i > 0; {
		parent := (i - 1) / 2
		if !all[i].before(&all[parent]) {
			return
		}
		all[i], all[parent] = all[parent], all[i]
		i = parent
	}
}

func (h *completions) pop() completion {
	all := *h
	first, last := all[0], len(all)-1
	all[0] = all[last]
	all = all[:last]
	*h = all
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(all); child++ {
			if all[child].before(&all[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
}

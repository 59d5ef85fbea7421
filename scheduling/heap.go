package scheduling

// classHeap gives the class whose next job comes first, by the classes' cursors.
type classHeap []queued

// queued is a class in a heap, with what its next job is ordered by.
type queued struct {
	priority, id int64
	class        *class
	cpus         int64 // that its jobs need
}

// before tells whether q's job is taken before r's.
func (q *queued) before(r *queued) bool {
	if q.priority != r.priority {
		return q.priority > r.priority
	}
	return q.id < r.id
}

// queuedFirst answers a class with its first job.
func queuedFirst(c *class) queued {
	return queued{c.queue[c.head].priority, c.queue[c.head].id, c, c.need[dimCPUs]}
}

func queuedAt(c *class) queued {
	e := &c.queue[c.pass.cursor.entry]
	return queued{e.priority, e.id, c, c.need[dimCPUs]}
}

func (h classHeap) less(i, j int) bool { return h[i].before(&h[j]) }

// append adds a class to a heap that is built later.
func (h *classHeap) append(c *class) { *h = append(*h, queuedAt(c)) }

// build orders a heap that was just filled.
func (h classHeap) build() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// push adds a class.
func (h *classHeap) push(c *class) {
	h.append(c)
	for i := len(*h) - 1; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		(*h)[i], (*h)[(i-1)/2] = (*h)[(i-1)/2], (*h)[i]
	}
}

// fix puts the first class where it belongs after its cursor moved, and drops
// it when there is no more of it.
func (h *classHeap) fix() {
	c := (*h)[0].class
	if c.atEnd(c.pass.cursor) {
		h.pop()
		return
	}
	(*h)[0] = queuedAt(c)
	h.down(0)
}

// pop drops the first class.
func (h *classHeap) pop() {
	last := len(*h) - 1
	(*h)[0] = (*h)[last]
	*h = (*h)[:last]
	h.down(0)
}

func (h classHeap) down(i int) {
	for {
		first, left := i, 2*i+1
		if left < len(h) && h.less(left, first) {
			first = left
		}
		if right := left + 1; right < len(h) && h.less(right, first) {
			first = right
		}
		if first == i {
			return
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
}

package scheduling

import (
	"math/bits"

	"xce.internal/elastic/cluster"
)

// run is a running job, or element of an array.
type run struct {
	key runKey
	*footprint
	choice int32
	next   int32 // see running.chains
	hosts  []int32
	ends   cluster.Time
}

type runKey struct{ job, element int64 }

// running is the jobs that run, in places that change, and how they are found by their
// ids.
type running struct {
	all []run
	// chains hang those together whose ids fall alike: each begins with the place of a run,
	// counted from 1, which names the next. There is none until the first is looked for.
	chains []int32
}

// add adds one.
func (rs *running) add(r run) {
	rs.all = append(rs.all, r)
	switch {
	case rs.chains == nil:
	case len(rs.all) > len(rs.chains):
		rs.chain()
	default:
		rs.hang(len(rs.all) - 1)
	}
}

// find answers one, nil where there is none.
func (rs *running) find(key runKey) *run {
	if rs.chains == nil {
		rs.chain()
	}
	if at := *rs.link(key); at > 0 {
		return &rs.all[at-1]
	}
	return nil
}

// remove takes one out that there is. The last one takes its place.
func (rs *running) remove(key runKey) {
	link, last := rs.link(key), len(rs.all)-1
	at := *link
	*link = rs.all[at-1].next
	if moved := &rs.all[last]; int(at) <= last {
		*rs.link(moved.key) = at
		rs.all[at-1] = *moved
	}
	rs.all[last] = run{}
	rs.all = rs.all[:last]
}

// chain hangs all of them on chains anew.
func (rs *running) chain() {
	const few = 64
	rs.chains = make([]int32, 1<<bits.Len(uint(max(len(rs.all), few))))
	for i := range rs.all {
		rs.hang(i)
	}
}

// hang puts a run at the begin of its chain.
func (rs *running) hang(i int) {
	begin := rs.begin(rs.all[i].key)
	rs.all[i].next = *begin
	*begin = int32(i + 1)
}

// link answers what names the place of a run: the begin of its chain, or the one before
// it. It is 0 where there is none.
func (rs *running) link(key runKey) *int32 {
	link := rs.begin(key)
	for *link > 0 && rs.all[*link-1].key != key {
		link = &rs.all[*link-1].next
	}
	return link
}

// begin answers where the chain of an id begins.
func (rs *running) begin(key runKey) *int32 {
	const a, b = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F // spread ids that follow each other over the first bits
	spread := uint64(key.job)*a + uint64(key.element)*b
	return &rs.chains[spread>>(64-bits.Len(uint(len(rs.chains)-1)))]
}

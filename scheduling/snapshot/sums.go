package snapshot

import (
	"fmt"
	"maps"
	"slices"

	"xce.internal/elastic/cluster"
)

// Limits within which what a session sums over all waiting jobs stays a whole
// number: how many hosts they ask for, and that times the largest of anything.
const (
	mostStarts = 100_000_000
	mostSum    = 1e18
)

// most is the largest number of a kind, and where it is.
type most struct {
	n    int64
	path string
}

func (m *most) see(path string, n int64) {
	if n > m.n {
		m.n, m.path = n, path
	}
}

func (m *most) seeAll(path string, counts map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		m.see(path+"."+shown(name), counts[name])
	}
}

// sums refuses states over which a session could not sum.
func (c *checks) sums() {
	var starts int64
	for i := range c.in.Jobs {
		job := &c.in.Jobs[i]
		starts += max(job.Array-job.Begun, 1) * max(job.Nodes, 1)
		if starts > mostStarts {
			c.add(fmt.Sprintf("state.jobs[%d]", i), fmt.Sprintf("the jobs up to this one ask for more than %d hosts together", mostStarts), "leave jobs out")
			return
		}
	}
	size, tokens := c.largestSize(), c.largestTokens()
	c.sum(size, starts, 1)
	c.sum(tokens, starts, 1)
	host, token := c.highestPrices()
	hostHours, tokenHours := c.longestPaid()
	c.sum(host, starts, hostHours)
	c.sum(token, starts, tokenHours*float64(max(tokens.n, 1)))
}

func (c *checks) sum(m most, starts int64, times float64) {
	if float64(m.n)*float64(starts)*times > mostSum {
		c.add(m.path, fmt.Sprintf("%d is too large for sums over jobs that ask for %d hosts together", m.n, starts), "write less, or leave jobs out")
	}
}

// largestSize is the most of any countable that a host has or a job needs.
func (c *checks) largestSize() (m most) {
	see := func(list string, i int, cpus, memory int64, countables map[string]int64) {
		if max(cpus, memory, largest(countables)) > m.n {
			at := fmt.Sprintf("state.%s[%d]", list, i)
			m.see(at+".cpus", cpus)
			m.see(at+".memory_mb", memory)
			m.seeAll(at+".countables", countables)
		}
	}
	for i := range c.in.Hosts {
		h := &c.in.Hosts[i]
		see("hosts", i, h.CPUs, h.MemoryMB, h.Countables)
	}
	for i := range c.in.Expected {
		h := &c.in.Expected[i]
		see("expected", i, h.CPUs, h.MemoryMB, h.Countables)
	}
	for i := range c.in.Templates {
		t := &c.in.Templates[i]
		see("templates", i, t.CPUs, t.MemoryMB, t.Countables)
	}
	for i := range c.in.Jobs {
		job := &c.in.Jobs[i]
		see("jobs", i, job.CPUs, job.MemoryMB, job.Countables)
	}
	return m
}

// largestTokens is the most tokens of one resource that a waiting job needs.
func (c *checks) largestTokens() (m most) {
	for i := range c.in.Jobs {
		job := &c.in.Jobs[i]
		for choice := range int64(len(job.Alternatives) + 1) {
			tokens := job.TokensTaken(choice)
			switch {
			case largest(tokens) <= m.n:
			case choice == 0:
				m.seeAll(fmt.Sprintf("state.jobs[%d].tokens", i), tokens)
			default:
				m.seeAll(fmt.Sprintf("state.jobs[%d].alternatives[%d]", i, choice-1), tokens)
			}
		}
	}
	return m
}

func largest(counts map[string]int64) (n int64) {
	for _, count := range counts {
		n = max(n, count)
	}
	return n
}

// highestPrices are those of a host and of a token.
func (c *checks) highestPrices() (host, token most) {
	for i, t := range c.in.Templates {
		host.see(fmt.Sprintf("state.templates[%d].price", i), int64(t.Price))
	}
	for i, o := range c.in.Offers {
		token.see(fmt.Sprintf("state.offers[%d].price", i), int64(o.Price))
	}
	return host, token
}

// longestPaid is how many hours one host, and one token, could be paid for.
func (c *checks) longestPaid() (host, token float64) {
	used := cluster.Hour
	for i := range c.in.Jobs {
		used = max(used, c.in.Jobs[i].TimeLimit)
	}
	hosts, tokens := used, used
	for _, t := range c.in.Templates {
		hosts = max(hosts, t.MinimumHold, t.BillingStep)
	}
	for _, o := range c.in.Offers {
		tokens = max(tokens, o.MinimumHold, o.BillingStep)
	}
	for _, r := range c.in.Resources {
		tokens = max(tokens, r.MinimumHold())
	}
	hours := func(d cluster.Duration) float64 { return 2 * float64(d) / float64(cluster.Hour) } // a step may be begun
	return hours(hosts), hours(tokens)
}

package scheduling

import (
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

func behindHosts(first int64) string {
	return fmt.Sprintf("waits behind job %d, which waits for a host", first)
}

func behindTokens(first int64, n need) string {
	return fmt.Sprintf("needs %d %s; waits behind job %d, which waits for %s too", n.units, n.pool.resource.Name, first, n.pool.resource.Name)
}

func noHost(job cluster.Job, hosts []Host) string {
	if len(hosts) == 0 {
		return fmt.Sprintf("needs %d cpus and %d MB on one host; no host is up", job.CPUs, job.MemoryMB)
	}
	var cpus, memory int64
	for _, h := range hosts {
		cpus, memory = max(cpus, h.CPUs), max(memory, h.MemoryMB)
	}
	return fmt.Sprintf("needs %d cpus and %d MB on one host; the most free on any are %d cpus and %d MB", job.CPUs, job.MemoryMB, cpus, memory)
}

func noHostNorTokens(job cluster.Job, needs []need) string {
	return fmt.Sprintf("needs %s, and %d cpus and %d MB that earlier jobs will take: tokens alone would not let it run", needList(needs), job.CPUs, job.MemoryMB)
}

func needList(needs []need) string {
	var parts []string
	for _, n := range needs {
		parts = append(parts, fmt.Sprintf("%d %s", n.units, n.pool.resource.Name))
	}
	return strings.Join(parts, " and ")
}

// cannotBeLent explains the resources that no one can lend enough of.
func cannotBeLent(shares []share) string {
	var parts []string
	for _, sh := range shares {
		if sh.lacking > 0 {
			parts = append(parts, fmt.Sprintf("%s, %d coming, %d can be borrowed%s", sh.whatIsFree(), sh.coming, sh.fromHeadroom, sh.pool.whyNoMore()))
		}
	}
	return strings.Join(parts, "; ")
}

// whatIsFree says what a job needs and what there is of it.
func (sh share) whatIsFree() string {
	text := fmt.Sprintf("needs %d %s; %d free", sh.need, sh.pool.resource.Name, max(sh.free, 0))
	switch {
	case sh.free < 0:
		text += fmt.Sprintf(" and %d too few for what is in use and kept back", -sh.free)
	case sh.reserved > 0:
		text += fmt.Sprintf(", %d reserved for earlier jobs", sh.reserved)
	}
	return text
}

// whyNoMore says what keeps the pool from borrowing more.
func (p *pool) whyNoMore() string {
	e := p.resource.Elastic
	switch {
	case e == nil:
		return " (the resource is not elastic)"
	case p.room == 0:
		return fmt.Sprintf(" (max borrowed %d is reached)", e.MaxBorrowed)
	}
	return fmt.Sprintf(" (%s)", strings.Join(p.noMore, "; "))
}

// onTheWay explains a job whose tokens are coming or about to be borrowed.
func onTheWay(shares []share) string {
	var parts []string
	for _, sh := range shares {
		text := sh.whatIsFree()
		if sh.coming > 0 {
			text += fmt.Sprintf(", %d requested and coming", sh.coming)
		}
		for i, n := range sh.fromSources {
			if n > 0 {
				text += fmt.Sprintf(", %d to be borrowed from %s", n, sh.pool.sources[i].provider)
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func unknownResource(name string) string {
	return fmt.Sprintf("needs %s, which is no longer a shared resource", name)
}

func overCeiling(name string, units, ceiling int64) string {
	return fmt.Sprintf("needs %d %s; the limits allow %d at most", units, name, ceiling)
}

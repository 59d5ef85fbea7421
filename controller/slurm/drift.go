package slurm

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// drifts is how many more units of each licence than its jobs ask for Slurm counted as used, at the
// last reading; fewer are less than zero. Its zero value knows nothing.
type drifts struct {
	mu   sync.Mutex
	last map[string]int64
}

// warnings says of which of the licences Slurm counts other units as used than the jobs that have
// hosts ask for, each in one sentence. Jobs are read before licences, and some start or end
// in between: what one reading shows alone is not told.
func (d *drifts) warnings(names []string, jobs []Job, licences map[string]Licence) (said []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	held, unsure := heldBy(jobs)
	now := map[string]int64{}
	for _, name := range names {
		l, there := licences[name]
		if !there || unsure[name] {
			continue
		}
		now[name] = l.Used - held[name]
		switch was := d.last[name]; {
		case now[name] > 0 && was > 0:
			said = append(said, fmt.Sprintf("Slurm counts %d tokens of licence %s as used, and the jobs that have hosts ask for %d: a job has lost its request, or is counted twice; scontrol reconfigure has Slurm count anew.", l.Used, name, held[name]))
		case now[name] < 0 && was < 0:
			said = append(said, fmt.Sprintf("Slurm counts %d tokens of licence %s as used, and the jobs that have hosts ask for %d: it has forgotten some, and jobs may take more than is had; scontrol reconfigure has Slurm count anew.", l.Used, name, held[name]))
		}
	}
	d.last = now
	return said
}

// heldBy answers how many units of each licence the jobs ask for that have hosts, and of which
// licences that is not known, since a job has one of several.
func heldBy(jobs []Job) (held map[string]int64, unsure map[string]bool) {
	held, unsure = map[string]int64{}, map[string]bool{}
	for i := range jobs {
		if !holdsHosts[jobs[i].State] {
			continue
		}
		for name, units := range jobs[i].Licences {
			held[name] += units
			unsure[name] = unsure[name] || jobs[i].AnyLicence
		}
	}
	return held, unsure
}

// licenceNames are Slurm's names of the shared resources, in order.
func (o Options) licenceNames() []string { return slices.Sorted(maps.Values(o.Licences)) }

package synthetic

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// Summary says what is in a trace.
type Summary struct {
	Jobs int64 `json:"jobs"`
	// Start is when the cluster is switched on, and Span how long after that the last job comes.
	Start cluster.Time     `json:"start"`
	Span  cluster.Duration `json:"span"`
	// CPUSeconds is the work of all jobs.
	CPUSeconds int64 `json:"cpu_seconds"`
	// Processors is what the load is measured by, if any, and LoadThousandths the
	// work as a share of what they could do over the span.
	Processors      int64 `json:"processors,omitempty"`
	LoadThousandths int64 `json:"load_thousandths,omitempty"`
	// Kinds are the applications, the one with most jobs first.
	Kinds []KindSummary `json:"kinds"`
}

// KindSummary says it of the jobs of one application.
type KindSummary struct {
	Name       string           `json:"name"`
	Jobs       int64            `json:"jobs"`
	CPUSeconds int64            `json:"cpu_seconds"`
	Users      int64            `json:"users"`
	MeanCPUs   int64            `json:"mean_cpus_thousandths"`
	MeanRun    cluster.Duration `json:"mean_run"`
	LongestRun cluster.Duration `json:"longest_run"`
	// work is in processor milliseconds.
	work, processors int64
	run              cluster.Duration
}

// Summarize answers what is in a trace, from a start on, for a machine of so many processors; 0
// processors answer no load.
func Summarize(t *trace.Trace, start cluster.Time, processors int64) Summary {
	s := Summary{Jobs: int64(len(t.Jobs)), Start: start, Processors: processors}
	kinds, users := map[string]*KindSummary{}, map[[2]string]bool{}
	seen := map[*trace.Shape]*KindSummary{}
	var work int64
	for i := range t.Jobs {
		j := &t.Jobs[i]
		k := seen[j.Shape]
		if k == nil {
			name := j.Shape.Application
			if k = kinds[name]; k == nil {
				k = &KindSummary{Name: name}
				kinds[name] = k
			}
			seen[j.Shape] = k
			if who := [2]string{name, j.Shape.User}; !users[who] {
				users[who] = true
				k.Users++
			}
		}
		k.note(j)
		s.Span = max(s.Span, j.Submit.Sub(start))
		work += j.Shape.Processors() * int64(j.Run)
	}
	s.CPUSeconds = work / 1000
	for _, k := range kinds {
		k.CPUSeconds = k.work / 1000
		k.MeanCPUs, k.MeanRun = k.processors*1000/k.Jobs, k.run/cluster.Duration(k.Jobs)
		s.Kinds = append(s.Kinds, *k)
	}
	slices.SortFunc(s.Kinds, func(a, b KindSummary) int { return byJobs(&a, &b) })
	if processors > 0 && s.Span > 0 {
		s.LoadThousandths = int64(round(float64(s.CPUSeconds) * 1000 / (float64(processors) * (float64(s.Span) / 1000))))
	}
	return s
}

func (k *KindSummary) note(j *trace.Job) {
	procs := j.Shape.Processors()
	k.Jobs++
	k.processors += procs
	k.run += j.Run
	k.LongestRun = max(k.LongestRun, j.Run)
	k.work += procs * int64(j.Run)
}

func byJobs(a, b *KindSummary) int {
	return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Name, b.Name))
}

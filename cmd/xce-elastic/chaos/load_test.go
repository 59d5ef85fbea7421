//go:build e2e

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
)

// marks is the file to which jobs write.
func (f *farm) marks() string { return f.path("marks.txt") }

// load hands jobs in, in bursts with pauses in which tokens and hosts fall idle, until ctx ends. It answers what
// it handed in.
func (f *farm) load(ctx context.Context) (all []evidence.Submission) {
	r := rand.New(rand.NewPCG(f.seed, 0x10ad))
	for ctx.Err() == nil {
		for range 3 + r.IntN(5) {
			s, spec := f.draw(r, len(all))
			if f.submit(spec, len(all)+1) {
				all = append(all, s)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(1200*time.Millisecond + time.Duration(r.IntN(2000))*time.Millisecond):
		}
	}
	return all
}

// draw draws a job: of tokens alone, of a host that has to be made, of both, or of neither.
func (f *farm) draw(r *rand.Rand, n int) (evidence.Submission, cluster.JobSpec) {
	spec := cluster.JobSpec{Name: fmt.Sprintf("j%d", n), CPUs: 1, MemoryMB: 100}
	kind := r.IntN(10)
	if kind < 7 {
		spec.Tokens = map[string]int64{"vcs": 1 + r.Int64N(4)}
		if r.IntN(5) == 0 {
			spec.Tokens = map[string]int64{"dc": 1 + r.Int64N(2), "vcs": 1}
		}
	}
	if kind >= 5 && kind < 9 {
		spec.CPUs, spec.MemoryMB = 1+r.Int64N(3), 3000
	}
	spec.Command = evidence.Script(f.marks(), spec.Name, fmt.Sprintf("%d.%d", r.IntN(5)/4, 1+r.IntN(9)), spec.Tokens)
	return evidence.Submission{Name: spec.Name, Tokens: spec.Tokens}, spec
}

// submit hands a job in. Where no answer came, the job is looked for: it may have been taken. It is handed in to
// one controller at a time, and not through a wire, which could bring it late and so twice.
func (f *farm) submit(spec cluster.JobSpec, from int) bool {
	for try := 0; f.t.Context().Err() == nil; try++ {
		c := f.controllers[(from+try)%len(f.controllers)]
		if _, err := c.client.Submit(f.t.Context(), spec); err == nil || f.has(spec.Name) {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// has tells whether there is a job of that name, as soon as it can be told.
func (f *farm) has(name string) bool {
	for try := 0; f.t.Context().Err() == nil; try++ {
		jobs, err := f.controllers[try%len(f.controllers)].client.Jobs(f.t.Context(), "")
		if err == nil {
			return slices.ContainsFunc(jobs, func(j cluster.Job) bool { return j.Name == name })
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

package replay_test

import (
	"bytes"
	"testing"

	"xce.internal/elastic/scheduling/replay"
	"xce.internal/elastic/simulation/trace"
)

// readSWF reads a log in the Standard Workload Format for a machine of so many
// processors, which are all that its jobs ask for.
func readSWF(t testing.TB, data []byte, procs int64) (jobs replay.Trace) {
	t.Helper()
	read, err := trace.ReadFrom(bytes.NewReader(data), "log", trace.Options{Format: trace.SWF, Procs: procs})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range read.Jobs {
		jobs.Jobs = append(jobs.Jobs, replay.Job{ID: j.ID, Submit: j.Submit, Run: j.Run, Estimate: j.Limit, Procs: j.Shape.Processors()})
	}
	return jobs
}

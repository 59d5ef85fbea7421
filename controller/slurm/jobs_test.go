package slurm

import (
	"os"
	"strings"
	"testing"
)

const recordedMark = "\x1e0123456789abcdef"

// recordedJobs answers what a Slurm 22.05.8 printed, by id.
func recordedJobs(t testing.TB) map[int64]Job {
	t.Helper()
	text, err := os.ReadFile("testdata/jobs.txt")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := parseJobs(text, recordedMark)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[int64]Job{}
	for _, j := range jobs {
		byID[j.ID] = j
	}
	if len(byID) != strings.Count(string(text), recordedMark) {
		t.Fatalf("%d jobs of %d rows", len(byID), strings.Count(string(text), recordedMark))
	}
	return byID
}

func TestRecordedJobs(t *testing.T) {
	for id, j := range recordedJobs(t) {
		t.Logf("%d: %+v", id, j)
	}
}

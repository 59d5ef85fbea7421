package trace_test

import (
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

func TestTheHistoryOfALiveClusterIsATrace(t *testing.T) {
	spec := cluster.JobSpec{Name: "sim", Command: []string{"vcs"}, Queue: "day", CPUs: 2, MemoryMB: 10, Tokens: map[string]int64{"vcs": 1}}
	limited, array := spec, spec
	limited.TimeLimit = cluster.Minute
	array.TimeLimit, array.Array, array.NotBefore = cluster.Minute, 5, 40_000
	jobs := []cluster.Job{
		{ID: 1, JobSpec: spec, User: "ann", State: cluster.JobDone, Submitted: 10_000, Started: 15_000, Ended: 75_000},
		{ID: 2, JobSpec: limited, User: "ann", State: cluster.JobTimeout, Submitted: 11_000, Started: 15_000, Ended: 75_500},
		{ID: 3, JobSpec: limited, User: "ben", State: cluster.JobRunning, Submitted: 9_000, Started: 80_000},
		{ID: 4, JobSpec: limited, User: "ben", State: cluster.JobWaiting, Submitted: 20_000},
		{ID: 5, JobSpec: spec, User: "ben", State: cluster.JobWaiting, Submitted: 30_000},
		{ID: 6, JobSpec: spec, User: "ben", State: cluster.JobFailed, Submitted: 30_000, Ended: 31_000},
		{ID: 7, JobSpec: array, User: "ann", State: cluster.JobWaiting, Submitted: 30_000, Begun: 3},
		{ID: 7, JobSpec: array, User: "ann", State: cluster.JobDone, Element: 3, Submitted: 30_000, Started: 40_000, Ended: 40_000},
	}
	tr := trace.OfJobs("a cluster", jobs, 100_000)
	const what, after = `"queue":"day","cpus":2,"memory_mb":10,"tokens":{"vcs":1},"name":"sim","command":["vcs"]}` + "\n", `,"user":"ann",`
	checkJobs(t, tr, `{"id":3,"submit_ms":9000,"run_ms":20000,"limit_ms":60000,"waited_ms":71000,"user":"ben",`+what+
		`{"id":1,"submit_ms":10000,"run_ms":60000,"waited_ms":5000`+after+what+
		`{"id":2,"submit_ms":11000,"run_ms":60500,"limit_ms":60000,"waited_ms":4000`+after+what+
		`{"id":4,"submit_ms":20000,"run_ms":60000,"limit_ms":60000,"user":"ben",`+what+
		`{"id":7,"label":"7[4]","submit_ms":40000,"run_ms":60000,"limit_ms":60000`+after+what+
		`{"id":7,"label":"7[5]","submit_ms":40000,"run_ms":60000,"limit_ms":60000`+after+what+
		`{"id":7,"label":"7[3]","submit_ms":40000,"run_ms":1,"limit_ms":60000,"waited_ms":0`+after+what)
	checkRepairs(t, tr, "running 1, waiting 3, no-run-time 1, never-started 1")
	checkValid(t, tr)
	if tr.Jobs[1].Shape != tr.Jobs[2].Shape || tr.Jobs[1].Shape == tr.Jobs[0].Shape {
		t.Error("jobs that are alike share no shape")
	}
}

func TestASummaryCountsWhatIsInATrace(t *testing.T) {
	tr := read(t, `{"id":1,"submit_ms":1000,"run_ms":3600000,"limit_ms":5000,"tokens_for_ms":1800000,"user":"ann","group":"chip","queue":"day","nodes":2,"cpus":4,"memory_mb":10,"tokens":{"vcs":3}}
{"id":2,"submit_ms":1500,"run_ms":7200000,"user":"ben","group":"chip","queue":"day","cpus":1,"tokens":{"vcs":1},"alternatives":[{"a":1},{"b":1}]}
{"id":3,"submit_ms":5000,"run_ms":7200000,"cpus":1,"memory_mb":20}
`, trace.Options{})
	const want = `{"source":"log (jsonl)","jobs":3,"shapes":3,"first":"1970-01-01T00:00:01.000Z","last":"1970-01-01T00:00:05.000Z","span":"4s",` +
		`"processors":8,"hosts":2,"memory_mb":20,"processor_hours":12,"unlimited":2,"users":2,"groups":1,` +
		`"queues":[{"name":"day","jobs":2},{"name":"","jobs":1}],` +
		`"tokens":[{"resource":"a","jobs":1,"most":1,"unit_hours":2},{"resource":"vcs","jobs":2,"most":3,"unit_hours":3}],"repairs":[]}`
	if got := jsonOf(t, tr.Summary()); got != want {
		t.Errorf("the summary is\n%s\nwant\n%s", got, want)
	}
}

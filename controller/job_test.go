package controller_test

import (
	"errors"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

func TestAJobThatCanNeverRunIsRefusedNamingTheLimit(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(2, 10)
	config.Resources[0].KeepBack = 1
	w := newWorld(t, config)
	w.join(8)
	for name, test := range map[string]struct {
		spec cluster.JobSpec
		want string
	}{
		"too many tokens":  {vcsJob(12), "tokens.vcs: 12 units can never be had: the limit is 11 (owned 2 + max borrowed 10 - kept back 1)"},
		"an unknown token": {cluster.JobSpec{Command: []string{"true"}, CPUs: 1, Tokens: map[string]int64{"zebu": 1}}, `tokens.zebu: there is no shared resource "zebu"`},
		"too many cpus":    {cluster.JobSpec{Command: []string{"true"}, CPUs: 9}, "cpus: no host can ever run 9 cpus with 0 MB; the largest have 8 cpus"},
		"no cpus":          {cluster.JobSpec{Command: []string{"true"}}, "cpus: 0 cpus cannot run a job"},
		"no command":       {cluster.JobSpec{Command: []string{}, CPUs: 1}, "command: there is no command"},
	} {
		_, err := w.user.Submit(t.Context(), test.spec)
		w.wantStatus(422, err)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the answer is %v\nwant %s", name, err, test.want)
		}
	}
	if n := w.Status().Jobs.Waiting; n != 0 {
		t.Errorf("%d refused jobs are queued", n)
	}
	if w.submit(11) != 1 {
		t.Error("the first job that can run is not job 1")
	}
	if job := w.job(1); job.User != "ann" || job.State != cluster.JobWaiting || job.Submitted != w.Clock.Now() {
		t.Errorf("the queued job is %+v", job)
	}
}

func TestTheEndOfAJobFreesItsTokensOnce(t *testing.T) {
	t.Parallel()
	w, job := borrowed(t)
	w.Clock.Advance(cluster.Second)
	end := api.JobEnd{State: cluster.JobFailed, ExitCode: 3, Why: "ended with exit status 3"}
	w.must(w.host.EndJob(t.Context(), hostName, job, end))
	first := w.job(job)
	if first.State != cluster.JobFailed || first.ExitCode != 3 || first.Ended != w.Clock.Now() || w.Resource("vcs").InUse != 0 {
		t.Errorf("the ended job is %+v, in use are %d", first, w.Resource("vcs").InUse)
	}
	before := w.Status().Revision
	w.Clock.Advance(cluster.Second)
	w.end(job)
	if again := w.job(job); again.State != first.State || again.Ended != first.Ended || w.Status().Revision != before {
		t.Errorf("the repeated report made it %+v", again)
	}
	if n := w.Status().Jobs; n.Failed != 1 || n.Running != 0 || n.Done != 0 {
		t.Errorf("jobs are counted as %+v", n)
	}
}

func TestAJobEndsOnlyWhereItRuns(t *testing.T) {
	t.Parallel()
	w, job := borrowed(t)
	waiting := w.submit(9)
	other := w.Client(api.HostRole, "h2")
	w.must(other.Join(t.Context(), "h2", api.JoinHost{CPUs: 1}))
	end := api.JobEnd{State: cluster.JobDone, Why: "ended by itself"}
	w.wantStatus(404, other.EndJob(t.Context(), "h2", job, end))
	w.wantStatus(403, other.EndJob(t.Context(), hostName, job, end))
	w.wantStatus(404, w.host.EndJob(t.Context(), hostName, waiting, end))
	w.wantStatus(404, w.host.EndJob(t.Context(), hostName, 99, end))
	w.wantStatus(422, w.host.EndJob(t.Context(), hostName, job, api.JobEnd{State: cluster.JobWaiting}))
	if state := w.job(job).State; state != cluster.JobRunning {
		t.Errorf("the job is %s, want it running", state)
	}
}

func TestJobsAreListedByState(t *testing.T) {
	t.Parallel()
	w, running := borrowed(t)
	waiting := w.submit(9)
	for state, want := range map[cluster.JobState][]int64{"": {running, waiting}, cluster.JobRunning: {running}, cluster.JobWaiting: {waiting}, cluster.JobDone: nil} {
		jobs, err := w.user.Jobs(t.Context(), state)
		w.must(err)
		if len(jobs) != len(want) {
			t.Errorf("%d jobs are %q, want %v", len(jobs), state, want)
			continue
		}
		for i, j := range jobs {
			if j.ID != want[i] {
				t.Errorf("jobs in state %q are %+v, want %v", state, jobs, want)
			}
		}
	}
}

func TestAnErrorOfAClientSaysWhetherItIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	_, err := w.user.Submit(t.Context(), vcsJob(99))
	if !api.Permanent(err) {
		t.Errorf("what can never run is not final: %v", err)
	}
	w.Stop()
	_, err = w.user.Submit(t.Context(), vcsJob(1))
	var answer *api.Error
	if err == nil || errors.As(err, &answer) || api.Permanent(err) {
		t.Errorf("a controller that is away is final: %v", err)
	}
}

func TestWhatTheBackendCannotDoIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	done := w.submit(0)
	for name, test := range map[string]struct {
		change func(*cluster.JobSpec)
		want   string
	}{
		"several hosts":      {func(s *cluster.JobSpec) { s.Nodes = 2 }, "nodes: the builtin backend runs a job on one host, not on 2; submit one job for each host"},
		"an array":           {func(s *cluster.JobSpec) { s.Array = 3 }, "array: the builtin backend takes no arrays; submit one job for each element"},
		"after no job":       {func(s *cluster.JobSpec) { s.After = []int64{done, 99} }, "after[1]: there is no job 99; name one that `xce-elastic jobs` lists"},
		"no constraint":      {func(s *cluster.JobSpec) { s.Constraint = "a &" }, `constraint: constraint "a &" ends where a feature, '!' or '(' should follow`},
		"a feature of none":  {func(s *cluster.JobSpec) { s.Constraint = "avx512" }, `constraint: no host meets "avx512"; no host has features`},
		"gpus of none":       {func(s *cluster.JobSpec) { s.Countables = map[string]int64{"gpus": 1} }, "countables.gpus: no host can ever give 1 gpus"},
		"too much of either": {func(s *cluster.JobSpec) { s.Alternatives = []map[string]int64{{"vcs": 1}, {"vcs": 13}} }, "alternatives[1].vcs: 13 units can never be had: the limit is 12"},
	} {
		spec := vcsJob(0)
		test.change(&spec)
		_, err := w.user.Submit(t.Context(), spec)
		w.wantStatus(422, err)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the answer is %v, want %s", name, err, test.want)
		}
	}
	if n := w.Status().Jobs.Waiting; n != 1 {
		t.Errorf("%d jobs wait, want the good one", n)
	}
}

func TestAJobTakesTheFirstOfItsAlternativesThatIsFree(t *testing.T) {
	t.Parallel()
	config := controllertest.Vcs(2, 10)
	config.Resources = append(config.Resources, cluster.SharedResource{Name: "zebu", Owned: 2})
	w := newWorld(t, config)
	w.join(8)
	spec := vcsJob(1)
	spec.Alternatives = []map[string]int64{{"zebu": 2}, {"vcs": 1}}
	first, second := w.put(spec), w.put(vcsJob(0))
	w.Session()
	if job := w.job(first); job.State != cluster.JobRunning || job.Alternative != 1 || w.Resource("vcs").InUse != 1 || w.Resource("zebu").InUse != 2 {
		t.Errorf("the first job is %+v; in use are %d vcs and %d zebu", job, w.Resource("vcs").InUse, w.Resource("zebu").InUse)
	}
	w.end(second)
	spec.Tokens = nil
	third := w.put(spec)
	w.Session()
	if job := w.job(third); job.State != cluster.JobRunning || job.Alternative != 2 || w.Resource("vcs").InUse != 2 {
		t.Errorf("the third job is %+v; in use are %d vcs", job, w.Resource("vcs").InUse)
	}
	w.end(first)
	if w.Resource("vcs").InUse != 1 || w.Resource("zebu").InUse != 0 {
		t.Errorf("after the first has ended, in use are %d vcs and %d zebu", w.Resource("vcs").InUse, w.Resource("zebu").InUse)
	}
}

func TestAJobStartsOnlyWhenThoseBeforeItHaveEndedAndItsTimeHasCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	first := w.submit(1)
	spec := vcsJob(0)
	spec.After, spec.NotBefore = []int64{first}, w.Clock.Now().Add(cluster.Minute)
	second := w.put(spec)
	w.Session()
	if job := w.job(second); job.State != cluster.JobWaiting || job.Code != "dependency" || job.Change == "" {
		t.Errorf("before the first has ended the second is %+v", job)
	}
	w.end(first)
	w.Session()
	if job := w.job(second); job.State != cluster.JobWaiting || job.Code != "not-before" {
		t.Errorf("before its time the second is %+v", job)
	}
	w.later(cluster.Minute)
	w.Session()
	if job := w.job(second); job.State != cluster.JobRunning || job.Code+job.Change+job.Why != "" {
		t.Errorf("then the second is %+v", job)
	}
}

func TestJobsGetHostsThatHaveWhatTheyAskFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.join(8)
	other := w.Client(api.HostRole, "h2")
	w.must(other.Join(t.Context(), "h2", api.JoinHost{CPUs: 4, Countables: map[string]int64{"gpus": 2}, Features: []string{"avx512"}, Attributes: map[string]string{"site": "z1"}}))
	ask := func(change func(*cluster.JobSpec)) int64 {
		spec := vcsJob(0)
		change(&spec)
		return w.put(spec)
	}
	gpus := ask(func(s *cluster.JobSpec) { s.Countables = map[string]int64{"gpus": 2} })
	site := ask(func(s *cluster.JobSpec) { s.Constraint = "avx512 & site=z1" })
	alone := ask(func(s *cluster.JobSpec) { s.Exclusive, s.Constraint = true, "!avx512" })
	more := ask(func(s *cluster.JobSpec) { s.Countables = map[string]int64{"gpus": 1} })
	w.Session()
	for id, want := range map[int64]string{gpus: "h2", site: "h2", alone: hostName, more: ""} {
		if job := w.job(id); job.Host != want {
			t.Errorf("job %d is on %q, want %q: %s", id, job.Host, want, job.Why)
		}
	}
	for _, h := range w.Status().Hosts {
		if h.Name == "h2" && (h.FreeCPUs != 2 || h.FreeCountables["gpus"] != 0 || h.Countables["gpus"] != 2) {
			t.Errorf("h2 is %+v", h)
		}
	}
}

func TestAHostThatSaysNonsenseOfItselfIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	for want, join := range map[string]api.JoinHost{
		"countables.gpus: -1 is negative":                                 {CPUs: 1, Countables: map[string]int64{"gpus": -1}},
		`countables.cpus: a countable cannot be called "cpus"`:            {CPUs: 1, Countables: map[string]int64{"cpus": 1}},
		`features[0]: feature "a|b" cannot be asked for in a constraint`:  {CPUs: 1, Features: []string{"a|b"}},
		`attributes.site: value "z 1" cannot be asked for`:                {CPUs: 1, Attributes: map[string]string{"site": "z 1"}},
		"cpus: 9223372036854775807 is too large to count with; write at ": {CPUs: 1<<63 - 1},
	} {
		err := w.host.Join(t.Context(), hostName, join)
		w.wantStatus(422, err)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the answer is %v, want %s", err, want)
		}
	}
	if n := len(w.Status().Hosts); n != 0 {
		t.Errorf("%d refused hosts have joined", n)
	}
}

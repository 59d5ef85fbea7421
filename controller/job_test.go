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

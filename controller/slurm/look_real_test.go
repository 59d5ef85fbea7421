package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

// A queue is read from a real Slurm through a copy of its configuration, over a restart of slurmctld and while
// it is away.
func TestRealLook(t *testing.T) {
	r := startSlurm(t, oneNode)
	r.submit("-J", "runs", "-L", "foo:2")
	r.submit("-J", "names \x1e\x1f|\nitself 1\x1f1\x1fN/A", "-H")
	r.submit("-J", "array", "-H", "--array=1-1000%10", "-L", "foo:1,bar", "-C", "static&static")
	r.submit("-J", "sparse", "-H", "--array=1,3,5,8,10,13,15,18,20,23,25,28,30,33,35,38,40,43,45,48,50,53,55,58,60,63,65,68")
	r.submit("-J", "het", "-H", "-n1", "-L", "foo:1", ":", "-n2", "-L", "foo:3")
	r.submit("-J", "waits", "-n4", "--mem-per-cpu=300", "-L", "foo:9", "-t", "1-02:00:00")
	copied := filepath.Join(t.TempDir(), "slurm.conf")
	if err := WriteClientConf(r.commands.Conf, copied, 0); err != nil {
		t.Fatal(err)
	}
	b := r.backend(func(o *Options) { o.Commands.Conf, o.JobGrace = copied, cluster.Millisecond })
	var not *backend.NotYet
	if _, err := b.Look(context.Background()); !errors.As(err, &not) {
		t.Fatalf("the first reading is acted upon: error %v", err)
	}
	jobs := map[string]cluster.Job{}
	look := func() bool {
		view, err := b.Look(context.Background())
		if err != nil {
			return false
		}
		clear(jobs)
		for _, j := range view.Jobs {
			jobs[j.Name] = j
		}
		if len(jobs) != len(view.Jobs) || len(view.Hosts) != 1 || view.Resources["vcs"].Ceiling != 10 || view.Resources["sim"].Ceiling != 4 {
			t.Fatalf("%+v", view)
		}
		return jobs["runs"].State == cluster.JobRunning && jobs["waits"].Told.Reason == "Licenses"
	}
	r.until("one job runs and one waits for tokens", look)
	check := func() {
		t.Helper()
		if j := jobs["runs"]; j.Host != "n1" || j.Tokens["vcs"] != 2 || j.Started == 0 {
			t.Errorf("%+v", j)
		}
		if j := jobs["waits"]; j.Told.Barred != "" || j.CPUs != 4 || j.MemoryMB != 1200 || j.Tokens["vcs"] != 9 || j.TimeLimit != 26*cluster.Hour || j.Constraint != "partition:main" {
			t.Errorf("%+v %+v", j, j.Told)
		}
		if j := jobs["array"]; j.Array != 10 || j.Tokens["vcs"] != 1 || j.Tokens["sim"] != 1 || j.Told.Barred != "its user holds it" {
			t.Errorf("%+v %+v", j, j.Told)
		}
		if j := jobs["sparse"]; j.Array != 28 {
			t.Errorf("%d elements", j.Array)
		}
		if j := jobs["het"]; j.Nodes != 2 || j.CPUs != 2 || j.Tokens["vcs"] != 4 {
			t.Errorf("%+v", j)
		}
		if len(jobs) != 6 {
			t.Errorf("%d jobs", len(jobs))
		}
	}
	check()

	r.StopController()
	var unknown *backend.Unknown
	if _, err := b.Look(context.Background()); !errors.As(err, &unknown) || strings.ContainsAny(err.Error(), "\x1e\x1f") {
		t.Errorf("slurmctld is away: error %v", err)
	}
	time.Sleep(1100 * time.Millisecond) // starts are told apart by whole seconds
	must(t, r.StartController(t.Context()))
	if _, err := b.Look(context.Background()); !errors.As(err, &not) || !strings.Contains(err.Error(), "has started") {
		t.Errorf("the first reading after a restart: error %v", err)
	}
	r.until("it is as it was", look)
	check()
	if _, err := os.Stat(copied); err != nil {
		t.Error(err)
	}
}

package agent_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/agent"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

const hostName = "h1"

// farm is a running controller and the agent of one host.
type farm struct {
	*controllertest.Controller
	t      *testing.T
	folder string
	stop   func() // stops the agent
}

// newFarm runs a controller and an agent; state is a file or store.Memory.
func newFarm(t *testing.T, state string) *farm {
	t.Helper()
	f := &farm{Controller: controllertest.Open(t, state, controllertest.Vcs(2, 10)), t: t, folder: t.TempDir()}
	f.Run()
	f.startAgent()
	t.Cleanup(func() { f.stop() })
	return f
}

// startAgent starts an agent on the farm's folder, as a restart of it does.
func (f *farm) startAgent() {
	f.t.Helper()
	a, err := agent.New(agent.Config{Host: hostName, Capacity: cluster.Capacity{CPUs: 16, MemoryMB: 1000}, Folder: f.folder}, f.Client(api.HostRole, hostName), slog.New(slog.DiscardHandler))
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.Run(ctx); err != nil {
			f.t.Error(err)
		}
	}()
	f.stop = func() {
		cancel()
		<-done
	}
}

func (f *farm) submit(spec cluster.JobSpec) int64 {
	f.t.Helper()
	spec.CPUs = 1
	job, err := f.Service.Submit(f.t.Context(), "submitter/ann", spec)
	if err != nil {
		f.t.Fatal(err)
	}
	return job.ID
}

func (f *farm) shell(script string, arguments ...string) int64 {
	f.t.Helper()
	return f.submit(cluster.JobSpec{Command: append([]string{"sh", "-c", script, "sh"}, arguments...)})
}

// job waits until a job satisfies `until`.
func (f *farm) job(id int64, until func(cluster.Job) bool) cluster.Job {
	f.t.Helper()
	var last cluster.Job
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		jobs, err := f.Service.Jobs(f.t.Context(), "")
		if err != nil {
			f.t.Fatal(err)
		}
		for _, j := range jobs {
			if last = j; j.ID == id && until(j) {
				return j
			}
		}
	}
	f.t.Fatalf("job %d is still %+v", id, last)
	return last
}

func (f *farm) ended(id int64) cluster.Job {
	f.t.Helper()
	return f.job(id, func(j cluster.Job) bool { return j.State.Ended() })
}

// jobFolder answers the folder of the job that was placed last with this id.
func (f *farm) jobFolder(id string) string {
	f.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		all, err := filepath.Glob(filepath.Join(f.folder, id+"-*"))
		if err != nil {
			f.t.Fatal(err)
		}
		if len(all) > 0 {
			return all[len(all)-1]
		}
	}
	f.t.Fatalf("job %s has no folder", id)
	return ""
}

// content waits for a file with a whole line in it.
func content(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if data, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(data), "\n") {
			return string(data)
		}
	}
	t.Fatalf("%s was not written", path)
	return ""
}

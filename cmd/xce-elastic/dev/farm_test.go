//go:build e2e

package dev

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/workflows"
)

// programs is where the built programs are.
func programs(tb testing.TB) string {
	tb.Helper()
	folder := os.Getenv("XCE_BIN")
	if folder == "" {
		folder, _ = filepath.Abs("../../../bin")
	}
	for _, name := range []string{"xce-elastic", "devserver", "pool", "local", "slurmhost"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			tb.Fatalf("%v: run `make build` first", err)
		}
	}
	return folder
}

//go:embed testdata/brisk.yaml
var briskCluster string

// brisk is a cluster whose loans live for a second or two.
var brisk = example{Cluster: briskCluster, Units: 12, Hold: 1}

// startFarm starts a cluster in a temporary folder, and stops it with the test.
func startFarm(tb testing.TB, e example) *farm {
	tb.Helper()
	f := &farm{example: e, Options: Options{
		Folder: tb.TempDir(), Program: filepath.Join(programs(tb), "xce-elastic"), Out: io.Discard,
		Temporal: client.Options{Namespace: "xce"},
	}}
	tb.Cleanup(func() {
		if tb.Failed() {
			f.printState(tb)
		}
		if err := f.stop(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			f.printLogs(tb)
		}
	})
	if err := f.start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return f
}

// printState prints how controller and workflows stand, for a test that failed.
func (f *farm) printState(tb testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	st, err := f.controller.Status(ctx)
	tb.Logf("status: %+v %v", st, err)
	loans, err := f.controller.Loans(ctx, false)
	tb.Logf("open loans: %+v %v", loans, err)
	hosts, err := f.controller.ElasticHosts(ctx, false)
	tb.Logf("open hosts: %+v %v\n%s", hosts, err, f.showHosts())
	jobs, err := f.controller.Jobs(ctx, cluster.JobWaiting)
	tb.Logf("waiting jobs: %+v %v", jobs, err)
	c := f.connect(tb)
	provider, err := starter.New(c).Provider(ctx, poolName)
	tb.Logf("provider's story: %+v %v", provider, err)
	stories := append([]string{workflows.ProviderID(poolName)}, ids(loans)...)
	for _, h := range hosts {
		stories = append(stories, h.ID)
	}
	for _, id := range stories[:min(len(stories), 12)] {
		d, err := c.DescribeWorkflow(ctx, id, "")
		if err != nil {
			tb.Log(id, err)
			continue
		}
		tb.Logf("%s: %v\n%s", id, d.RawResponse, lastEvents(ctx, c, id))
	}
}

// lastEvents answers the newest events of a workflow, a line each.
func lastEvents(ctx context.Context, c client.Client, id string) string {
	var lines []string
	for history := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
		event, err := history.Next()
		if err != nil {
			return err.Error()
		}
		lines = append(lines, fmt.Sprintf("  %s %s", event.GetEventTime().AsTime().Format("15:04:05.000"), event.GetEventType()))
	}
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

func ids(loans []cluster.Loan) (ids []string) {
	for _, l := range loans {
		ids = append(ids, l.ID)
	}
	return ids
}

func (f *farm) printLogs(tb testing.TB) {
	logs, _ := filepath.Glob(f.path("log/*.log"))
	for _, log := range logs {
		data, _ := os.ReadFile(log)
		tb.Logf("%s:\n%s", filepath.Base(log), data[max(0, len(data)-4000):])
	}
}

// connect answers a client of the farm's Temporal server.
func (f *farm) connect(tb testing.TB) client.Client { return f.connectTo(tb, "xce") }

func (f *farm) connectTo(tb testing.TB, namespace string) client.Client {
	tb.Helper()
	c, err := client.Dial(client.Options{HostPort: f.temporal, Namespace: namespace, Logger: silent{}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// silent is a log of the SDK that says nothing.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

// part answers a running part by name.
func (f *farm) part(name string) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.parts {
		if p.name == name {
			return p
		}
	}
	return nil
}

// starters start the parts that are killed, again.
func (f *farm) starters() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"temporal": f.startTemporal, "controller": f.startController, "worker": f.reviveWorker,
	}
}

// reviveWorker starts a provisioner without waiting until it is ready.
func (f *farm) reviveWorker(context.Context) error {
	_, err := f.run("worker", f.Program, []string{"worker", "--config", configName}, f.as("provisioner")...)
	return err
}

// kill ends a part with kill -9, and waits until it is gone.
func (f *farm) kill(name string) {
	p := f.part(name)
	_ = p.cmd.Process.Kill()
	<-p.done
}

// pause sleeps for a random time up to `most`, or until ctx ends.
func pause(ctx context.Context, r *rand.Rand, least, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(least + time.Duration(r.Int64N(int64(most-least)))):
	}
}

// eventually repeats a question until it is answered without error.
func eventually(tb testing.TB, within time.Duration, ask func() error) {
	tb.Helper()
	var err error
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err = ask(); err == nil {
			return
		}
	}
	tb.Fatal(fmt.Errorf("after %s: %w", within, err))
}

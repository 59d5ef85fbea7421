//go:build record

package workflows_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.uber.org/fx"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/worker"
	"xce.internal/elastic/workflows"
)

// wanted are the histories to record, by the name of their file.
var wanted = map[string]want{
	"loan":          {20, []string{"type: loan", "ledger.confirm", "EXECUTION_COMPLETED", "!ACCEPTED", "!ledger.recall", "!provider.status", "!provider.holding"}},
	"loan-operator": {20, []string{"units are in use", "returned by admin/eve", "EXECUTION_COMPLETED"}},
	"loan-pending":  {20, []string{"provider.status", "ledger.confirm", "EXECUTION_COMPLETED", "!provider.holding"}},
	"loan-unknown":  {20, []string{"spice", "provider.holding", "EXECUTION_COMPLETED"}},
	"loan-recalled": {20, []string{"ledger.recall", "EXECUTION_COMPLETED"}},
	"loan-refused":  {20, []string{"ledger.refuse", "EXECUTION_COMPLETED", "!provider.holding"}},
	"provider":      {200, []string{"type: provider", "starter.loan", "catalog-changed"}},
}

// want describes a history: how many events it has at least, and words that are
// in it, or not, if they begin with "!".
type want struct {
	events int
	words  []string
}

func (w want) fits(events int, text string) bool {
	return events >= w.events && !slices.ContainsFunc(w.words, func(word string) bool {
		bare, not := strings.CutPrefix(word, "!")
		return strings.Contains(text, bare) == not
	})
}

// TestRecord runs a small cluster at a real server, with real scripts, until it
// has the histories that are wanted, and writes them.
func TestRecord(t *testing.T) {
	r := newRecorder(t)
	r.startTemporal()
	r.startController(controller.Config{
		Providers: []string{"pool-a", "pool-b"}, Resources: []cluster.SharedResource{elastic("vcs", "pool-a"), elastic("spice", "pool-b")},
	})
	r.must(r.service.Join(t.Context(), node, api.JoinHost{CPUs: 1000, MemoryMB: 1 << 20}))
	r.startProvisioner(
		r.pool("pool-a", "vcs", nil),
		r.pool("pool-b", "spice", map[string]string{"XCE_POOL_PENDING_MS": "1500", "XCE_POOL_FAIL": "5"}),
	)
	go r.work()
	r.record(wanted)
}

// record waits for the histories that are wanted, and writes them.
func (r *recorder) record(wanted map[string]want) {
	found := map[string]*history.History{}
	for deadline := time.Now().Add(4 * time.Minute); len(found) < len(wanted) && time.Now().Before(deadline); {
		time.Sleep(2 * time.Second)
		r.search(wanted, found)
	}
	for name := range wanted {
		h := found[name]
		if h == nil {
			r.t.Errorf("no history of %s came to be", name)
			continue
		}
		r.write(name, h)
	}
}

var node = pki.Peer{Role: string(api.HostRole), Name: "node1"}

type recorder struct {
	t           *testing.T
	folder, bin string
	options     client.Options
	temporal    client.Client
	service     *controller.Service
	controller  *api.Client
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{t: t, folder: t.TempDir(), bin: os.Getenv("XCE_BIN")}
	if r.bin == "" {
		r.bin = filepath.Join("..", "bin")
	}
	var err error
	if r.bin, err = filepath.Abs(r.bin); err != nil {
		t.Fatal(err)
	}
	return r
}

const namespace = "record"

func (r *recorder) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *recorder) startTemporal() {
	ready := filepath.Join(r.folder, "temporal.json")
	args := []string{"--port", "0", "--ui-port", "-1", "--namespace", namespace, "--ready-file", ready}
	for _, a := range workflows.SearchAttributes {
		args = append(args, "--search-attribute", a)
	}
	server := exec.Command(filepath.Join(r.bin, "devserver"), args...)
	server.Stderr = os.Stderr
	r.must(server.Start())
	r.t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	var address struct{ Address string }
	r.await(time.Minute, func() error {
		data, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, &address)
	})
	r.options = client.Options{
		HostPort: address.Address, Namespace: namespace, Identity: "recorder",
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}
	var err error
	r.temporal, err = client.Dial(r.options)
	r.must(err)
	r.t.Cleanup(r.temporal.Close)
}

func (r *recorder) await(within time.Duration, ask func() error) {
	r.t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func elastic(name, lender string) cluster.SharedResource {
	return cluster.SharedResource{Name: name, Owned: 2, Elastic: &cluster.Elastic{Lenders: []string{lender}, MaxBorrowed: 6, IdleTime: 3 * cluster.Second}}
}

func (r *recorder) startController(config controller.Config) {
	ctx, stop := context.WithCancel(context.Background())
	folder := filepath.Join(r.folder, "pki")
	ca, err := pki.OpenAuthority(folder)
	r.must(err)
	r.must(ca.Issue("controller", pki.Peer{Role: "controller", Name: "east"}, "127.0.0.1"))
	r.must(ca.Issue("provisioner", pki.Peer{Role: string(api.Provisioner), Name: "p1"}))
	st, err := store.Open(ctx, store.Memory)
	r.must(err)
	config.Cluster, config.SessionInterval = "east", cluster.Second
	r.service, err = controller.NewService(ctx, config, st, func() cluster.Time { return cluster.TimeOf(time.Now()) }, slog.New(slog.DiscardHandler))
	r.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	r.must(err)
	serverTLS, err := pki.In(folder, "controller").Server()
	r.must(err)
	clientTLS, err := pki.In(folder, "provisioner").Client()
	r.must(err)
	r.controller = api.NewClient("https://"+listener.Addr().String(), clientTLS)
	served := make(chan error, 2)
	go func() {
		served <- controller.NewServer(r.service, slog.New(slog.DiscardHandler)).Serve(ctx, listener, serverTLS)
	}()
	go func() { r.service.RunSessions(ctx); served <- nil }()
	r.t.Cleanup(func() {
		stop()
		if err := errors.Join(<-served, <-served, st.Close()); err != nil {
			r.t.Error(err)
		}
	})
}

// pool makes a pool's file and answers its script.
func (r *recorder) pool(name, resource string, environment map[string]string) worker.Provider {
	script := filepath.Join(r.bin, "pool")
	file := filepath.Join(r.folder, name+".json")
	out, err := exec.Command(script, "init", "--file", file, "--resource", resource+"=5", "--hold", resource+"=4").CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	settings := map[string]string{"XCE_POOL_FILE": file, "XCE_POOL_CLUSTER": "east"}
	for k, v := range environment {
		settings[k] = v
	}
	runner, err := providers.NewRunner(providers.Spec{Name: name, Script: script, Environment: settings, TimeLimit: 10 * time.Second}, nil)
	r.must(err)
	return worker.Provider{Name: name, Script: runner, SurveyEvery: 2 * cluster.Second}
}

func (r *recorder) startProvisioner(providers ...worker.Provider) {
	app := fx.New(fx.NopLogger, worker.Module(worker.Options{
		Temporal: r.options, Controller: r.controller, Log: slog.New(slog.DiscardHandler),
		Providers: providers,
	}))
	r.must(app.Err())
	r.must(app.Start(context.Background()))
	r.t.Cleanup(func() { r.must(app.Stop(context.Background())) })
}

// work is what goes on in the cluster, in waves: jobs come and go, units are
// recalled, an operator wants some back. Now and then the pool is empty.
func (r *recorder) work() {
	ctx := r.t.Context()
	starts := starter.New(r.temporal)
	for n := 1; ctx.Err() == nil; n++ {
		r.capacity(map[bool]int{false: 5, true: 0}[n%5 == 0])
		for resource, units := range map[string]int64{"vcs": int64(3 + n%3), "spice": int64(3 + n%4)} {
			_, _ = r.service.Submit(ctx, "submitter/ada", cluster.JobSpec{Command: []string{"work"}, CPUs: 1, Tokens: map[string]int64{resource: units}})
		}
		for i := range 36 {
			time.Sleep(500 * time.Millisecond)
			r.endJobs(ctx, 7*time.Second)
			r.wish(ctx, starts, n*100+i)
		}
	}
}

// capacity sets how many vcs the pool has.
func (r *recorder) capacity(units int) {
	_ = exec.Command(filepath.Join(r.bin, "pool"), "set", "--file", filepath.Join(r.folder, "pool-a.json"), "--capacity", fmt.Sprintf("vcs=%d", units)).Run()
}

// endJobs ends the jobs that ran long enough; asking for them is the host's sign of life.
func (r *recorder) endJobs(ctx context.Context, runs time.Duration) {
	assigned, _ := r.service.Assignments(ctx, ctx, node, -1)
	for _, j := range assigned.Jobs {
		if time.Since(j.Started.Std()) > runs {
			_ = r.service.EndJob(ctx, node, j.ID, api.JobEnd{State: cluster.JobDone, Why: "done"})
		}
	}
}

// wish wants one unit of every second loan back, and recalls one of every third.
func (r *recorder) wish(ctx context.Context, starts *starter.Client, n int) {
	loans, _ := r.service.Loans(ctx, false)
	for _, l := range loans {
		switch {
		case l.State != cluster.LoanBorrowed || l.Resource != "vcs":
		case strings.HasSuffix(l.ID, "2") || strings.HasSuffix(l.ID, "4"):
			_, _ = starts.Return(ctx, l.ID, fmt.Sprintf("wish-%d", n), workflows.ReturnUnits{Units: 1, By: "admin/eve"})
		case strings.HasSuffix(l.ID, "3") && l.Recalled == 0:
			_ = exec.Command(filepath.Join(r.bin, "pool"), "recall", "--file", filepath.Join(r.folder, "pool-a.json"),
				"--cluster", "east", "--request", l.ID, "--units", "1").Run()
		}
	}
}

// readable writes payloads as the JSON that is in them.
var readable = temporalproto.CustomJSONMarshalOptions{Metadata: map[string]any{common.EnablePayloadShorthandMetadataKey: true}}

// search looks for the histories that are wanted and not found yet.
func (r *recorder) search(wanted map[string]want, found map[string]*history.History) {
	list, err := r.temporal.ListWorkflow(r.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace})
	r.must(err)
	for _, e := range list.Executions {
		h := r.history(e.Execution.WorkflowId, e.Execution.RunId)
		if h == nil {
			continue
		}
		text, err := readable.Marshal(h)
		r.must(err)
		for name, want := range wanted {
			if found[name] == nil && want.fits(len(h.Events), "type: "+e.Type.Name+" "+string(text)) {
				found[name] = h
			}
		}
	}
}

// history downloads a history up to its last completed workflow task and the
// commands of that, where a replay can end.
func (r *recorder) history(id, run string) *history.History {
	h := &history.History{}
	events := r.temporal.GetWorkflowHistory(r.t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		r.must(err)
		if queue := e.GetWorkflowTaskScheduledEventAttributes().GetTaskQueue(); queue.GetKind() == enums.TASK_QUEUE_KIND_STICKY {
			queue.Name = "sticky" // it has this machine's name in it
		}
		h.Events = append(h.Events, e)
	}
	last := -1
	for i, e := range h.Events {
		if e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	end := last + 1
	for end < len(h.Events) && ofCommand(h.Events[end], h.Events[last].EventId) {
		end++
	}
	h.Events = h.Events[:end]
	return h
}

// ofCommand tells whether an event is what a command of a workflow task made.
func ofCommand(e *history.HistoryEvent, task int64) bool {
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(e)
	return err == nil && bytes.Contains(text, fmt.Appendf(nil, `"workflowTaskCompletedEventId":"%d"`, task))
}

func (r *recorder) write(name string, h *history.History) {
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
	r.must(err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(text)
	r.must(errors.Join(err, w.Close()))
	r.must(os.WriteFile(filepath.Join("testdata", "histories", name+".json.gz"), packed.Bytes(), 0o644))
	r.t.Logf("%s: %d events, %d bytes", name, len(h.Events), packed.Len())
}

package hostfactory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// script is one script of the fake plug-in: what it prints and its exit status.
type script func(in map[string]any) (stdout string, exit int)

// cloudMachine is a machine as the cloud really has it.
type cloudMachine struct {
	id, name string
	running  bool
	began    cluster.Time
	listed   bool // some answer has told us of it
}

// fake is a plug-in with its cloud, which one may bend script by script. By itself it keeps the contract.
type fake struct {
	t        testing.TB
	clock    cluster.Time
	machines []*cloudMachine
	acquired map[string][]*cloudMachine
	returned map[string][]*cloudMachine
	calls    []string          // script and input, one after another
	bent     map[string]script // in place of the plug-in's own
	errs     map[string]error  // calls that break off after the script has worked
	dir      string
	given    int
	made     int64 // machines per unit that is asked for
}

func newFake(t testing.TB) *fake {
	f := &fake{
		t: t, clock: cluster.TimeOf(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)), dir: t.TempDir(), made: 1,
		acquired: map[string][]*cloudMachine{}, returned: map[string][]*cloudMachine{},
		bent: map[string]script{}, errs: map[string]error{},
	}
	for _, folder := range []string{"scripts", "work", "conf", "logs"} {
		if err := os.Mkdir(filepath.Join(f.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range scripts {
		f.write(name, "#!/bin/sh\nexit 1\n")
	}
	return f
}

func (f *fake) write(name, text string) {
	if err := os.WriteFile(filepath.Join(f.dir, "scripts", name+".sh"), []byte(text), 0o755); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) spec() Spec {
	return Spec{
		Name: "aws", Scripts: filepath.Join(f.dir, "scripts"), Work: filepath.Join(f.dir, "work"), Conf: filepath.Join(f.dir, "conf"),
		Logs: filepath.Join(f.dir, "logs"), State: filepath.Join(f.dir, "state.json"), TimeLimit: 20 * time.Second,
	}
}

// adapter makes an adapter of the fake in this process.
func (f *fake) adapter() *Adapter {
	f.t.Helper()
	return f.adapterOf(f.spec(), nil)
}

func (f *fake) adapterOf(spec Spec, log *bytes.Buffer) *Adapter {
	f.t.Helper()
	var logger *slog.Logger
	if log != nil {
		logger = slog.New(slog.NewTextHandler(log, nil))
	}
	a, err := New(spec, logger)
	if err != nil {
		f.t.Fatal(err)
	}
	a.now = func() cluster.Time { return f.clock }
	a.execute = f.execute
	return a
}

func (f *fake) execute(_ context.Context, name string, input []byte) providers.Execution {
	f.calls = append(f.calls, name+" "+strings.TrimSpace(string(input)))
	var in map[string]any
	if err := json.Unmarshal(input, &in); err != nil {
		f.t.Fatal(err)
	}
	do := f.bent[name]
	if do == nil {
		do = f.own(name)
	}
	stdout, exit := do(in)
	if err := f.errs[name]; err != nil {
		return providers.Execution{Exit: -1, Err: err}
	}
	f.note(stdout)
	return providers.Execution{Stdout: []byte(stdout), Exit: exit, Elapsed: time.Millisecond}
}

// note marks machines that an answer tells of.
func (f *fake) note(stdout string) {
	for _, m := range f.machines {
		m.listed = m.listed || strings.Contains(strings.ReplaceAll(stdout, "'", `"`), `"`+m.id+`"`)
	}
}

func (f *fake) own(name string) script {
	return map[string]script{
		getTemplates: f.getTemplates, requestMachines: f.requestMachines, getStatus: f.getStatus,
		returnMachines: f.returnMachines, getReturnRequests: f.getReturnRequests,
	}[name]
}

// bend puts a script in place of one of the plug-in's own.
func (f *fake) bend(name string, do script) { f.bent[name] = do }

func (f *fake) wait(d cluster.Duration) { f.clock = f.clock.Add(d) }

func (f *fake) countCalls(name string) (n int) {
	for _, call := range f.calls {
		if strings.HasPrefix(call, name+" ") {
			n++
		}
	}
	return n
}

func (f *fake) runningIDs() (ids []string) {
	for _, m := range f.machines {
		if m.running {
			ids = append(ids, m.id)
		}
	}
	return ids
}

func (f *fake) id(prefix string) string {
	f.given++
	return fmt.Sprintf("%s-%d", prefix, f.given)
}

func (f *fake) launch(n int) (made []*cloudMachine) {
	for range n {
		id := f.id("i")
		m := &cloudMachine{id: id, name: "host-" + id, running: true, began: f.clock}
		f.machines, made = append(f.machines, m), append(made, m)
	}
	return made
}

func (f *fake) getTemplates(map[string]any) (string, int) {
	return `{"templates":[{"templateId":"small","maxNumber":10,"attributes":{"type":["String","X86_64"],"ncpus":["Numeric","4"],"mem":["Numeric","8192"],"awshost":["Boolean","1"]}}]}`, 0
}

func (f *fake) requestMachines(in map[string]any) (string, int) {
	count, _ := integer(json.Number(fmt.Sprint(in["template"].(map[string]any)["machineCount"])))
	id := f.id("r")
	f.acquired[id] = f.launch(int(count * f.made))
	return fmt.Sprintf(`{"requestId":%q,"message":"done"}`, id), 0
}

func asAnswer(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

type object = map[string]any

func (m *cloudMachine) entry(result string) object {
	return object{
		"machineId": m.id, "name": m.name, "result": result, "status": "whatever",
		"privateIpAddress": "10.0.0.1", "launchtime": m.began.Std().Unix(), "message": "",
	}
}

// results are what a request's machines have come to: of an acquire, or of a return.
func results(machines []*cloudMachine, ifRunning, ifNot string) []object {
	list := []object{}
	for _, m := range machines {
		result := ifNot
		if m.running {
			result = ifRunning
		}
		list = append(list, m.entry(result))
	}
	return list
}

func askedIDs(in map[string]any) (ids []string) {
	for _, request := range in["requests"].([]any) {
		ids = append(ids, request.(map[string]any)["requestId"].(string))
	}
	return ids
}

func (f *fake) getStatus(in map[string]any) (string, int) {
	var requests []object
	for _, id := range askedIDs(in) {
		requests = append(requests, f.status(id))
	}
	return asAnswer(object{"requests": requests}), 0
}

func (f *fake) status(id string) object {
	if machines, found := f.acquired[id]; found {
		return object{"requestId": id, "status": complete, "machines": results(machines, succeed, fail)}
	}
	if machines, found := f.returned[id]; found {
		return object{"requestId": id, "status": complete, "machines": results(machines, fail, succeed)}
	}
	return object{"requestId": id, "status": completeWithError, "message": "no such request", "machines": []object{}}
}

// named answers the cloud's machines that an input names, and the names of those that it does not have.
func (f *fake) named(in map[string]any) (known []*cloudMachine, unknown []string) {
	for _, wanted := range in["machines"].([]any) {
		id := wanted.(map[string]any)["machineId"].(string)
		i := slices.IndexFunc(f.machines, func(m *cloudMachine) bool { return m.id == id })
		if i < 0 {
			unknown = append(unknown, id)
			continue
		}
		known = append(known, f.machines[i])
	}
	return known, unknown
}

func (f *fake) returnMachines(in map[string]any) (string, int) {
	known, _ := f.named(in)
	for _, m := range known {
		m.running = false
	}
	id := f.id("b")
	f.returned[id] = known
	return fmt.Sprintf(`{"requestId":%q,"message":"done"}`, id), 0
}

func (f *fake) getReturnRequests(map[string]any) (string, int) {
	return `{"status":"complete","message":"","requests":[]}`, 0
}

// says is a script that always says the same.
func says(stdout string, exit int) script {
	return func(map[string]any) (string, int) { return stdout, exit }
}

func askOne(id string) providers.RequestIn {
	return providers.RequestIn{RequestID: id, Template: "small", Units: 1, Join: &providers.Join{
		Host: id, Controller: "https://xce:7400", CA: "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
		Token: secretToken, Deadline: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC),
	}}
}

const secretToken = "s3cr3t-t0ken.of+some/length=="

// settled asks for the status of a request until it is final, at most for so long.
func (f *fake) settled(a *Adapter, id string, most cluster.Duration) providers.RequestState {
	f.t.Helper()
	for end := f.clock.Add(most); ; {
		out, outcome := a.Status(f.t.Context(), providers.StatusIn{RequestIDs: []string{id}})
		if outcome.Status != providers.StatusOK || len(out.Requests) != 1 {
			f.t.Fatalf("status: %+v %+v", out, outcome)
		}
		if out.Requests[0].Status != providers.StatePending || f.clock >= end {
			return out.Requests[0]
		}
		f.wait(30 * cluster.Second)
	}
}

// back returns a request until it is ok, at most for so long.
func (f *fake) back(a *Adapter, id string, most cluster.Duration) providers.ReturnOut {
	f.t.Helper()
	for end := f.clock.Add(most); ; {
		out, _ := a.Return(f.t.Context(), providers.ReturnIn{RequestID: id, Units: 1})
		if out.Status != providers.StatusPending || f.clock >= end {
			return out
		}
		f.wait(30 * cluster.Second)
	}
}

// strangers are running machines that the adapter has no record of.
func (f *fake) strangers(a *Adapter) (ids []string) {
	f.t.Helper()
	s, err := loadState(a.spec.State, a.spec.Name)
	if err != nil {
		f.t.Fatal(err)
	}
	known := map[string]bool{}
	for _, r := range s.Requests {
		for _, m := range r.Machines {
			if m.exists() {
				known[m.ID] = true
			}
		}
	}
	return slices.DeleteFunc(f.runningIDs(), func(id string) bool { return known[id] })
}

// returnedIDs are the machines that the plug-in was asked to take back.
func (f *fake) returnedIDs() []string {
	ids := map[string]bool{}
	for _, call := range f.calls {
		if rest, yes := strings.CutPrefix(call, returnMachines+" "); yes {
			var in machinesInput
			if err := json.Unmarshal([]byte(rest), &in); err != nil {
				f.t.Fatal(err)
			}
			for _, m := range in.Machines {
				ids[m.ID] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

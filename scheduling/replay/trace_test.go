package replay_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay"
)

var update = flag.Bool("update", false, "write the expected schedules anew, from the reference")

const second = int64(cluster.Second)

func seconds(n int64) cluster.Time { return cluster.Time(n * second) }

var (
	orders = []scheduling.Order{scheduling.FCFS, scheduling.EASY, scheduling.Conservative}
	modes  = []replay.Mode{replay.Batch, replay.Sequential}
)

func asReference(j replay.Job, machine replay.Machine) *refJob {
	r := &refJob{
		priority: j.Spec.Priority, submit: int64(j.Submit) / second, run: int64(j.Run) / second, limit: int64(j.Estimate) / second,
		need: []int64{j.Procs, j.Spec.MemoryMB, j.Spec.Countables["gpus"]}, start: -1, promise: -1,
	}
	for _, res := range machine.Resources {
		r.need = append(r.need, j.Spec.Tokens[res.Name])
	}
	return r
}

// own are the traces in testdata, and the machines that they are for.
var own = []struct {
	name    string
	machine replay.Machine
}{
	{"busy.swf", replay.OneHost(32)},
	{"bursts.swf", replay.OneHost(16)},
	{"odd.swf", replay.OneHost(8)},
	{"licences.txt", licensed()},
}

// licensed is a host with memory and gpus, and two licence features.
func licensed() replay.Machine {
	m := replay.OneHost(24)
	m.Hosts[0].MemoryMB, m.Hosts[0].Countables = 96, map[string]int64{"gpus": 4}
	m.Resources = []scheduling.Resource{resource("vcs", 6), resource("verdi", 3)}
	return m
}

func resource(name string, total int64) scheduling.Resource {
	return scheduling.Resource{SharedResource: cluster.SharedResource{Name: name, Owned: total}, Total: total}
}

func ownTrace(t *testing.T, name string, machine replay.Machine) replay.Trace {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".swf") {
		return readTable(t, data)
	}
	return readSWF(t, data, machine.Hosts[0].CPUs)
}

// readTable reads lines of id, submit, run, estimate, cpus, memory, gpus, vcs and verdi.
func readTable(t *testing.T, data []byte) (trace replay.Trace) {
	t.Helper()
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var j replay.Job
		var submit, run, estimate, gpus, vcs, verdi int64
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if _, err := fmt.Sscan(lines.Text(), &j.ID, &submit, &run, &estimate, &j.Procs, &j.Spec.MemoryMB, &gpus, &vcs, &verdi); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		j.Submit, j.Run, j.Estimate = seconds(submit), cluster.Duration(run*second), cluster.Duration(estimate*second)
		j.Spec.Countables = map[string]int64{"gpus": gpus}
		j.Spec.Tokens = map[string]int64{"vcs": vcs, "verdi": verdi}
		trace.Jobs = append(trace.Jobs, j)
	}
	return trace
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func printed(t tester, rows []replay.Row) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := replay.Print(&out, rows); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// checkRows compares schedules byte for byte, and names the first job that differs.
func checkRows(t tester, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(g), len(w)) {
		if !bytes.Equal(g[i], w[i]) {
			t.Fatalf("row %d (id submit start run procs estimate) is\n%s, want\n%s", i+1, g[i], w[i])
		}
	}
	t.Fatalf("got %d rows, want %d", len(g)-1, len(w)-1)
}

func TestOwnTracesAreScheduledAsTheReferenceDoes(t *testing.T) {
	for _, trace := range own {
		for _, order := range orders {
			for _, mode := range modes {
				name, _, _ := strings.Cut(trace.name, ".")
				name = fmt.Sprintf("%s-%s-%s", name, order, mode)
				t.Run(name, func(t *testing.T) {
					jobs := ownTrace(t, trace.name, trace.machine)
					reference := printed(t, expected(jobs, trace.machine, order, mode))
					file := filepath.Join("testdata", name+".want")
					if *update {
						if err := os.WriteFile(file, reference, 0o600); err != nil {
							t.Fatal(err)
						}
					}
					want, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					checkRows(t, reference, want)
					checkRows(t, printed(t, replay.Run(jobs, trace.machine, scheduling.Policy{Order: order}, mode)), want)
				})
			}
		}
	}
}

// Hosts of one cpu each are no different from the cpus of one host to jobs that
// nobody may overtake.
func TestProcessorsAreAlikeOnOneHostAndOnMany(t *testing.T) {
	for _, trace := range own[:3] {
		t.Run(trace.name, func(t *testing.T) {
			jobs := ownTrace(t, trace.name, trace.machine)
			want := printed(t, replay.Run(jobs, trace.machine, scheduling.Policy{}, replay.Batch))
			many := replay.HostPerProcessor(trace.machine.Hosts[0].CPUs)
			checkRows(t, printed(t, replay.Run(jobs, many, scheduling.Policy{}, replay.Batch)), want)
		})
	}
}

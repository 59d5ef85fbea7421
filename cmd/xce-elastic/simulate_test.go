package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const simulatedFarm = `cluster: {name: east}
resources:
  - {name: vcs, owned: 2, elastic: {lenders: [pool], max_borrowed: 4, idle_time: 10m}}
providers:
  - {name: pool, script: pool}
  - {name: cloud, script: local}
simulation:
  hosts: [{name: node, cpus: 4}]
  providers:
    - name: pool
      answer: {median: 300ms, p95: 2s}
      offers: [{resource: vcs, capacity: 3, price: 250000}]
    - name: cloud
      templates: [{template: small, cpus: 4, capacity: 3, price: 100000, boot: {median: 90s, p95: 4m}}]
`

// simulatedJobs are 30 jobs, each with a token and two cpus.
func simulatedJobs(t *testing.T) (log, mapping string) {
	t.Helper()
	var text strings.Builder
	for n := 1; n <= 30; n++ {
		fmt.Fprintf(&text, "%d %d 0 %d 2 -1 -1 2 1800 -1 1 1 1 1 1 -1 -1 -1\n", n, 60*n, 300+7*n)
	}
	return fileOf(t, "jobs.swf", text.String()), fileOf(t, "map.yaml", "defaults: {tokens: {vcs: 1}}\n")
}

// simulate answers the command line of a simulation.
func simulate(t *testing.T, more ...string) []string {
	t.Helper()
	log, mapping := simulatedJobs(t)
	return append([]string{"simulate", "--cluster", fileOf(t, "farm.yaml", simulatedFarm), "--jobs", log, "--mapping", mapping}, more...)
}

func TestASimulationSaysWhoWaitedAndWhatItCost(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	prints(t, simulate(t, "--out", folder), `cluster east: 30 jobs`, `30 +30 +0 +0 +0 +0 +0`, `WAITED FOR`, `Little's law holds`, `small +\d`, `vcs +\d`, `The report is .*report.html`)
	prints(t, simulate(t, "-o", "json"), `"cluster": "east"`, `"done": 30`)
	for _, name := range []string{"report.html", "jobs.csv", "resources.csv", savedRun} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheSameSimulationWritesTheSameBytes(t *testing.T) {
	args := simulate(t, "--seed", "3")
	first, second := t.TempDir(), t.TempDir()
	prints(t, append(args, "--out", first))
	t.Setenv("GOMAXPROCS", "1")
	prints(t, append(args, "--out", second))
	checked := 0
	err := fs.WalkDir(os.DirFS(first), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		checked++
		one, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			return err
		}
		two, err := os.ReadFile(filepath.Join(second, name))
		if err == nil && !bytes.Equal(one, two) {
			t.Errorf("%s differs", name)
		}
		return err
	})
	if err != nil || checked < 5 {
		t.Fatalf("%d files: %v", checked, err)
	}
}

func TestSettingsAreVariedAndRunsCompared(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	prints(t, simulate(t, "--vary", "vcs.max_borrowed=0,4", "--vary", "host_idle_time=5m,1h", "--out", folder),
		`run 4 +4 +1h +30`, `nothing elastic +.*baseline`, `everything at once +.*baseline`, `frontier.html`)
	nothing, all := filepath.Join(folder, "nothing_elastic"), filepath.Join(folder, "everything_elastic", savedRun)
	prints(t, []string{"simulate", "diff", nothing, all}, `mean wait`, `cost`, `earlier in B`)
	prints(t, []string{"simulate", "diff", nothing, nothing}, `30 jobs started at the same time`)
}

func TestASimulationThatIsBrokenOffReportsWhatWasDone(t *testing.T) {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(simulate(t))
	root.SetOut(&out)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := root.ExecuteContext(ctx); !errors.Is(err, errBrokenOff) {
		t.Fatalf("it ends with %v", err)
	}
	if !strings.Contains(out.String(), "STOPPED before its end") {
		t.Errorf("it does not say that it is not all:\n%s", out.String())
	}
}

func TestWhatCannotBeSimulatedIsRefused(t *testing.T) {
	refuses(t, []string{"simulate", "--cluster", fileOf(t, "farm.yaml", simulatedFarm)}, "name a trace with --jobs")
	refuses(t, simulate(t, "--vary", "idle_time"), `--vary: "idle_time" is not KEY=VALUE`)
	refuses(t, simulate(t, "--vary", "colour=1"), `nothing called "colour" to vary; there are:`, `max_borrowed`)
	refuses(t, simulate(t, "--vary", "dc.max_borrowed=1"), `nothing called "dc" has that`)
	refuses(t, simulate(t, "--vary", "idle_time=-5m"), `negative`)
	refuses(t, simulate(t, "--at-once", "0"), "--at-once")
	log, _ := simulatedJobs(t)
	refuses(t, []string{"simulate", "--cluster", fileOf(t, "farm.yaml", "cluster: {name: east}\n"), "--jobs", log}, "simulation.hosts")
	refuses(t, []string{"simulate", "--cluster", fileOf(t, "farm.yaml", strings.Replace(simulatedFarm, "cpus: 4}", "cpus: -4}", 1)), "--jobs", log}, `farm.yaml:8: simulation.hosts\[0\].cpus`)
	refuses(t, []string{"simulate", "diff", log}, "xce-elastic simulate diff BEFORE AFTER")
	refuses(t, []string{"simulate", "diff", log, log}, "jobs.swf")
}

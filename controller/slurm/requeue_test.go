package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/controller/slurm/slurmtest"
)

// Of the jobs on a host those wait again that may; one that may not runs on, and those elsewhere do.
func TestRealRequeue(t *testing.T) {
	r := startSlurm(t, slurmtest.Options{Nodes: 2})
	b := r.backend(nil)
	again := r.submit("-n1", "-w", "n1", "--requeue")
	once := r.submit("-n1", "-w", "n1", "--no-requeue")
	elements := r.submit("-n1", "-w", "n1", "--requeue", "--array=1-2")
	elsewhere := r.submit("-n1", "-w", "n2", "--requeue")
	r.until("all run", func() bool {
		out, _ := r.run("squeue", "-h", "-t", "R", "-o", "%A")
		return len(strings.Fields(out)) == 5
	})
	must(t, b.Requeue(t.Context(), "n1"))
	for _, id := range []string{again, elements + "_1", elements + "_2"} {
		r.until("job "+id+" waits again", func() bool { return strings.HasPrefix(r.job(id), "PENDING") })
	}
	for _, id := range []string{once, elsewhere} {
		if got := r.job(id); !strings.HasPrefix(got, "RUNNING") {
			t.Errorf("job %s is %s", id, got)
		}
	}
	must(t, b.Requeue(t.Context(), "n1"))
	must(t, b.Requeue(t.Context(), "nosuch"))
}

func TestRequeueSaysWhatItMayNot(t *testing.T) {
	for name, c := range map[string]struct {
		host, jobs, says string
		want             string // of the error; "" for none
		asked            string // which jobs are
	}{
		"nothing runs":          {"n1", "", "", "", ""},
		"all do":                {"n1", "1\n2\n", "", "", "1 2"},
		"one may not run again": {"n1", "1\n2\n", "Requested operation is presently disabled for job 1", "", "1 2"},
		"one has ended":         {"n1", "1\n2\n", "Invalid job id specified", "", "1 2"},
		"we may not":            {"n1", "1\n2\n", "Access/permission denied for job 1", "we may not stop jobs", "1"},
		"slurmctld goes away":   {"n1", "1\n2\n", "Unable to contact slurm controller", "outcome unknown", "1 2"},
		"several hosts":         {"n[1-2]", "1\n", "", "no name of a host", ""},
	} {
		commands, folder := standIn(t, "echo $2 >>asked\n[ -z '"+c.says+"' ] && exit 0\necho '"+c.says+"' >&2\nexit 1\n")
		must(t, os.WriteFile(filepath.Join(folder, "squeue"), []byte("#!/bin/sh\nprintf '"+strings.ReplaceAll(c.jobs, "\n", `\n`)+"'\n"), 0o755))
		err := New(Options{Commands: commands}).Requeue(t.Context(), c.host)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		asked, _ := os.ReadFile(filepath.Join(folder, "asked"))
		if got := strings.Join(strings.Fields(string(asked)), " "); got != c.asked {
			t.Errorf("%s: asked for jobs %q, want %q", name, got, c.asked)
		}
	}
}

// Only what Slurm says of the very node means that it is not there.
func TestOneNodeIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		there  bool
		want   string // of the error
	}{
		"it is there":           {"echo 'NodeName=h1 CPUTot=4 State=IDLE'", true, ""},
		"it is not":             {"echo 'Node h1 not found'; exit 1", false, ""},
		"it is not, said aside": {"echo 'Node h1 not found' >&2; exit 1", false, ""},
		"another is not found":  {"echo 'host ctld not found' >&2; exit 1", false, "not found"},
		"nothing is said":       {"", false, "of 0 nodes"},
		"another is told of":    {"echo 'NodeName=h2 CPUTot=4 State=IDLE'", false, "another one"},
		"slurmctld is away":     {"echo 'Unable to contact slurm controller' >&2; exit 1", false, "outcome unknown"},
	} {
		commands, _ := standIn(t, c.script+"\n")
		n, err := commands.Node(t.Context(), "h1")
		if (n != nil) != c.there || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

//go:build e2e

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/controller/slurm/slurmtest"
)

// slurmGuide is the page for sites that run Slurm.
const slurmGuide = "../../docs/slurm.md"

// reader does what a page says, in a folder of its own.
type reader struct {
	t      *testing.T
	folder string
	env    []string
	said   map[string]string // what each command printed
}

// does runs a line with bash, as typed.
func (r *reader) does(line string) string {
	r.t.Helper()
	out, err := r.tries(line)
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	r.t.Logf("%s\n%s", line, out)
	r.said[line] = out
	return out
}

// tries is that for a line that may fail.
func (r *reader) tries(line string) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env = r.folder, append(os.Environ(), r.env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// waits repeats a line, as a reader does who was told to, until it prints what is expected.
func (r *reader) waits(within time.Duration, line, expected string) string {
	r.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(500 * time.Millisecond) {
		out, err := r.tries(line)
		if err == nil && regexp.MustCompile(expected).MatchString(out) {
			r.t.Logf("%s\n%s", line, out)
			return out
		}
		if time.Now().After(end) {
			r.t.Fatalf("after %s %s does not print %q: %v\n%s", within, line, expected, err, out)
		}
	}
}

// shows demands that a command printed, or prints now, what the page says.
func (r *reader) shows(out string, patterns ...string) {
	r.t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(out) {
			r.t.Errorf("%q is not in\n%s", p, out)
		}
	}
}

// ends ends what was started in the background, if the page did not come so far.
func (r *reader) ends() {
	files, _ := filepath.Glob(filepath.Join(r.folder, "*.pid"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if !r.t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(r.folder, "*.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		r.t.Logf("%s\n%s", filepath.Base(log), text[max(0, len(text)-4000):])
	}
}

// freePorts answers the first of so many ports in a row that nothing listens at.
func freePorts(t *testing.T, count int) int {
	t.Helper()
	for first := 20000 + os.Getpid()%1000*10; first < 32000; first += count {
		var open []net.Listener
		for i := range count {
			if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i)); err == nil {
				open = append(open, l)
			}
		}
		for _, l := range open {
			_ = l.Close()
		}
		if len(open) == count {
			return first
		}
	}
	t.Fatal("there are no free ports")
	return 0
}

// newReader answers one who has our programs, Slurm's, and no Temporal yet. Ports are others than
// the page has, since tests run beside each other.
func newReader(t *testing.T, slurm *slurmtest.Cluster) *reader {
	t.Helper()
	bin, err := filepath.Abs(os.Getenv("XCE_BIN"))
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, folder: t.TempDir(), said: map[string]string{}}
	t.Cleanup(r.ends)
	ours, port := t.TempDir(), freePorts(t, 6)
	devserver := fmt.Sprintf("#!/bin/sh\nexec %s/devserver --port %d --ui-port -1 \"$@\"\n", bin, port)
	if err := os.WriteFile(filepath.Join(ours, "devserver"), []byte(devserver), 0o700); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{ours, bin, os.Getenv("PATH")}, ":")
	r.env = append(slurm.Env(), "PATH="+path,
		fmt.Sprintf("XCE_TEMPORAL_ADDRESS=127.0.0.1:%d", port), fmt.Sprintf("XCE_CONTROLLER_LISTEN=127.0.0.1:%d", port+5),
		fmt.Sprintf("XCE_CONTROLLER_ADDRESS=https://127.0.0.1:%d", port+5))
	return r
}

func TestThePageOnSlurmWorks(t *testing.T) {
	if os.Getenv("XCE_BIN") == "" {
		t.Skip("XCE_BIN does not say where the built programs are")
	}
	slurmtest.Need(t)
	missing, accounted := slurmtest.Accounting()
	if !accounted {
		t.Logf("what needs slurmdbd is left out: there is no %s", missing)
	}
	slurm := slurmtest.New(t, slurmtest.Options{Nodes: 1, Licences: map[string]int64{"vcs": 4}, Accounting: accounted})
	r := newReader(t, slurm)
	began := time.Now()
	for _, b := range blocksOf(t, slurmGuide) {
		switch {
		case b.kind == "yaml":
			if err := os.WriteFile(filepath.Join(r.folder, "xce-elastic.yaml"), []byte(b.text()), 0o600); err != nil {
				t.Fatal(err)
			}
		case b.kind == "sh" || b.kind == "sh slurmdbd" && accounted:
			r.before(b)
			for _, line := range b.lines {
				r.does(line)
			}
			r.after(b)
		}
	}
	t.Logf("the page took %s", time.Since(began).Round(time.Second))
	r.isAsBefore()
}

// before waits for what the page has a reader wait for.
func (r *reader) before(b pageBlock) {
	switch text := b.text(); {
	case strings.Contains(text, "reconfigure && "): // the page shows what is said before
		out, err := r.tries("xce-elastic slurm check -c xce-elastic.yaml")
		if err == nil {
			r.t.Error("slurm check misses nothing before the total is fixed")
		}
		r.shows(out, `MISSING +resource vcs +the total of licence vcs is 4, not 12 \(owned 4, and at most 8 borrowed\)`,
			`scontrol reconfigure && scontrol create reservation reservationname=xce-withheld.vcs .*licenses=vcs:8`, `\n +Licenses=vcs:12\n`)
	case strings.Contains(text, "sbatch"):
		r.waits(time.Minute, "xce-elastic status", `(?s)Slurm, read .*vcs +4 +4 .*pool-a +vcs +8`)
	case strings.Contains(text, "kill $(cat worker.pid)"):
		r.waits(2*time.Minute, "xce-elastic loans -o json", `^\[\]\s*$`)
		r.waits(time.Minute, "scontrol -o show licenses", `LicenseName=vcs Total=12 Used=0 .*Reserved=8`)
	}
}

// after demands what the page says that is seen.
func (r *reader) after(b pageBlock) {
	switch text := b.text(); {
	case strings.Contains(text, "reconfigure && "):
		r.shows(r.said["xce-elastic slurm check -c xce-elastic.yaml"], `ok +resource vcs +the total of licence vcs is 12`, `ok +reservation +xce-withheld.vcs keeps back 8 of vcs`)
	case strings.Contains(text, "sbatch"):
		r.borrows()
	}
}

// borrows sees the page's job wait, borrow, run, and what is said of it.
func (r *reader) borrows() {
	id := regexp.MustCompile(`\d+`).FindString(r.said["sbatch --licenses=vcs:6 --output=/dev/null --wrap 'sleep 600'"])
	r.shows(r.said["squeue"], id+` .*(Licenses|None)|`+id+` .* R `)
	r.waits(time.Minute, "squeue", id+` .* R `)
	r.waits(time.Minute, "scontrol -o show licenses", `LicenseName=vcs Total=12 Used=6 .*Reserved=6`)
	r.shows(r.does("xce-elastic loans"), `loan/vcs/pool-a-1 +borrowed +2`)
	// What we say is as of the last reading, which may be older than the job's start.
	r.waits(20*time.Second, "xce-elastic explain job "+id, `Job `+id+` runs`)
	r.shows(r.does("xce-elastic jobs"), `JOB .* REASON +WHY`, `\n`+id+` +wrap +running .*vcs=6`)
	r.shows(r.does("xce-elastic explain resource vcs"), `total of vcs is 6 = 4 owned \+ 2 borrowed`, `Slurm counts 12, of which 6 are used and 6 are kept from jobs`)
	r.shows(r.does("xce-elastic explain loan loan/vcs/pool-a-1"), `because job `+id)
}

// isAsBefore demands that nothing of ours is left in Slurm.
func (r *reader) isAsBefore() {
	r.shows(r.does("scontrol -o show licenses"), `LicenseName=vcs Total=4 Used=0 Free=4 Reserved=0`)
	r.shows(r.does("scontrol -o show reservations"), `No reservations`)
}

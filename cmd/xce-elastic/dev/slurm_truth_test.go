//go:build e2e

package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	kernel "xce.internal/elastic/providers/scripts/process"
)

// submission is a job, or each element of an array, that was asked for under a name of its own: Slurm
// uses an id again that it has forgotten.
type submission struct {
	key    string
	tokens int64
	// elements are those of an array; 0 for a single job.
	elements int
	// told is when sbatch answered an id, and zero where nobody knows whether Slurm has the job.
	told time.Time
}

// names are those of the jobs of a submission.
func (j submission) names() (names []string) {
	for i := range j.elements {
		names = append(names, fmt.Sprint(j.key, "/", i+1))
	}
	if j.elements == 0 {
		names = []string{j.key}
	}
	return names
}

// run is one run of a job, as the job itself wrote it down.
type run struct {
	job    string // its name
	id     string // Slurm's
	tokens int64
	host   string
	pid    int
	began  time.Time
	ended  time.Time // zero where it did not come to its end
	alive  time.Time // when it was last seen alive
}

// over is when the run was over for all that is known.
func (r *run) over() time.Time {
	if !r.ended.IsZero() {
		return r.ended
	}
	return r.alive
}

// during tells whether the run was there for certain at a time.
func (r *run) during(at time.Time) bool { return !r.began.After(at) && r.over().After(at) }

// sample is what was so at some moment between two.
type sample struct {
	from, to time.Time
	// lent is the most that the pool's journal said was lent meanwhile.
	lent int64
	runs []string // alive, by file
	// used is Slurm's count and jobs its queue, where it answered.
	answered bool
	used     int64
	jobs     map[string]string
	nodes    []string
}

// watch takes samples of Slurm, of the pool and of the jobs.
type watch struct {
	*slurmFarm
	folder  string // of what jobs write
	mu      sync.Mutex
	next    int
	jobs    []submission
	runs    map[string]*run // by file
	samples []sample
	kills   []killed
}

// killed is one kill -9.
type killed struct {
	what string
	at   time.Time
}

func (s *slurmFarm) watch() *watch {
	w := &watch{slurmFarm: s, folder: s.path("ran"), runs: map[string]*run{}}
	if err := os.MkdirAll(w.folder, 0o755); err != nil {
		s.t.Fatal(err)
	}
	return w
}

// submit submits a job that runs for some tenths of a second. It has a name of its
// own, and writes down where and when it begins and ends.
func (w *watch) submit(ctx context.Context, tenths int, tokens int64, elements int, options ...string) submission {
	w.mu.Lock()
	w.next++
	j := submission{key: fmt.Sprint("k", w.next), tokens: tokens, elements: elements}
	w.mu.Unlock()
	command := fmt.Sprintf(`k=%s${SLURM_ARRAY_TASK_ID:+/$SLURM_ARRAY_TASK_ID}; f=%s/%s-$SLURM_JOB_ID-$$
echo start $k $SLURM_JOB_ID %d $SLURMD_NODENAME $$ $(date +%%s%%3N) >$f; sleep %d.%d; echo end $(date +%%s%%3N) >>$f`,
		j.key, w.folder, j.key, tokens, tenths/10, tenths%10)
	options = append([]string{"-J", j.key}, options...)
	if tokens > 0 {
		options = append(options, "-L", fmt.Sprintf("%s:%d", resource, tokens))
	}
	if elements > 0 {
		options = append(options, fmt.Sprintf("--array=1-%d", elements))
	}
	if _, err := w.slurm.Submit(ctx, command, options...); err == nil {
		j.told = time.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, j)
	return j
}

// submitSurely submits until Slurm answers.
func (w *watch) submitSurely(tenths int, tokens int64, elements int, options ...string) submission {
	w.t.Helper()
	var j submission
	eventually(w.t, 2*time.Minute, func() error {
		if j = w.submit(w.t.Context(), tenths, tokens, elements, options...); j.told.IsZero() {
			return fmt.Errorf("Slurm does not take a job of %d tokens and %v", tokens, options)
		}
		return nil
	})
	return j
}

// during takes samples until ctx ends.
func (w *watch) during(ctx context.Context, pause time.Duration) {
	for ctx.Err() == nil {
		w.sample(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// sample takes one: the pool's journal is read before and after all else.
func (w *watch) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v := sample{from: time.Now()}
	before := len(w.lent())
	w.mu.Lock()
	v.runs = w.look()
	w.mu.Unlock()
	var err error
	_, v.used, _, err = w.counts(ctx)
	if v.answered = err == nil; v.answered {
		v.jobs, v.answered = w.queue(ctx)
	}
	if v.answered {
		v.nodes, v.answered = w.nodes(ctx)
	}
	all := w.lent()
	v.to = time.Now()
	v.lent = slices.Max(all[before-1:])
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, v)
}

// lent answers what the pool had lent to us after each line of its journal, and before the first.
func (w *watch) lent() []int64 {
	data, _ := os.ReadFile(w.path("pool.json.log"))
	all := []int64{0}
	for line := range bytes.Lines(data) {
		entry := journal{{}}
		if json.Unmarshal(line, &entry[0]) != nil {
			break // it is just being written
		}
		n := all[len(all)-1]
		switch e := entry[0]; {
		case e.Cluster != "east":
		case e.Change == "granted":
			n += e.Units
		case e.Change == "returned":
			n -= e.Units
		}
		all = append(all, n)
	}
	return all
}

// look reads what the jobs have written, and answers the runs that are alive.
func (w *watch) look() (alive []string) {
	files, _ := filepath.Glob(filepath.Join(w.folder, "*"))
	for _, file := range files {
		r := w.runs[file]
		if r != nil && !r.ended.IsZero() {
			continue
		}
		text, _ := os.ReadFile(file)
		if next := parseRun(string(text)); next != nil {
			if r != nil {
				next.alive = r.alive
			}
			r = next
			w.runs[file] = r
		}
		if r != nil && r.ended.IsZero() && kernel.Bears(r.pid, "SLURM_JOB_ID", r.id) {
			r.alive = time.Now()
			alive = append(alive, file)
		}
	}
	return alive
}

func parseRun(text string) *run {
	lines := strings.Split(text, "\n")
	f := strings.Fields(lines[0])
	if len(lines) < 2 || len(f) != 7 {
		return nil // it is just being written
	}
	r := &run{job: f[1], id: f[2], host: f[4], began: stamp(f[6])}
	r.tokens, _ = strconv.ParseInt(f[3], 10, 64)
	r.pid, _ = strconv.Atoi(f[5])
	r.alive = r.began
	if f := strings.Fields(lines[1]); len(lines) > 2 && len(f) == 2 {
		r.ended = stamp(f[1])
	}
	return r
}

func stamp(text string) time.Time {
	ms, _ := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms)
}

// queue answers the state of each job that Slurm knows, by name.
func (w *watch) queue(ctx context.Context) (jobs map[string]string, answered bool) {
	out, err := w.slurm.Run(ctx, "squeue", "-h", "-r", "-t", "all", "-o", "%j %K %T")
	if err != nil {
		return nil, false
	}
	jobs = map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 3 {
			name := f[0]
			if f[1] != "N/A" {
				name += "/" + f[1]
			}
			jobs[name] = f[2]
		}
	}
	return jobs, true
}

func (w *watch) nodes(ctx context.Context) (names []string, answered bool) {
	out, err := w.slurm.Run(ctx, "sinfo", "-h", "-N", "-o", "%N")
	return strings.Fields(out), err == nil
}

// killed notes a kill.
func (w *watch) killed(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kills = append(w.kills, killed{what, time.Now()})
}

// forgets is how long slurmctld may take to write down what it knows, with a margin: what
// is younger when it is killed may be forgotten.
const forgets = 10 * time.Second

// forgot tells whether slurmctld was killed so soon after a moment that it may have forgotten what came then.
func (w *watch) forgot(since, until time.Time) bool {
	return slices.ContainsFunc(w.kills, func(k killed) bool {
		return k.what == "slurmctld" && k.at.After(since.Add(-time.Second)) && k.at.Before(since.Add(forgets)) && k.at.Before(until)
	})
}

// figures are what a watch has counted.
type figures struct {
	jobs, runs, again, forgotten, ghosts, beyond, answered int
}

// check checks all that was seen, once all is over.
func (w *watch) check() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
	f := figures{runs: len(w.runs)}
	final, answered := w.queue(w.t.Context())
	if !answered {
		w.t.Fatal("Slurm does not answer at the end")
	}
	w.checkEnds(final, &f)
	ghosts := map[string]bool{}
	for i := range w.samples {
		w.checkSample(i, ghosts, &f)
	}
	for _, r := range w.runs {
		w.checkStart(r, ghosts)
	}
	f.ghosts = len(ghosts)
	byWhat := map[string]int{}
	for _, k := range w.kills {
		byWhat[k.what]++
	}
	w.t.Logf("%d jobs in %d submissions, %d runs (%d jobs ran more than once); %d samples, Slurm answered %d; %d kills: %v",
		f.jobs, len(w.jobs), f.runs, f.again, len(w.samples), f.answered, len(w.kills), byWhat)
	w.t.Logf("slurmctld forgot %d jobs that it had taken and %d runs that went on; in %d samples these were beyond what was lent",
		f.forgotten, f.ghosts, f.beyond)
}

// checkEnds: each job has come to its end, or Slurm itself has forgotten it.
func (w *watch) checkEnds(final map[string]string, f *figures) {
	w.t.Helper()
	runs := map[string][]*run{}
	for _, r := range w.runs {
		runs[r.job] = append(runs[r.job], r)
	}
	for _, j := range w.jobs {
		for _, name := range j.names() {
			f.jobs++
			if len(runs[name]) > 1 {
				f.again++
			}
			state, known := final[name]
			ended := slices.ContainsFunc(runs[name], func(r *run) bool { return !r.ended.IsZero() })
			switch {
			case known && state == "COMPLETED" && !ended:
				w.t.Errorf("%s is COMPLETED and never wrote that it came to its end", name)
			case known && state != "COMPLETED":
				w.t.Errorf("%s is %s at the end", name, state)
			case !known && j.told.IsZero():
			case !known && w.forgot(j.told, time.Now()):
				f.forgotten++
			case !known:
				w.t.Errorf("%s was taken at %s and Slurm knows it no more, though it was not killed just then", name, clock(j.told))
			}
		}
	}
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

// checkSample: Slurm counts no more as used than is owned and lent, no more is in the hands of the runs
// that it knows of, and no host is gone under one.
func (w *watch) checkSample(i int, ghosts map[string]bool, f *figures) {
	w.t.Helper()
	v := w.samples[i]
	most := ownedTokens + v.lent
	if v.answered {
		f.answered++
		if v.used > most {
			w.t.Errorf("from %s to %s Slurm counted %d tokens as used, of %d", clock(v.from), clock(v.to), v.used, most)
		}
	}
	var known, unknown int64
	var holders []string
	for _, file := range v.runs {
		r := w.runs[file]
		if w.isGhost(file, i) {
			ghosts[file] = true
			unknown += r.tokens
			continue
		}
		known += r.tokens
		holders = append(holders, fmt.Sprintf("%s:%d since %s", filepath.Base(file), r.tokens, clock(r.began)))
		if v.answered && !slices.Contains(v.nodes, r.host) {
			w.t.Errorf("at %s Slurm has no %s any more, and %s is on it", clock(v.to), r.host, filepath.Base(file))
		}
	}
	if known > most {
		w.t.Errorf("from %s to %s jobs had %d tokens, of %d: %v; Slurm counted %d", clock(v.from), clock(v.to), known, most, holders, v.used)
	}
	if known+unknown > most {
		f.beyond++
	}
}

// isGhost tells whether slurmctld has forgotten a run that goes on: it was killed soon
// after the run began, and later it has the job not as running, or it has started it again.
func (w *watch) isGhost(file string, i int) bool {
	r := w.runs[file]
	if !w.forgot(r.began, w.samples[i].to) {
		return false
	}
	for other, o := range w.runs {
		if other != file && o.job == r.job && o.began.After(r.began) {
			return true
		}
	}
	for _, v := range w.samples[i:] {
		if v.answered {
			state := v.jobs[r.job]
			return state != "RUNNING" && state != "COMPLETING" && state != "COMPLETED"
		}
	}
	return false
}

// checkStart: when a run began, it and those that were there had no more than was owned and lent.
func (w *watch) checkStart(r *run, ghosts map[string]bool) {
	w.t.Helper()
	most, covered := ownedTokens, false
	for i, v := range w.samples {
		around := !v.from.After(r.began) && i+1 < len(w.samples) && !w.samples[i+1].to.Before(r.began)
		if around {
			most, covered = max(most, ownedTokens+max(v.lent, w.samples[i+1].lent)), true
		}
	}
	if !covered {
		return
	}
	var have int64
	for file, o := range w.runs {
		if !ghosts[file] && o.during(r.began) {
			have += o.tokens
		}
	}
	if have > most {
		w.t.Errorf("when %s began at %s, jobs had %d tokens, of %d", r.job, clock(r.began), have, most)
	}
}

const ownedTokens int64 = 2

// machines answers the journal of the provider of hosts.
func (s *slurmFarm) machines(tb testing.TB) (lines []machineChange) {
	tb.Helper()
	files, _ := filepath.Glob(filepath.Join(s.hosts, "*.log"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var c machineChange
			if err := json.Unmarshal(line, &c); err == nil {
				lines = append(lines, c)
			}
		}
	}
	return lines
}

// machineChange is one line of it.
type machineChange struct {
	At       int64  `json:"at_ms"`
	Request  string `json:"request"`
	Instance string `json:"instance"`
	Change   string `json:"change"`
	Jobs     int64  `json:"jobs"`
}

// checkMachines checks that each machine that was made is gone, and that none was given back under a job.
func (s *slurmFarm) checkMachines() {
	s.t.Helper()
	open := map[string]string{}
	counts := map[string]int{}
	for _, c := range s.machines(s.t) {
		counts[c.Change]++
		switch c.Change {
		case "granted":
			open[c.Request] = c.Instance
		case "returned", "crashed", "reclaimed", "cancelled":
			delete(open, c.Request)
		}
		if c.Change == "returned" && c.Jobs > 0 {
			s.t.Errorf("%s was given back with %d jobs on it", c.Request, c.Jobs)
		}
	}
	for request, instance := range open {
		s.t.Errorf("the provider still has %s (%s)", request, instance)
	}
	s.t.Logf("machines: %v", counts)
	for pid, p := range kernel.All() {
		if strings.Contains(kernel.Environment(pid), "SLURM_CONF="+s.hosts+"/") {
			s.t.Errorf("process %d (%s) of a host that was made is left", pid, p.Command)
		}
	}
}

package slurm

import (
	"context"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/slurm/slurmtest"
)

// patience is how long a test waits for what must come; it says nothing of how fast it should.
const patience = 90 * time.Second

// real is a Slurm of its own for one test.
type real struct {
	*slurmtest.Cluster
	t        *testing.T
	commands Commands
}

// startSlurm starts a cluster that goes with the test. The test runs beside others, and is skipped where Slurm is not
// installed.
func startSlurm(t *testing.T, o slurmtest.Options) *real {
	t.Helper()
	t.Parallel()
	c := slurmtest.New(t, o)
	return &real{c, t, Commands{Conf: c.Conf(), Limit: 20 * time.Second}}
}

// oneNode is a cluster of one node and two licences.
var oneNode = slurmtest.Options{Nodes: 1, Licences: map[string]int64{"foo": 10, "bar": 4}}

func (r *real) run(program string, args ...string) (string, error) {
	out, err := r.commands.Run(context.Background(), program, args...)
	return string(out), err
}

func (r *real) try(args ...string) (string, error) { return r.run("scontrol", args...) }

// scontrol runs one that must be carried out.
func (r *real) scontrol(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// submit submits a job that sleeps for long, and answers its id.
func (r *real) submit(args ...string) string {
	r.t.Helper()
	out, err := r.run("sbatch", append(append([]string{"--parsable", "-o", "/dev/null", "-D", "/"}, args...), "--wrap", "sleep 900")...)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// job answers the state of a job and its reason.
func (r *real) job(id string) string {
	out, _ := r.run("squeue", "-h", "-t", "all", "-j", id, "-o", "%T %r")
	return strings.TrimSpace(out)
}

func (r *real) node(name string) (Node, bool) {
	r.t.Helper()
	all, err := r.commands.Nodes(context.Background())
	if err != nil {
		return Node{}, false
	}
	for _, n := range all {
		if n.Name == name {
			return n, true
		}
	}
	return Node{}, false
}

// until waits until something is so.
func (r *real) until(what string, is func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			r.t.Fatalf("not so in %s: %s", patience, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (r *real) ready(name string) {
	r.t.Helper()
	r.until(name+" takes jobs", func() bool {
		n, there := r.node(name)
		return there && asHost(n).State == "ready"
	})
}

// backend makes the backend of this Slurm, which believes what it reads at once.
func (r *real) backend(change func(*Options)) *Backend {
	o := Options{Commands: r.commands, Licences: map[string]string{"vcs": "foo", "sim": "bar"}, Grace: cluster.Millisecond}
	if change != nil {
		change(&o)
	}
	return New(o)
}

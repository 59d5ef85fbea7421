//go:build e2e

package dev

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/slurm/slurmtest"
	"xce.internal/elastic/workflows"
)

//go:embed testdata/slurm.yaml
var slurmCluster string

// slurmFarm is a cluster that a real Slurm schedules.
type slurmFarm struct {
	*farm
	slurm *slurmtest.Cluster
	// hosts is the folder of the provider of hosts.
	hosts string
	t     testing.TB
}

// startOnSlurm starts Slurm with one host of 4 cpus and a ceiling of 12 vcs, and a cluster on it.
// The lines are further ones of slurm.conf.
func startOnSlurm(t testing.TB, lines ...string) *slurmFarm {
	t.Helper()
	slurmtest.Need(t)
	s := &slurmFarm{t: t}
	s.slurm = slurmtest.New(t, slurmtest.Options{
		Nodes: 1, Licences: map[string]int64{"vcs": 12},
		Partitions: []string{"main Nodes=ALL Default=YES"}, Lines: lines,
	})
	var err error
	if s.hosts, err = os.MkdirTemp("", "xh"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.hosts) })
	s.operate("init", "--template", "big=8:8000", "--capacity", "big=4", "--latency", "200ms")
	t.Cleanup(func() { s.operate("stop") })
	s.farm = startFarm(t, example{
		Cluster: slurmCluster, Units: 12, Hold: 1, Elsewhere: true,
		Values: map[string]string{"SlurmConf": s.slurm.Conf(), "SlurmHost": filepath.Join(programs(t), "slurmhost"), "SlurmHosts": s.hosts},
	})
	t.Cleanup(s.printSlurm)
	eventually(t, time.Minute, func() error {
		st, err := s.controller.Status(t.Context())
		if err == nil && (st.Backend == nil || st.Backend.Read == 0 || st.Backend.Unsettled != nil) {
			err = fmt.Errorf("Slurm is not read and settled yet: %+v", st.Backend)
		}
		return err
	})
	return s
}

// printSlurm prints how Slurm stands, for a test that failed.
func (s *slurmFarm) printSlurm() {
	if !s.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, command := range [][]string{
		{"squeue", "-t", "all", "-o", "%i %j %T %r %N %S %e"}, {"scontrol", "-F", "-o", "show", "node"}, {"scontrol", "show", "licenses"},
	} {
		out, err := s.slurm.Run(ctx, command[0], command[1:]...)
		s.t.Logf("%v: %v\n%s", command, err, out)
	}
	for _, log := range []string{filepath.Join(s.slurm.Folder, "log", "slurmctld.log"), s.path("log/controller.log")} {
		data, _ := os.ReadFile(log)
		s.t.Logf("%s:\n%s", filepath.Base(log), data[max(0, len(data)-30000):])
	}
}

// operate runs an operator's verb of the provider of hosts.
func (s *slurmFarm) operate(verb string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(programs(s.t), "slurmhost"), append([]string{verb, "--folder", s.hosts}, args...)...)
	cmd.Env = append(os.Environ(), "XCE_SLURMHOST_CONF="+s.slurm.Conf(), "XCE_SLURMHOST_FOLDER="+s.hosts)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("slurmhost %s: %v: %s", verb, err, out)
	}
}

// sbatch submits a job and answers its id.
func (s *slurmFarm) sbatch(command string, options ...string) string {
	s.t.Helper()
	id, err := s.slurm.Submit(s.t.Context(), command, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// becomes waits until a job is in one of the states.
func (s *slurmFarm) becomes(id string, within time.Duration, states ...string) {
	s.t.Helper()
	eventually(s.t, within, func() error {
		if state := s.slurm.JobState(s.t.Context(), id); !slices.Contains(states, state) {
			return fmt.Errorf("job %s is %s (%s), not %v", id, state, s.slurm.JobField(s.t.Context(), id, "Reason"), states)
		}
		return nil
	})
}

// licence answers how Slurm, which must answer, counts vcs: its total, what is used, and what is reserved.
func (s *slurmFarm) licence() (total, used, reserved int64) {
	s.t.Helper()
	total, used, reserved, err := s.counts(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return total, used, reserved
}

// counts answers how Slurm counts vcs, where it answers.
func (s *slurmFarm) counts(ctx context.Context) (total, used, reserved int64, err error) {
	out, err := s.slurm.Run(ctx, "scontrol", "-o", "show", "licenses")
	if err != nil {
		return 0, 0, 0, fmt.Errorf("%w: %s", err, out)
	}
	for line := range strings.Lines(out) {
		if slurmtest.Field(line, "LicenseName") != resource {
			continue
		}
		for name, n := range map[string]*int64{"Total": &total, "Used": &used, "Reserved": &reserved} {
			value, fault := strconv.ParseInt(slurmtest.Field(line, name), 10, 64)
			*n, err = value, errors.Join(err, fault)
		}
		return total, used, reserved, err
	}
	return 0, 0, 0, fmt.Errorf("Slurm has no %s: %s", resource, out)
}

// atRest waits until all tokens are back with their lender and all hosts with their provider, and then
// demands that Slurm, the books, the pool, the workflows and the machines agree.
func (s *slurmFarm) atRest(within time.Duration) {
	s.t.Helper()
	eventually(s.t, within, func() error {
		s.hasten()
		if err := s.settled(s.t.Context()); err != nil {
			return err
		}
		hosts, err := s.controller.ElasticHosts(s.t.Context(), false)
		if err == nil && len(hosts) > 0 {
			err = fmt.Errorf("%d hosts are open: %s is %s: %s", len(hosts), hosts[0].ID, hosts[0].State, hosts[0].Why)
		}
		return err
	})
	eventually(s.t, time.Minute, s.slurmAtRest)
	pool := s.journal(s.t).accounts(s.t)
	for id, a := range pool {
		if a.granted != a.returned {
			s.t.Errorf("pool: of %s %d were granted and %d returned", id, a.granted, a.returned)
		}
	}
	loans, err := s.controller.Loans(s.t.Context(), true)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range loans {
		if l.State == cluster.LoanReturned && (l.Granted() != pool[l.ID].granted || l.Returned != l.Granted()) {
			s.t.Errorf("ledger: %s granted %d and returned %d, the pool granted %d", l.ID, l.Granted(), l.Returned, pool[l.ID].granted)
		}
	}
	s.checkStories(s.t, workflows.LoanName)
	s.checkStories(s.t, workflows.HostName)
	s.checkMachines()
}

// slurmAtRest tells whether Slurm has no more than the cluster owns, and nobody at work.
func (s *slurmFarm) slurmAtRest() error {
	if total, used, reserved := s.licence(); total != 12 || used != 0 || reserved != 10 {
		return fmt.Errorf("Slurm counts %d vcs, %d used and %d reserved; want 12, 0 and 10", total, used, reserved)
	}
	out, err := s.slurm.Run(s.t.Context(), "sinfo", "-h", "-N", "-o", "%N")
	if names := strings.Fields(out); err != nil || !slices.Equal(names, []string{"n1"}) {
		return fmt.Errorf("Slurm has the hosts %v, %v; want n1 alone", names, err)
	}
	out, err = s.slurm.Run(s.t.Context(), "squeue", "-h")
	if err != nil || out != "" {
		return fmt.Errorf("Slurm has jobs: %s %w", out, err)
	}
	return nil
}

// hasten does what an administrator does after slurmds have failed: jobs that Slurm has put off
// for two minutes, or holds since they could not be launched, may start, and so may those on n1 that Slurm has drained for it.
func (s *slurmFarm) hasten() {
	out, _ := s.slurm.Run(s.t.Context(), "squeue", "-h", "-t", "PD", "-o", "%A %r")
	for line := range strings.Lines(out) {
		switch job, reason, _ := strings.Cut(strings.TrimSpace(line), " "); reason {
		case "BeginTime":
			_, _ = s.slurm.Run(s.t.Context(), "scontrol", "update", "jobid="+job, "starttime=now")
		case "launch failed requeued held":
			_, _ = s.slurm.Run(s.t.Context(), "scontrol", "release", job)
		}
	}
	if slices.Contains(s.slurm.NodeState(s.t.Context(), "n1"), "DRAIN") {
		_, _ = s.slurm.Run(s.t.Context(), "scontrol", "update", "nodename=n1", "state=undrain")
	}
}

func TestSlurmBorrowsTokensForWaitingJobsAndReturnsThemIdle(t *testing.T) {
	t.Parallel()
	s := startOnSlurm(t)
	owned := s.sbatch("sleep 1", "-L", "vcs:2")
	s.becomes(owned, 20*time.Second, "RUNNING", "COMPLETED")
	began := time.Now()
	job := s.sbatch("sleep 3", "-L", "vcs:6")
	s.becomes(job, time.Minute, "RUNNING")
	t.Logf("a job that needs 4 borrowed tokens runs %s after it was submitted", time.Since(began).Round(10*time.Millisecond))
	if _, used, reserved := s.licence(); used != 6 || reserved > 6 {
		t.Errorf("used are %d and reserved %d, want 6 and at most 6", used, reserved)
	}
	s.becomes(job, time.Minute, "COMPLETED")
	s.atRest(2 * time.Minute)
}

func TestSlurmGetsHostsThatDrainWithAJobOnThem(t *testing.T) {
	t.Parallel()
	s := startOnSlurm(t)
	began := time.Now()
	job := s.sbatch("sleep 20", "-c", "8", "--mem=4000")
	s.becomes(job, 4*time.Minute, "RUNNING") // Slurm may put it off for two minutes

	t.Logf("a job that needs a host to be made runs %s after it was submitted", time.Since(began).Round(10*time.Millisecond))
	host := s.slurm.JobField(t.Context(), job, "NodeList")
	row := s.elasticHost(host)
	s.cli("host", "drain", row.ID, "--why", "to be seen")
	eventually(t, 30*time.Second, func() error {
		if states := s.slurm.NodeState(t.Context(), host); !slices.Contains(states, "DRAIN") {
			return fmt.Errorf("%s is %v", host, states)
		}
		return nil
	})
	later := s.sbatch("sleep 1", "-c", "8", "--mem=4000")
	s.becomes(later, 4*time.Minute, "RUNNING", "COMPLETED")
	if second := s.slurm.JobField(t.Context(), later, "NodeList"); second == host {
		t.Errorf("a later job runs on the drained host %s", host)
	}
	if state := s.slurm.JobState(t.Context(), job); state != "RUNNING" && state != "COMPLETED" {
		t.Errorf("the job on the draining host is %s", state)
	}
	s.becomes(job, time.Minute, "COMPLETED")
	s.atRest(2 * time.Minute)
}

func (s *slurmFarm) elasticHost(name string) cluster.ElasticHost {
	s.t.Helper()
	rows, err := s.controller.ElasticHosts(s.t.Context(), false)
	if err != nil {
		s.t.Fatal(err)
	}
	i := slices.IndexFunc(rows, func(h cluster.ElasticHost) bool { return h.Name == name })
	if i < 0 {
		s.t.Fatalf("no host %s was asked for: %+v", name, rows)
	}
	return rows[i]
}

// cli runs our own program as the admin.
func (s *slurmFarm) cli(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Program, append(args, "--config", s.path(configName))...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

package slurm

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
)

// patience is how long a test waits for what must come; it says nothing of how fast it should.
const patience = 90 * time.Second

// real is a Slurm of its own for one test.
type real struct {
	t        *testing.T
	dir      string
	commands Commands
	daemons  map[string]*exec.Cmd
}

// startSlurm starts munged and slurmctld with the lines of configuration, in which %PORT% is a free port
// each time and %DIR% is where everything is. The test runs beside others, and is skipped where Slurm is not installed.
func startSlurm(t *testing.T, lines string) *real {
	t.Helper()
	t.Parallel()
	for _, program := range []string{"munged", "slurmctld", "slurmd", "scontrol", "sbatch"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("Slurm is not installed: %v", err)
		}
	}
	dir, err := os.MkdirTemp("/tmp", "xs") // short, since sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	short, _, _ := strings.Cut(host, ".")
	r := &real{t: t, dir: dir, daemons: map[string]*exec.Cmd{}, commands: Commands{Conf: dir + "/slurm.conf", Limit: 20 * time.Second}}
	t.Cleanup(r.stop)
	for _, d := range []string{"", "/state", "/munge"} {
		if err := os.MkdirAll(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.write("munge/key", strings.Repeat("a key for tests alone; ", 8), 0o600)
	conf := strings.NewReplacer("%HOST%", short, "%USER%", me.Username).Replace(realConf) + lines + "\n"
	conf = strings.ReplaceAll(conf, "%DIR%", dir)
	for strings.Contains(conf, "%PORT%") {
		conf = strings.Replace(conf, "%PORT%", fmt.Sprint(freePort(t)), 1)
	}
	r.write("slurm.conf", conf, 0o644)
	r.write("gres.conf", "", 0o644)
	m := dir + "/munge/"
	r.start("munged", "munged", "--foreground", "--force", "--socket="+m+"s", "--key-file="+m+"key", "--log-file="+m+"log", "--pid-file="+m+"pid", "--seed-file="+m+"seed")
	r.until("munged answers", func() bool { return exec.Command("munge", "-n", "-S", m+"s").Run() == nil })
	r.controller()
	return r
}

const realConf = `ClusterName=xs
SlurmctldHost=%HOST%(127.0.0.1)
SlurmUser=%USER%
SlurmdUser=%USER%
SlurmctldPort=%PORT%
SlurmdPort=%PORT%
DebugFlags=NO_CONF_HASH
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=%DIR%/munge/s
CommunicationParameters=NoInAddrAny
StateSaveLocation=%DIR%/state
SlurmctldPidFile=%DIR%/ctld.pid
SlurmctldLogFile=%DIR%/ctld.log
SlurmdSpoolDir=%DIR%/spool-%n
SlurmdPidFile=%DIR%/slurmd-%n.pid
SlurmdLogFile=%DIR%/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
RebootProgram=/bin/true
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
MessageTimeout=10
SlurmdTimeout=20
KillWait=2
ReturnToService=2
MaxNodeCount=32
TreeWidth=65533
PrivateData=cloud
GresTypes=gpu
NodeSet=dyn Feature=dyn
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
NodeName=DEFAULT CPUs=4 RealMemory=4000 State=UNKNOWN
`

func (r *real) write(name, text string, mode os.FileMode) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts a daemon in a session of its own.
func (r *real) start(name, program string, args ...string) {
	r.t.Helper()
	out, err := os.Create(filepath.Join(r.dir, name+".out"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "SLURM_CONF="+r.commands.Conf)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.daemons[name] = cmd
}

// end ends a daemon and waits until it is gone.
func (r *real) end(name string, signal syscall.Signal) {
	cmd := r.daemons[name]
	if cmd == nil {
		return
	}
	delete(r.daemons, name)
	_ = cmd.Process.Signal(signal)
	kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	kill.Stop()
}

func (r *real) controller() {
	r.t.Helper()
	r.start("slurmctld", "slurmctld", "-D", "-f", r.commands.Conf)
	r.until("slurmctld answers", func() bool { out, err := r.try("ping"); return err == nil && strings.Contains(out, "is UP") })
}

// slurmd starts the slurmd of a node that the configuration names.
func (r *real) slurmd(name string, more ...string) {
	r.t.Helper()
	r.start(name, "slurmd", append([]string{"-D", "-f", r.commands.Conf, "-N", name, "-s"}, more...)...)
}

// dynamic starts the slurmd of a node that was made at run time, at an address of its own, at
// which slurmctld looks for it: a host name of its own makes it listen there.
func (r *real) dynamic(name, address, line string) {
	r.t.Helper()
	conf, err := os.ReadFile(r.commands.Conf)
	if err != nil {
		r.t.Fatal(err)
	}
	own := "slurm-" + name + ".conf"
	r.write(own, fmt.Sprintf("%s\nNodeName=%s %s NodeAddr=%s NodeHostname=%s State=CLOUD\n", conf, name, line, address, name), 0o644)
	r.start(name, "unshare", "--uts", "sh", "-c", `hostname "$1"; shift; exec "$@"`, "-", address,
		"slurmd", "-D", "-f", filepath.Join(r.dir, own), "-N", name, "-s", "-b")
}

func (r *real) stop() {
	_, _ = r.run("scancel", "--full", "--signal=KILL", "--user="+os.Getenv("USER"))
	r.end("slurmctld", syscall.SIGTERM)
	for name := range r.daemons {
		if name != "munged" {
			r.end(name, syscall.SIGTERM)
		}
	}
	r.end("munged", syscall.SIGTERM)
	r.endSteps()
	if r.t.Failed() {
		log, _ := os.ReadFile(r.dir + "/ctld.log")
		r.t.Logf("%s", log[max(0, len(log)-3000):])
	}
	_ = os.RemoveAll(r.dir)
}

// endSteps ends the steps of jobs, which are daemons that Slurm leaves behind: their environment names our folder.
func (r *real) endSteps() {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		environ, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(environ), "SLURM_CONF="+r.dir+"/") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/", &pid); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

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

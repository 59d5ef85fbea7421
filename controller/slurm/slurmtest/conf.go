package slurmtest

import (
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
)

// configure writes slurm.conf and the key of munge.
func (c *Cluster) configure() error {
	c.ports = map[string]int{}
	names := c.configured()
	free, err := freePorts(3 + len(names))
	if err != nil {
		return err
	}
	c.port, c.database, c.common = free[0], free[1], free[2]
	for i, name := range names {
		c.ports[name] = free[3+i]
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	key := make([]byte, 128)
	_, _ = rand.Read(key) // it never fails
	files := []struct {
		path, text string
		mode       os.FileMode
	}{
		{c.Conf(), c.conf(host), 0o644},
		{c.path("etc", "resume"), c.power("resume"), 0o755},
		{c.path("etc", "suspend"), c.power("suspend"), 0o755},
		{c.path("munge", "key"), string(key), 0o600},
	}
	for _, f := range files {
		_ = os.Remove(f.path) // of a cluster before
		if err := os.WriteFile(f.path, []byte(f.text), f.mode); err != nil {
			return err
		}
	}
	return nil
}

// Set puts a line into slurm.conf in place of those with its key. It is read by scontrol reconfigure, or at the next start.
func (c *Cluster) Set(line string) error {
	text, err := os.ReadFile(c.Conf())
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(old string) bool { return keyOf(old) == keyOf(line) })
	return os.WriteFile(c.Conf(), []byte(line+"\n"+strings.Join(lines, "\n")), 0o644)
}

// keyOf answers of which key a line is; case does not count.
func keyOf(line string) string {
	key, _, _ := strings.Cut(line, "=")
	return strings.ToLower(strings.TrimSpace(key))
}

// configured answers the names of the nodes in slurm.conf.
func (c *Cluster) configured() (names []string) {
	for _, kind := range []struct {
		letter string
		count  int
	}{{"n", c.Nodes}, {"f", c.Future}, {"c", c.Cloud}} {
		for i := range kind.count {
			names = append(names, fmt.Sprint(kind.letter, i+1))
		}
	}
	return names
}

// conf is slurm.conf, without cgroups, real hardware and mail, so tuned that tests see what happens within a
// second.
func (c *Cluster) conf(host string) string {
	folder := c.Folder
	lines := []string{
		"ClusterName=test",
		fmt.Sprintf("SlurmctldHost=%s(127.0.0.1)", host),
		"SlurmUser=" + c.user, "SlurmdUser=" + c.user,
		fmt.Sprintf("SlurmctldPort=%d", c.port), fmt.Sprintf("SlurmdPort=%d", c.common),
		// A dynamic node has a slurm.conf of its own, and listens at its own address alone.
		"DebugFlags=NO_CONF_HASH", "CommunicationParameters=NoInAddrAny",
		"AuthType=auth/munge", "CredType=cred/munge", "AuthInfo=socket=" + c.MungeSocket(),
		"StateSaveLocation=" + folder + "/ctld",
		"SlurmctldPidFile=" + folder + "/run/slurmctld.pid", "SlurmctldLogFile=" + folder + "/log/slurmctld.log", "SlurmctldDebug=info",
		"SlurmdSpoolDir=" + folder + "/node/%n", "SlurmdPidFile=" + folder + "/run/slurmd-%n.pid", "SlurmdLogFile=" + folder + "/log/slurmd-%n.log", "SlurmdDebug=info",
		"ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SwitchType=switch/none", "MpiDefault=none", "MailProg=/bin/true",
		"JobAcctGatherType=jobacct_gather/none", "SlurmdParameters=config_overrides", "PropagateResourceLimits=NONE",
		"SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU_Memory", "DefMemPerCPU=100",
		"SchedulerType=sched/backfill",
		"SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,bf_resolution=1,batch_sched_delay=0,max_array_tasks=20000",
		"PriorityType=priority/multifactor", "PriorityWeightAge=1000",
		"MaxArraySize=20001", "MaxJobCount=50000", "MinJobAge=300",
		"MessageTimeout=10", "SlurmctldTimeout=30", "SlurmdTimeout=20", "InactiveLimit=0", "KillWait=2", "ReturnToService=2",
		"RebootProgram=/bin/true",
		fmt.Sprintf("MaxNodeCount=%d", c.MaxNodes), "TreeWidth=65533", "PrivateData=cloud",
		"ResumeProgram=" + folder + "/etc/resume", "SuspendProgram=" + folder + "/etc/suspend",
		// An infinite SuspendTime would turn power saving off, and ResumeProgram would never be called.
		"ResumeTimeout=30", "SuspendTimeout=5", "SuspendTime=86400", "ResumeRate=0", "SuspendRate=0",
		"SlurmctldParameters=power_save_interval=1,power_save_min_interval=0",
	}
	if c.Nodes > 0 {
		lines = append(lines, fmt.Sprintf("SuspendExcNodes=n[1-%d]", c.Nodes))
	}
	if len(c.Licences) > 0 {
		lines = append(lines, "Licenses="+c.licences())
	}
	lines = append(lines, c.accounting()...)
	lines = c.replace(lines)
	lines = append(lines, c.nodes()...)
	for _, partition := range c.Partitions {
		lines = append(lines, "PartitionName="+partition)
	}
	return strings.Join(lines, "\n") + "\n"
}

func (c *Cluster) licences() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Licences)) {
		all = append(all, fmt.Sprintf("%s:%d", name, c.Licences[name]))
	}
	return strings.Join(all, ",")
}

// replace puts the caller's lines in the place of ours.
func (c *Cluster) replace(lines []string) []string {
	for _, theirs := range c.Lines {
		lines = slices.DeleteFunc(lines, func(ours string) bool { return keyOf(ours) == keyOf(theirs) })
	}
	return append(lines, c.Lines...)
}

func (c *Cluster) nodes() []string {
	lines := []string{}
	for _, name := range c.configured() {
		kind := map[byte]string{'n': "Feature=static", 'f': "Feature=future State=FUTURE", 'c': "Feature=cloud State=CLOUD"}[name[0]]
		lines = append(lines, fmt.Sprintf("NodeName=%s CPUs=%d RealMemory=%d NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d %s",
			name, c.CPUs, c.MemoryMB, c.ports[name], kind))
	}
	return lines
}

// power is the program by which slurmctld powers nodes up or down. Powering down made
// Slurm forget the address. It is called with next to nothing in its environment.
func (c *Cluster) power(verb string) string {
	resume := `case $n in c*) ;; *) continue ;; esac # others are brought up by whoever made them
  scontrol update nodename=$n nodeaddr=127.0.0.1 nodehostname=localhost
  setsid slurmd -D -f "$SLURM_CONF" -N $n -s -b </dev/null >>` + c.path("log") + `/slurmd-$n.out 2>&1 &`
	suspend := `for p in $(pgrep -x slurmd); do
    tr '\0' ' ' </proc/$p/cmdline | grep -q -- "-f $SLURM_CONF -N $n " && kill $p
  done`
	do := map[string]string{"resume": resume, "suspend": suspend}[verb]
	return fmt.Sprintf("#!/bin/sh\nexport %s\necho \"%s $*\" >>%s\nfor n in $(scontrol show hostnames \"$1\"); do\n  %s\ndone\n",
		strings.Join(c.environment(), " "), verb, c.path("log", "power"), do)
}

// freePorts answers ports of the loopback interface that nothing uses, below those
// that the kernel gives to outgoing connections: a daemon may come back to its port.
func freePorts(count int) ([]int, error) {
	const lowest, highest, tries = 10000, 32000, 50
	var ports []int
	for range tries * count {
		if len(ports) == count {
			return ports, nil
		}
		port := lowest + mathrand.IntN(highest-lowest)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer listener.Close() // all at the end, so that each is another
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("there are no %d free ports from %d to %d", count, lowest, highest)
}

package slurmtest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"xce.internal/elastic/providers/scripts/process"
)

// guard runs until its standard input ends, which it does when the process that
// started it is gone, and then ends whatever belongs to the cluster: what was started
// with its SLURM_CONF, and what a step has started. It does so until it finds nothing,
// since what it ends may have started something.
const guard = `folder=$1 own=$2
cat >/dev/null
below() { for c in $(cat /proc/$1/task/*/children 2>/dev/null); do echo $c; below $c; done; }
for round in 1 2 3 4 5 6 7 8 9 10; do
  found=
  for p in /proc/[0-9]*; do
    pid=${p#/proc/}
    [ $pid = $$ ] && continue
    grep -qz "^SLURM_CONF=$folder/" $p/environ 2>/dev/null && found="$found $pid $(below $pid)"
  done
  [ -z "$found" ] && break
  kill -9 $found 2>/dev/null
  sleep 0.1
done
[ "$own" = yes ] && rm -rf "$folder"
exit 0`

func (c *Cluster) startGuard() error {
	own := "no"
	if c.own {
		own = "yes"
	}
	cmd := exec.Command("/bin/sh", "-c", guard, "guard", c.Folder, own)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	leave, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	left := make(chan struct{})
	c.leave, c.left = leave, left
	go func() {
		_ = cmd.Wait()
		close(left)
	}()
	return nil
}

// Sweep kills every process of a cluster that was in a folder. It leaves the files.
func Sweep(folder string) {
	for range 50 {
		all := belonging(folder)
		if len(all) == 0 {
			return
		}
		process.Signal(syscall.SIGKILL, slices.Collect(maps.Keys(all))...)
		time.Sleep(pause)
	}
}

// belonging answers the processes of the cluster in a folder: those that were started
// with its SLURM_CONF, and what those have started.
func belonging(folder string) map[int]process.Stat {
	all := process.All()
	ours := map[int]process.Stat{}
	for pid, s := range all {
		if pid != os.Getpid() && strings.Contains(process.Environment(pid), "\x00SLURM_CONF="+folder+string(filepath.Separator)) {
			ours[pid] = s
		}
	}
	for _, pid := range process.Below(all, slices.Collect(maps.Keys(ours))...) {
		ours[pid] = all[pid]
	}
	return ours
}

// named answers the cluster's processes of a program.
func (c *Cluster) named(program string) []int {
	var pids []int
	for pid, s := range belonging(c.Folder) {
		if s.Command == program {
			pids = append(pids, pid)
		}
	}
	return pids
}

//go:build e2e

package slurmtest

import (
	"context"
	"strings"
	"testing"
)

// endToEnd has the slow tests run too.
const endToEnd = true

// TestAccounting: with slurmdbd, licences are counted there too, and its word is not Slurm's.
func TestAccounting(t *testing.T) {
	Need(t)
	if missing, ok := Accounting(); !ok {
		t.Skipf("there is no %s here: %s is skipped; `apt-get install slurmdbd mariadb-server` brings it", missing, t.Name())
	}
	c := trapped{New(t, Options{Nodes: 1, Accounting: true}), t}
	c.does("sacctmgr", "-i", "add", "resource", "name=vcs", "server=pool", "servertype=flexlm", "type=license", "count=10", "cluster=test", "percentallowed=100")
	c.counts("vcs@pool", "10 0 10 0")
	c.fails("Invalid license specification", "sbatch", "-L", "vcs:3", "--wrap=true")
	id := c.job("sleep 600", "-L", "vcs@pool:3")
	c.becomes(id, "RUNNING")
	c.does("sacctmgr", "-i", "modify", "resource", "where", "name=vcs", "server=pool", "set", "count=14")
	c.counts("vcs@pool", "14 3 11 0")
	c.does("sacctmgr", "-i", "modify", "resource", "where", "name=vcs", "server=pool", "set", "count=-1") // and nobody complains
	c.until("the total is nonsense", func() bool {
		total, _, _, _ := c.licence("vcs@pool")
		return len(total) > 6
	})
	c.fails("Nothing modified", "sacctmgr", "-i", "modify", "resource", "where", "name=nosuch", "server=pool", "set", "count=1")
	c.StopAccounting()
	c.fails("Connection refused", "sacctmgr", "-n", "show", "resource")
	if out, err := c.Run(context.Background(), "squeue", "-h"); err != nil || !strings.Contains(out, id) {
		t.Errorf("without slurmdbd the queue is %q, %v", out, err)
	}
}

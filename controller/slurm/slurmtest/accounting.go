package slurmtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"xce.internal/elastic/providers/scripts/slurmd/dynamic"
)

// accounting are the lines of slurm.conf about it.
func (c *Cluster) accounting() []string {
	if !c.Accounting {
		return []string{"AccountingStorageType=accounting_storage/none"}
	}
	return []string{
		"AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1",
		fmt.Sprintf("AccountingStoragePort=%d", c.database),
		"AccountingStoragePass=" + c.MungeSocket(), // sacctmgr reads no AuthInfo
		"AccountingStoreFlags=job_comment",
	}
}

// startDatabase starts MariaDB and slurmdbd, and makes the cluster known to them.
func (c *Cluster) startDatabase(ctx context.Context) error {
	socket := c.path("run", "db")
	if err := c.makeDatabase(ctx); err != nil {
		return err
	}
	ended, err := c.spawn("mariadbd", nil, "mariadbd", "--no-defaults", "--user="+c.user, "--datadir="+c.path("db"), "--socket="+socket,
		"--skip-networking", "--pid-file="+c.path("run", "mariadbd.pid"), "--log-error="+c.path("log", "mariadbd.log"), "--skip-log-bin",
		"--innodb-buffer-pool-size=64M", "--innodb-log-file-size=8M", "--innodb-lock-wait-timeout=900",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--performance-schema=OFF")
	if err != nil {
		return err
	}
	err = c.await(ctx, "mariadbd", ended, func() bool {
		_, err := c.Run(ctx, "mariadb-admin", "--no-defaults", "--socket="+socket, "-uroot", "ping")
		return err == nil
	})
	if err != nil {
		return err
	}
	// slurmdbd finds its settings beside SLURM_CONF, and the database's socket by MYSQL_UNIX_PORT.
	ended, err = c.spawn("slurmdbd", []string{"MYSQL_UNIX_PORT=" + socket}, "slurmdbd", "-D")
	if err != nil {
		return err
	}
	err = c.await(ctx, "slurmdbd", ended, func() bool {
		_, err := c.Run(ctx, "sacctmgr", "-n", "-P", "show", "cluster")
		return err == nil
	})
	if err != nil {
		return err
	}
	out, err := c.Run(ctx, "sacctmgr", "-n", "-P", "show", "cluster", "format=cluster")
	if err != nil || strings.TrimSpace(out) == "test" {
		return err
	}
	_, err = c.Run(ctx, "sacctmgr", "-i", "-Q", "add", "cluster", "test")
	return err
}

// makeDatabase makes what MariaDB and slurmdbd need, where it is not there yet.
func (c *Cluster) makeDatabase(ctx context.Context) error {
	conf := strings.Join([]string{
		"AuthType=auth/munge", "AuthInfo=socket=" + c.MungeSocket(), "DbdHost=localhost", "DbdAddr=127.0.0.1",
		fmt.Sprintf("DbdPort=%d", c.database), "SlurmUser=" + c.user, "PidFile=" + c.path("run", "slurmdbd.pid"),
		"LogFile=" + c.path("log", "slurmdbd.log"), "DebugLevel=info", "StorageType=accounting_storage/mysql",
		"StorageHost=localhost", "StorageUser=root", "StorageLoc=slurm_acct", "",
	}, "\n")
	if err := os.WriteFile(c.path("etc", "slurmdbd.conf"), []byte(conf), 0o600); err != nil {
		return err
	}
	if _, err := os.Stat(c.path("db", "mysql")); err == nil {
		return nil
	}
	program, err := dynamic.Find("mariadb-install-db")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "--no-defaults", "--user="+c.user, "--datadir="+c.path("db"), "--skip-test-db",
		"--auth-root-authentication-method=normal", "--innodb-log-file-size=8M")
	cmd.Env = c.environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	return nil
}

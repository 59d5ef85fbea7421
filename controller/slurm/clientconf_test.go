package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestClientConf(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, from+"/slurm.conf", "ClusterName=vcs # ours\n# MessageTimeout=1 is too short\nmessagetimeout = 10\nEpilog=/x MessageTimeout=20 Prolog=/y\n"+
		"include parts/nodes.conf\nNodeName=a \\\n Include=no\nInclude "+from+"/abs.conf\nInclude %c.conf\nInclude last.conf")
	write(t, from+"/parts/nodes.conf", "NodeName=n1\r\nInclude deep.conf\n")
	write(t, from+"/deep.conf", "NodeName=n2")
	write(t, from+"/abs.conf", "MessageTimeout=30\n")
	write(t, from+"/vcs.conf", "PartitionName=p\n")
	write(t, from+"/last.conf", "TreeWidth=1")
	write(t, from+"/slurm.key", "secret")
	write(t, from+"/notes.txt", "not Slurm's")
	copied := filepath.Join(to, "etc", "client.conf")
	for range 2 { // the second time over what is there
		if err := WriteClientConf(from+"/slurm.conf", copied, 1500*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(string(text), "\n")
	want := "ClusterName=vcs # ours\n# MessageTimeout=1 is too short\n\nEpilog=/x  Prolog=/y\nNodeName=n1\nNodeName=n2\nNodeName=a \\\n Include=no\n\nPartitionName=p\nTreeWidth=1\nMessageTimeout=2\n"
	if got != want {
		t.Errorf("the copy is\n%q, want\n%q", got, want)
	}
	if key, err := os.ReadFile(filepath.Join(to, "etc", "slurm.key")); string(key) != "secret" {
		t.Errorf("the key is not beside the copy: %v", err)
	}
	for _, name := range []string{"notes.txt", "slurm.conf"} {
		if _, err := os.Lstat(filepath.Join(to, "etc", name)); err == nil {
			t.Errorf("%s is beside the copy", name)
		}
	}
}

func TestClientConfIsRefused(t *testing.T) {
	from := t.TempDir()
	write(t, from+"/circle.conf", "Include circle.conf\n")
	write(t, from+"/lost.conf", "Include nowhere.conf\n")
	write(t, from+"/good.conf", "ClusterName=a\n")
	for name, c := range map[string]struct {
		from, to string
		timeout  time.Duration
		says     string
	}{
		"a circle":          {from + "/circle.conf", t.TempDir() + "/c.conf", 0, "remove the circle"},
		"a lost include":    {from + "/lost.conf", t.TempDir() + "/c.conf", 0, "nowhere.conf"},
		"no such file":      {from + "/none.conf", t.TempDir() + "/c.conf", 0, "none.conf"},
		"the same folder":   {from + "/good.conf", from + "/c.conf", 0, "same folder"},
		"a negative time":   {from + "/good.conf", t.TempDir() + "/c.conf", -time.Second, "at least 1s"},
		"a folder, no file": {from, t.TempDir() + "/c.conf", 0, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			err := WriteClientConf(c.from, c.to, c.timeout)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			if _, err := os.Stat(c.to); err == nil {
				t.Error("a copy was written")
			}
		})
	}
}

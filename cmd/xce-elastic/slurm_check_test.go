package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller/slurm"
)

// scontrol answers a script that tells what a real Slurm 22.05 told, with no reservation.
func scontrol(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../controller/slurm/testdata")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "config.txt")); err != nil {
		t.Fatal(err)
	}
	return "case \"$*\" in\n*config) sed \"s/^SlurmUser .*/SlurmUser = me($(id -u))/\" " + folder + "/config.txt;;\n*node) cat " + folder + "/nodes-22.05.txt;;\n*licenses) echo LicenseName=foo Total=10 Used=2 Free=8 Reserved=0 Remote=no;;\n" +
		"*reservation) echo No reservations in the system;;\n*partition) cat " + folder + "/partitions-22.05.txt;;\n*) exit 9;;\nesac\n"
}

func TestSlurmIsCheckedWithAndWithoutAConfiguration(t *testing.T) {
	flags := program(t, "scontrol", scontrol(t))
	if err := os.WriteFile(filepath.Join(flags[3], "squeue"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // there is no configuration here
	t.Setenv("XCE_CONFIG", "")
	prints(t, append([]string{"slurm", "check"}, flags...), `^Slurm 22.05.8 of cluster \w+, configured by .*slurm.conf\n\nVERDICT +OF +FOUND\nok +release +22.05.8\n`, `\nok +licence foo +total 10, used 2, kept back 0\n`, `\nadvice +accounting +there is no slurmdbd`)
	site := fileOf(t, "site.yaml", "cluster: {name: x}\nbackend: slurm\nslurm: {licences: [vcs=foo]}\nproviders: [{name: pool, script: pool}, {name: cloud, script: local}]\nresources:\n  - {name: vcs, owned: 10, elastic: {lenders: [pool], max_borrowed: 5, idle_time: 1m}}\n")
	args := append([]string{"slurm", "check", "-c", site}, flags...)
	refuses(t, args, "^1 of the things that are needed are missing; the lines marked MISSING say which")
	out, _, _ := typed(t, "", args...)
	for _, want := range []string{
		"\nMISSING  resource vcs  the total of licence foo is 10, not 15 (owned 10, and at most 5 borrowed); jobs that ask", "ok       hosts         16 nodes; made ones become dynamic nodes", "\n  Licenses=foo:15\n", "\nRUN\n  # keeps back at once",
		"\n  scontrol reconfigure && scontrol create reservation reservationname=xce-withheld.foo ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it prints\n%s\nwithout %q", out, want)
		}
	}
	if out, _, err := typed(t, "", append(args, "--json")...); err == nil || !strings.Contains(out, `"verdict": "MISSING"`) || !strings.Contains(out, `"line": "Licenses=foo:15"`) {
		t.Errorf("as JSON it prints %v\n%s", err, out)
	}
}

func TestASlurmThatDoesNotAnswerIsSaidToBeSo(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XCE_CONFIG", "")
	for _, command := range []string{"check", "import"} {
		refuses(t, append([]string{"slurm", command}, program(t, "scontrol", "echo slurm_load_ctl_conf error: Unable to contact slurm controller >&2; exit 1\n")...), "outcome unknown: .*Unable to contact slurm controller; see whether slurmctld and munge run")
		refuses(t, []string{"slurm", command, "--conf", "/nowhere"}, "^find Slurm's configuration: stat /nowhere")
	}
}

func TestSlurmIsAskedWithoutThePatienceOfItsDaemons(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XCE_CONFIG", "")
	t.Setenv("TMPDIR", t.TempDir())
	flags := program(t, "scontrol", "grep MessageTimeout $SLURM_CONF >&2; echo Unable to contact slurm controller >&2; exit 1\n")
	if err := os.WriteFile(flags[1], []byte("MessageTimeout=100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"check", "import"} {
		refuses(t, append([]string{"slurm", command}, flags...), "outcome unknown: MessageTimeout=2 Unable .*, and whether "+flags[1]+" is the cluster's")
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

func TestAnImportDoesNotReplaceAFile(t *testing.T) {
	flags, there := program(t, "scontrol", scontrol(t)), fileOf(t, "farm.yaml", "mine")
	refuses(t, append([]string{"slurm", "import", "--out", there}, flags...), "^--out: open .*farm.yaml: file exists; name one that is not there")
	fresh := filepath.Join(t.TempDir(), "farm.yaml")
	if _, said, err := typed(t, "", append([]string{"slurm", "import", "-o", fresh}, flags...)...); err != nil || !strings.HasPrefix(said, "16 nodes and 1 licences of cluster ") {
		t.Errorf("it says %q, %v", said, err)
	}
	prints(t, []string{"config", "check", "-c", fresh}, "is sound: 1 resources, 0 providers")
}

func TestAProviderThatLendsNothingMakesHosts(t *testing.T) {
	elastic := &cluster.Elastic{Lenders: []string{"pool"}, MaxBorrowed: 5}
	c := &config.Config{Resources: []cluster.SharedResource{{Name: "vcs", Owned: 2, Elastic: elastic}}, Providers: []config.Provider{{Name: "pool"}}}
	c.Slurm.Reservation, c.Slurm.Nodes, c.Slurm.Licences = "w", "dynamic", []string{"vcs=vcs@flex"}
	w := wantedOfSlurm(c)
	if w.Reservation != "w" || len(w.Kinds) != 0 || w.Resources[0] != (slurm.WantedResource{Name: "vcs", Licence: "vcs@flex", Owned: 2, MaxBorrowed: 5}) {
		t.Errorf("got %+v", w)
	}
	c.Providers = append(c.Providers, config.Provider{Name: "cloud"})
	c.Slurm.Templates = []config.SlurmTemplate{{Template: "a", Kind: "cloud"}, {Template: "b", Kind: "dynamic"}}
	if w := wantedOfSlurm(c); len(w.Kinds) != 2 || w.Kinds[0] != slurm.Dynamic || w.Kinds[1] != slurm.Cloud {
		t.Errorf("got %+v", w)
	}
}

package slurm

import (
	"slices"
	"strings"
	"testing"
)

// surveyed answers what a real Slurm 22.05 told: three static nodes, 13 that come and go, two licences.
func surveyed(t *testing.T) Survey {
	t.Helper()
	settings, err := parseSettings([]byte(recorded(t, "config.txt")))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := readAll("NodeName", recorded(t, "nodes-22.05.txt"), nodeOf)
	if err != nil {
		t.Fatal(err)
	}
	partitions, err := readAll("PartitionName", recorded(t, "partitions-22.05.txt"), partitionOf)
	if err != nil {
		t.Fatal(err)
	}
	settings.Keys["schedulerparameters"], settings.Keys["accountingstoragetype"] = "bf_interval=1", "accounting_storage/slurmdbd"
	settings.Keys["accountingstoragetres"] = "cpu,mem,energy,node,billing,fs/disk,vmem,pages"
	settings.Keys["maxnodecount"], settings.Keys["slurmuser"], settings.Keys["privatedata"] = "64", "slurm(64030)", "cloud"
	settings.Keys["suspendtime"], settings.Keys["suspendprogram"] = "86400 sec", "/etc/slurm/suspend.sh"
	settings.Keys["selecttype"], settings.Keys["schedulertype"] = "select/cons_tres", "sched/backfill"
	return Survey{
		Settings: settings, Conf: "/etc/slurm/slurm.conf", Nodes: nodes, Partitions: partitions,
		Programs: map[string]string{"scontrol": "/usr/bin/scontrol", "squeue": "/usr/bin/squeue", "sacctmgr": "/usr/bin/sacctmgr", "sacct": "/usr/bin/sacct"},
		Licences: map[string]Licence{"foo": {Name: "foo", Total: 10}, "sim": {Name: "sim", Total: 4}, "vcs@pool": {Name: "vcs@pool", Total: 8, Remote: true}},
		Me:       Me{Name: "slurm", UID: "64030"},
	}
}

func TestWhatSlurmLacksIsSaidWithTheLinesThatMendIt(t *testing.T) {
	foo := WantedResource{Name: "foo", Licence: "foo", Owned: 6, MaxBorrowed: 4}
	hosts := Wanted{Reservation: "xce-withheld", Kinds: []HostKind{Dynamic}, MostHosts: 20}
	tests := []struct {
		name   string
		change func(*Survey)
		want   Wanted
		found  []string // each the verdict, of what, and how the text begins
		lines  []string
	}{
		{"nothing", func(*Survey) {}, Wanted{}, []string{"ok licence foo total 10, used 0", "ok rights slurm may change", "ok hosts 16 nodes", "advice scheduler sched/backfill without bf_licenses"}, []string{
			"SchedulerParameters=bf_interval=1,bf_licenses", "AccountingStorageTRES=license/foo,license/sim,license/vcs@pool",
		}},
		{"all is well", func(s *Survey) {
			s.Settings.Keys["schedulerparameters"], s.Settings.Keys["accountingstoragetres"] = "bf_licenses", "cpu,license/foo"
		}, Wanted{Reservation: "xce-withheld", Resources: []WantedResource{foo}}, []string{
			"ok resource foo the total of licence foo is 10 (owned 6, and at most 4 borrowed)", "ok scheduler", "ok accounting slurmdbd, which accounts for licences too", "ok hosts 16 nodes; no provider makes more",
		}, nil},

		{"a total that is too small hides demand", nil, Wanted{Reservation: "w", Resources: []WantedResource{{"foo", "foo", 10, 20}}}, []string{
			"MISSING resource foo the total of licence foo is 10, not 30 (owned 10, and at most 20 borrowed); jobs that ask for more than 10 are refused as they are submitted",
		}, []string{"Licenses=foo:30,sim:4", "scontrol reconfigure && scontrol create reservation reservationname=w.foo starttime=now endtime=now+365days users=root flags=LICENSE_ONLY licenses=foo:20"}},
		{"a total that is raised while a reservation is there", func(s *Survey) {
			s.Reservations = []Reservation{{Name: "w.foo", Licences: map[string]int64{"foo": 4}}}
		}, Wanted{Reservation: "w", Resources: []WantedResource{{"foo", "foo", 10, 20}}}, []string{"ok reservation w.foo keeps back 4 of foo", "MISSING resource foo"}, []string{
			"scontrol reconfigure && scontrol update reservationname=w.foo licenses=foo:20",
		}},
		{"a total that is too large keeps jobs waiting", nil, Wanted{Reservation: "w", Resources: []WantedResource{{"sim", "sim", 2, 0}}}, []string{
			"advice resource sim the total of licence sim is 4, not 2 (owned 2); jobs that ask for more than that are taken, and wait for ever",
		}, []string{"Licenses=foo:10,sim:2"}},
		{"no licence", nil, Wanted{Reservation: "w", Resources: []WantedResource{{"verdi", "verdi", 2, 0}}}, []string{"MISSING resource verdi Slurm has no licence verdi"}, []string{"Licenses=foo:10,sim:4,verdi:2"}},
		{"a remote one that is too small", nil, Wanted{Reservation: "w", Resources: []WantedResource{{"vcs", "vcs@pool", 8, 2}}}, []string{"MISSING resource vcs the total of licence vcs@pool is 8, not 10"}, []string{
			"sacctmgr -i modify resource where name=vcs server=pool set count=10", "scontrol create reservation reservationname=w.vcs@pool starttime=now endtime=now+365days users=root flags=LICENSE_ONLY licenses=vcs@pool:2",
		}},
		{"a percentage of one, rounded down", func(s *Survey) { s.Licences["vcs@pool"] = Licence{Name: "vcs@pool", Total: 3, Remote: true} }, Wanted{Reservation: "w", Resources: []WantedResource{{"vcs", "vcs@pool", 7, 0}}}, []string{
			"MISSING resource vcs the total of licence vcs@pool is 3, not 7",
		}, []string{"sacctmgr -i modify resource where name=vcs server=pool set count=7"}},
		{"a name in other letters", nil, Wanted{Reservation: "w", Resources: []WantedResource{{"vcs", "VCS@pool", 8, 0}}}, []string{"MISSING resource vcs Slurm has no licence VCS@pool"}, nil},
		{"a total that is nonsense", func(s *Survey) { s.Licences["foo"] = Licence{Name: "foo", Total: 42949671} }, Wanted{Reservation: "w", Resources: []WantedResource{foo}}, []string{"advice resource foo the total of licence foo is 42949671, not 10"}, nil},
		{"no remote one, in 22.05", nil, Wanted{Reservation: "w", Resources: []WantedResource{{"x", "x@pool", 8, 0}}}, nil, []string{"sacctmgr -i add resource name=x server=pool type=license count=8 cluster=vcs percentallowed=100"}},
		{"no remote one, in 23.02", func(s *Survey) { s.Settings.Version = "23.02.1" }, Wanted{Reservation: "w", Resources: []WantedResource{{"x", "x@pool", 8, 0}}}, nil, []string{"sacctmgr -i add resource name=x server=pool type=license count=8 cluster=vcs allowed=100"}},

		{"an operator is enough for tokens", func(s *Survey) { s.Me = Me{"xce", "500", "Operator"} }, Wanted{Reservation: "w"}, []string{"ok rights xce (AdminLevel Operator) may change reservations"}, nil},
		{"an operator is not enough for hosts", func(s *Survey) { s.Me = Me{"xce", "500", "Operator"} }, hosts, []string{"MISSING rights xce (AdminLevel Operator) may not change what we must"}, []string{"sacctmgr -i modify user where name=xce set adminlevel=Administrator"}},
		{"nobody", func(s *Survey) { s.Me = Me{"xce", "500", ""} }, Wanted{Reservation: "w"}, []string{"MISSING rights xce (AdminLevel none) may not"}, []string{"sacctmgr -i modify user where name=xce set adminlevel=Operator"}},
		{"nobody, and no slurmdbd", func(s *Survey) {
			s.Me, s.Settings.Keys["accountingstoragetype"] = Me{"xce", "500", ""}, "accounting_storage/none"
		}, Wanted{Reservation: "w"}, []string{"MISSING rights xce is neither root nor SlurmUser", "advice accounting there is no slurmdbd"}, nil},
		{"jobs are private", func(s *Survey) { s.Me, s.Settings.Keys["privatedata"] = Me{"xce", "500", ""}, "jobs,cloud" }, Wanted{}, []string{"MISSING rights xce", "MISSING PrivateData jobs of others are hidden from xce"}, nil},
		{"no programs", func(s *Survey) { s.Programs = map[string]string{"scontrol": "/x/scontrol"} }, Wanted{}, []string{"MISSING commands there is no squeue", "advice commands there is no sacct:"}, nil},

		{"hosts", nil, hosts, []string{"ok hosts 16 nodes; made ones become dynamic nodes", "ok MaxNodeCount 64 leaves room for 48 nodes more", "ok partitions all, main can take", "advice power saving slurmctld powers down nodes that idle for 86400 sec"}, nil},
		{"newer Slurm can leave our hosts alone", func(s *Survey) { s.Settings.Version = "23.11.4" }, hosts, []string{"advice power saving"}, []string{"SuspendExcStates=DYNAMIC_NORM"}},
		{"no room, since the default is what there is", func(s *Survey) { s.Settings.Keys["maxnodecount"] = "16" }, Wanted{Reservation: "w", Kinds: []HostKind{Dynamic}}, []string{"MISSING MaxNodeCount 16 leaves room for 0 nodes"}, []string{"MaxNodeCount=592"}},
		{"too little room", func(s *Survey) { s.Settings.Keys["maxnodecount"] = "20" }, hosts, []string{"MISSING MaxNodeCount 20 leaves room for 4 nodes more than there are, and hosts.max is 20"}, []string{"MaxNodeCount=100"}},
		{"a selection that knows no new nodes", func(s *Survey) { s.Settings.Keys["selecttype"] = "select/cons_res" }, hosts, []string{"MISSING SelectType select/cons_res cannot"}, []string{"SelectType=select/cons_tres"}},
		{"no partition takes them", func(s *Survey) { s.Partitions = []Partition{{Name: "main", Nodes: []string{"n1"}}} }, hosts, []string{"MISSING partitions none has a node set"}, []string{"NodeSet=xce Feature=xce"}},
		{"a release without dynamic nodes", func(s *Survey) { s.Settings.Version = "21.08.8" }, hosts, []string{"advice release 21.08.8 is older than 22.05", "MISSING dynamic nodes this release cannot"}, nil},
		{"a release from the future", func(s *Survey) { s.Settings.Version = "30.05.0" }, Wanted{}, []string{"advice release 30.05.0 is newer than 25.11"}, nil},
		{"no release", func(s *Survey) { s.Settings.Version = "main" }, Wanted{}, []string{`advice release "main" is no version of Slurm`}, nil},
		{"cloud nodes without power saving", func(s *Survey) {
			s.Settings.Keys["suspendtime"], s.Settings.Keys["privatedata"] = "INFINITE", "usage"
		}, Wanted{Reservation: "w", Kinds: []HostKind{Cloud}}, []string{"MISSING power saving SuspendTime is INFINITE", "MISSING PrivateData cloud is not in it"}, []string{"SuspendTime=31536000", "PrivateData=usage,cloud"}},

		{"a reservation of our name with nodes", func(s *Survey) { s.Reservations = []Reservation{{Name: "w.foo", Nodes: []string{"n1"}}} }, Wanted{Reservation: "w", Resources: []WantedResource{foo}}, []string{"MISSING reservation w.foo keeps nodes"}, nil},
		{"a reservation of others", func(s *Survey) {
			s.Reservations = []Reservation{{Name: "course", Licences: map[string]int64{"foo": 3}}, {Name: "other", Nodes: []string{"n1"}}}
		}, Wanted{Reservation: "w", Resources: []WantedResource{foo}}, []string{"advice reservation course of others keeps foo:3 back"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := surveyed(t)
			if test.change != nil {
				test.change(&s)
			}
			report := Check(s, test.want)
			var found []string
			missing := 0
			for _, f := range report.Findings {
				found = append(found, string(f.Verdict)+" "+f.Subject+" "+f.Text)
			}
			for _, want := range test.found {
				if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, want) }) {
					t.Errorf("found is\n%s\nwithout %q", strings.Join(found, "\n"), want)
				}
				if strings.HasPrefix(want, "MISSING") {
					missing++
				}
			}
			if test.found != nil && report.Missing() != missing {
				t.Errorf("%d are missing, want %d:\n%s", report.Missing(), missing, strings.Join(found, "\n"))
			}
			var lines []string
			for _, l := range report.Lines {
				lines = append(lines, l.Line)
				if l.Why == "" || l.Command && l.Restart {
					t.Errorf("%+v", l)
				}
			}
			for _, want := range test.lines {
				if !slices.Contains(lines, want) {
					t.Errorf("the lines are\n%s\nwithout %s", strings.Join(lines, "\n"), want)
				}
			}
			if test.name == "all is well" && (len(lines) > 0 || report.Missing() > 0) {
				t.Errorf("it asks for %q", lines)
			}
		})
	}
}

func TestReleasesAreInOrder(t *testing.T) {
	var all []Release
	for _, v := range []string{"20.11.9", "22.05.8", "23.02.0-0rc1", "23.11", "25.05.1"} {
		r, err := ReleaseOf(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	for i := range all {
		for j := range all {
			if all[i].Before(all[j]) != (i < j) {
				t.Errorf("%s before %s: %v", all[i], all[j], all[i].Before(all[j]))
			}
		}
	}
	for _, v := range []string{"", "main", "22", "2.6.5", "22.13.1", "slurm 22.05"} {
		if r, err := ReleaseOf(v); err == nil {
			t.Errorf("%q is %s", v, r)
		}
	}
	if !slices.IsSortedFunc(Capabilities, func(a, b Capability) int {
		switch {
		case b.Since.Before(a.Since):
			return 1
		case a.Since.Before(b.Since):
			return -1
		}
		return 0
	}) {
		t.Error("the capabilities are not in order")
	}
}

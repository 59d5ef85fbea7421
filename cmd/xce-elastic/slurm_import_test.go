package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller/slurm"
)

// site is a Slurm with what is seen at sites: hosts of two kinds, some of them ill, places for hosts that are away, a
// remote licence, and settings that have no counterpart.
func site() slurm.Survey {
	hosts := func(name string, from, to int, n slurm.Node) (all []slurm.Node) {
		for i := from; i <= to; i++ {
			n.Name = fmt.Sprintf("%s%02d", name, i)
			all = append(all, n)
		}
		return all
	}
	main := slurm.Node{CPUs: 32, MemoryMB: 256000, Features: []string{"avx512", "site=z1"}, Partitions: []string{"main"}, Base: "IDLE"}
	gpu := slurm.Node{CPUs: 64, MemoryMB: 512000, Gres: map[string]int64{"gpu": 4, "craynetwork": 1}, Partitions: []string{"gpu", "main"}, Base: "MIXED"}
	s := slurm.Survey{
		Conf: "/etc/slurm/slurm.conf",
		Settings: slurm.Settings{Version: "23.11.4", Cluster: "chip", Keys: map[string]string{
			"prioritytype": "priority/multifactor", "preempttype": "preempt/qos", "accountingstorageenforce": "associations,limits", "selecttypeparameters": "CR_CORE", "topologyplugin": "topology/default", "jobsubmitplugins": "lua",
		}},
		Licences: map[string]slurm.Licence{"vcs": {Total: 10}, "vcs@flex": {Total: 20, Remote: true, LastConsumed: 7, Deficit: 2}, "verdi": {Total: 4, Reserved: 1}},
		Partitions: []slurm.Partition{
			{Name: "gpu", State: "UP", Nodes: make([]string, 2), MaxNodes: 2, MaxTime: 24 * cluster.Hour},
			{Name: "main", State: "UP", Nodes: make([]string, 6), Default: true, NodeSets: []string{"xce"}},
		},
		Reservations: []slurm.Reservation{{Name: "course", State: "ACTIVE", Nodes: []string{"n01"}, Licences: map[string]int64{"verdi": 1}}},
	}
	s.Nodes = append(hosts("g", 1, 2, gpu), hosts("n", 1, 4, main)...)
	s.Nodes[3].Base, s.Nodes[3].Flags, s.Nodes[3].Reason = "DOWN", []string{"DRAIN"}, "bad: fan\n- {name: x}"
	main.Flags = []string{"CLOUD", "POWERED_DOWN"}
	s.Nodes = append(s.Nodes, hosts("c", 1, 9, main)...)
	return s
}

// loads reads a cluster file, as it is and with its examples in force.
func loads(t interface {
	Helper()
	Fatalf(string, ...any)
}, folder, text string,
) (plain, more *config.Config) {
	t.Helper()
	var both []*config.Config
	for i, text := range []string{text, regexp.MustCompile(`(?m)^#\+`).ReplaceAllString(text, "")} {
		file := filepath.Join(folder, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatalf("%v", err)
		}
		c, err := config.Load(file, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := c.Farm().ValidateModels("simulation").Err(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		both = append(both, c)
	}
	return both[0], both[1]
}

func TestAClusterFileHasWhatSlurmHas(t *testing.T) {
	text := slurm.ClusterFile(site())
	c, more := loads(t, t.TempDir(), text)
	if c.Cluster.Name != "chip" || c.Backend != config.BackendSlurm || c.Slurm.Conf != "/etc/slurm/slurm.conf" || c.Policy.Order != "easy" || len(c.Providers) != 0 {
		t.Errorf("got %+v", c)
	}
	owned := map[string]int64{}
	for _, r := range c.Resources {
		owned[r.Name] = r.Owned
	}
	licences := c.LicenceNames()
	if len(owned) != 3 || owned["vcs"] != 10 || owned["verdi"] != 4 || owned["vcs.2"] != 20 || licences["vcs.2"] != "vcs@flex" || licences["vcs"] != "vcs" {
		t.Errorf("owned are %v, called %v", owned, licences)
	}
	hosts := c.Simulation.Hosts
	if len(hosts) != 2 || hosts[0].Name != "g" || hosts[0].Count != 2 || hosts[1].Count != 4 || hosts[1].CPUs != 32 || hosts[1].MemoryMB != 256000 {
		t.Fatalf("hosts are %+v", hosts)
	}
	if got := fmt.Sprint(hosts[0].Countables, hosts[0].Features, hosts[1].Features); got != "[craynetwork=1 gpu=4] [partition:gpu partition:main] [partition:main avx512 site=z1]" {
		t.Errorf("they have %s", got)
	}
	if len(more.Providers) != 2 || more.Resources[0].Elastic == nil || len(more.Simulation.Providers) != 2 || len(more.Thresholds) != 1 || more.Thresholds[0].Queue != "main" {
		t.Errorf("with the examples it is %+v", more)
	}
	for _, told := range []string{
		"# n02 is DOWN+DRAIN now: bad: fan", "# not there now (cloud): c01 to c09 (9), each with cpus: 32", "#   gpu: UP, 2 nodes; of a job: at most 2 nodes, at most 24h0m0s",
		"#   main (the default): UP, 6 nodes, node sets xce; of a job: any number of nodes, any length of time", "# 1 of them are kept back by reservations now",
		"# the licence server told of 7 in use, of which Slurm misses 2", "PriorityType=priority/multifactor: ", "PreemptType=preempt/qos: ", "JobSubmitPlugins=lua: ",
		"AccountingStorageEnforce=associations,limits: ", "SelectTypeParameters=CR_CORE: ", "reservation course (ACTIVE) of 1 nodes and verdi:1",
	} {
		if !strings.Contains(text, told) {
			t.Errorf("it does not tell %q:\n%s", told, text)
		}
	}
	if strings.Contains(text, "TopologyPlugin") {
		t.Errorf("it tells what is as usual:\n%s", text)
	}
}

func TestTheJobsOfSlurmRunOnItsClusterFile(t *testing.T) {
	s := site()
	s.Licences = map[string]slurm.Licence{"foo": {Total: 10}, "sim": {Total: 4}}
	file := fileOf(t, "farm.yaml", slurm.ClusterFile(s))
	prints(t, []string{"simulate", "--cluster", file, "--jobs", "testdata/slurm.sacct"}, `cluster chip: 10 jobs`, `\n10 +10 +0`)
	grown := fileOf(t, "grown.yaml", strings.ReplaceAll(slurm.ClusterFile(s), "\n#+", "\n"))
	prints(t, []string{"simulate", "--cluster", grown, "--jobs", "testdata/slurm.sacct"}, `\n10 +10 +0`)
	prints(t, []string{"config", "check", "-c", grown}, `the configuration of cluster chip is sound: 2 resources, 2 providers`)
}

// Whatever things are called in Slurm, the file is sound, and has every licence and every host that has cpus.
func TestEveryClusterFileIsSound(t *testing.T) {
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.SampledFrom([]string{"n1", "n2", "n-1", "n", "yes", "vcs", "vcs@pool", "a b", "gpu", "cpus", "x=1", "x=2", "#", "", "é", "a\nb", `"`, "n:1", "- x", "1"}), rapid.String())
		s := slurm.Survey{Conf: "/etc/slurm.conf", Settings: slurm.Settings{Version: "22.05.8", Cluster: name.Draw(t, "cluster"), Keys: map[string]string{"preempttype": name.Draw(t, "preemption")}}}
		s.Licences = map[string]slurm.Licence{}
		for _, l := range rapid.SliceOfNDistinct(name.Filter(sensibleLicence), 0, 4, rapid.ID[string]).Draw(t, "licences") {
			s.Licences[l] = slurm.Licence{Name: l, Total: rapid.Int64Range(0, 1000).Draw(t, "total")}
		}
		cpus := int64(0)
		for _, n := range rapid.SliceOfNDistinct(name, 1, 6, rapid.ID[string]).Draw(t, "nodes") {
			node := slurm.Node{
				Name: n, CPUs: rapid.SampledFrom([]int64{0, 4, 8}).Draw(t, "cpus"), MemoryMB: 100, Base: rapid.SampledFrom([]string{"IDLE", "DOWN", "FUTURE"}).Draw(t, "state"), Reason: name.Draw(t, "reason"),
				Features: rapid.SliceOfN(name, 0, 3).Draw(t, "features"), Gres: map[string]int64{name.Draw(t, "gres"): 2}, Partitions: rapid.SliceOfN(name, 0, 2).Draw(t, "partitions"),
			}
			if node.Base != "FUTURE" {
				cpus += node.CPUs
			}
			s.Nodes = append(s.Nodes, node)
		}
		for _, p := range rapid.SliceOfN(name, 0, 2).Draw(t, "partitions") {
			s.Partitions = append(s.Partitions, slurm.Partition{Name: p, State: "UP"})
		}
		c, _ := loads(t, folder, slurm.ClusterFile(s))
		told := int64(0)
		for _, h := range c.Simulation.Hosts {
			told += h.CPUs * max(h.Count, 1)
		}
		if told != cpus || len(c.Resources) != len(s.Licences) {
			t.Fatalf("there are %d cpus of %d, and %d resources of %d", told, cpus, len(c.Resources), len(s.Licences))
		}
	})
}

// sensibleLicence tells whether Slurm would have a licence of that name.
func sensibleLicence(name string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9_.-]+(@[a-z]+)?$`).MatchString(name)
}

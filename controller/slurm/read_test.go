package slurm

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
)

func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readNodes(t *testing.T, text string) map[string]Node {
	t.Helper()
	all, err := readAll("NodeName", text, nodeOf)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]Node{}
	for _, n := range all {
		named[n.Name] = n
	}
	return named
}

func TestReadNodes(t *testing.T) {
	nodes := readNodes(t, recorded(t, "nodes-22.05.txt"))
	if len(nodes) != 16 {
		t.Errorf("%d nodes", len(nodes))
	}
	want := map[string]Node{
		"n3": {
			Name: "n3", Address: "127.0.0.1", Hostname: "localhost", CPUs: 4, MemoryMB: 4000, Features: []string{"static", "x86"},
			Gres: map[string]int64{"gpu": 2}, Partitions: []string{"main", "all"}, Base: "IDLE", Flags: []string{"DRAIN"},
			Reason: "swap State=IDLE the=fan Comment=of n3", Booted: 1796025309000,
		},
		"e1": {
			Name: "e1", Address: "127.0.1.81", Hostname: "e1", CPUs: 4, MemoryMB: 4000, Features: []string{"dyn", "x86"},
			Partitions: []string{"main", "all"}, Base: "IDLE", Flags: []string{"CLOUD", "DRAIN", "DYNAMIC_NORM"},
			Reason: "xce: idle", Booted: 1796025309000,
		},
		"e2": { // its comment has a line break and a state in it
			Name: "e2", Address: "127.0.1.82", Hostname: "e2", CPUs: 4, MemoryMB: 4000, Features: []string{"dyn", "x86"},
			Partitions: []string{"main", "all"}, Base: "IDLE", Flags: []string{"CLOUD", "DYNAMIC_NORM", "POWERED_DOWN"},
		},
		"xce-big": {
			Name: "xce-big", Address: "xce-big", Hostname: "xce-big", CPUs: 64, MemoryMB: 512000, Features: []string{"dyn", "big"},
			Gres: map[string]int64{"gpu": 4}, Partitions: []string{"main", "all"}, Base: "FUTURE", Flags: []string{"DYNAMIC_NORM"},
		},
	}
	for name, w := range want {
		got := nodes[name]
		got.Booted = min(got.Booted, w.Booted) // a later start is as good
		if !reflect.DeepEqual(got, w) {
			t.Errorf("%s:\n%+v\n%+v", name, got, w)
		}
	}
}

// Newer releases tell more, in other places.
func TestReadNodesOfNewerReleases(t *testing.T) {
	nodes := readNodes(t, recorded(t, "nodes-25.05.txt"))
	a, b := nodes["gpu01"], nodes["dyn7"]
	if a.CPUs != 62 || a.MemoryMB != 512000-2048 || !reflect.DeepEqual(a.Gres, map[string]int64{"gpu": 6, "shard": 16, "nic": 4096}) || a.Reason != "Not responding" ||
		!reflect.DeepEqual(a.Flags, []string{"DRAIN", "NOT_RESPONDING", "PLANNED"}) || a.Base != "DOWN" {
		t.Errorf("%+v", a)
	}
	if b.Base != "MIXED" || !reflect.DeepEqual(b.Flags, []string{"CLOUD", "COMPLETING", "DYNAMIC_NORM", "NEW_FLAG", "POWER_DRAIN"}) || b.Reason != "" || b.AllocatedCPUs != 2 {
		t.Errorf("%+v", b)
	}
}

func TestReadLicences(t *testing.T) {
	got, err := readAll("LicenseName", recorded(t, "licences-22.05.txt")+recorded(t, "licences-25.05.txt"), licenceOf)
	want := []Licence{
		{Name: "ansys@flex", Total: 40, Used: 7, Free: 28, Reserved: 5, Remote: true, LastConsumed: 12, Deficit: 3},
		{Name: "foo", Total: 10, Free: 10, Reserved: 3},
		{Name: "sim", Total: 4, Free: 4},
		{Name: "vcs@pool", Total: 10, Free: 10, Reserved: 8, Remote: true},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadReservations(t *testing.T) {
	got, err := readAll("ReservationName", recorded(t, "reservations-22.05.txt"), reservationOf)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	theirs, ours := got[0], got[1]
	if ours.Name != "xce-withheld" || ours.State != "ACTIVE" || !reflect.DeepEqual(ours.Licences, map[string]int64{"foo": 3, "vcs@pool": 8}) ||
		ours.End.Sub(ours.Start) != 365*24*cluster.Hour || !reflect.DeepEqual(ours.Users, []string{"root"}) || ours.Nodes != nil {
		t.Errorf("%+v", ours)
	}
	if theirs.Name != "theirs" || theirs.State != "INACTIVE" || !reflect.DeepEqual(theirs.Nodes, []string{"n2"}) || theirs.Licences != nil {
		t.Errorf("%+v", theirs)
	}
}

func TestReadPartitions(t *testing.T) {
	got, err := readAll("PartitionName", recorded(t, "partitions-22.05.txt"), partitionOf)
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	want := Partition{
		Name: "cloud", State: "UP", Nodes: []string{"c1", "c2", "c3", "c4"}, PriorityFactor: 1,
	}
	if !reflect.DeepEqual(got[1], want) || !got[2].Default || !reflect.DeepEqual(got[2].NodeSets, []string{"ns_dyn"}) {
		t.Errorf("%+v", got)
	}
}

func TestReadNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "No licenses configured in Slurm.\n", "No reservations in the system\n", "No nodes in the system\n"} {
		if got, err := readAll("LicenseName", text, licenceOf); err != nil || len(got) != 0 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"slurm_load: something\n":                                         "where LicenseName= was expected",
		"LicenseName=a Total=x Used=0\n":                                  "LicenseName=a: Total=x: not a number",
		"LicenseName=a Used=0\n":                                          "Total=: missing",
		"LicenseName=a Total=1\n":                                         "Used=: missing",
		"LicenseName=a Total=1 Used=0\nLicenseName=a Total=2 Used=0\n":    "told twice",
		"LicenseName=a Total=1 Used=99999999999999999999999 Free=0 Res=0": "not a number",
	} {
		if got, err := readAll("LicenseName", text, licenceOf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestStateOf(t *testing.T) {
	for text, want := range map[string]string{
		"IDLE":                    "IDLE",
		"IDLE+CLOUD+DYNAMIC_NORM": "IDLE CLOUD DYNAMIC_NORM",
		"MIXED+DRAIN+CLOUD":       "MIXED CLOUD DRAIN",
		"idle*":                   "IDLE NOT_RESPONDING",
		"down*~":                  "DOWN NOT_RESPONDING POWERED_DOWN",
		"DOWN*+DRAIN":             "DOWN DRAIN NOT_RESPONDING",
		"drained":                 "IDLE DRAIN",
		"draining@":               "MIXED DRAIN REBOOT_ISSUED",
		"alloc#":                  "ALLOCATED POWERING_UP",
		"FUTURE":                  "FUTURE",
		"SOMETHING_NEW+X":         "SOMETHING_NEW X",
	} {
		base, flags := stateOf(text)
		if got := strings.Join(append([]string{base}, flags...), " "); got != want {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}

func TestGresOf(t *testing.T) {
	for text, want := range map[string]map[string]int64{
		"(null)":                            nil,
		"gpu:2":                             {"gpu": 2},
		"gpu":                               {"gpu": 1},
		"gpu:a100":                          {"gpu": 1},
		"gpu:a100:2(S:0-1),gpu:v100:1,fpga": {"gpu": 3, "fpga": 1},
		"bandwidth:lustre:no_consume:4G":    {"bandwidth": 4 << 30},
		"gres/gpu:3":                        {"gpu": 3},
	} {
		if got, err := gresOf(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{",", "gpu:-1", "gpu:99999999999999999999", "gpu:a:b"} {
		if got, err := gresOf(text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestDurationOf(t *testing.T) {
	for text, want := range map[string]cluster.Duration{
		"UNLIMITED": 0, "INFINITE": 0, "01:00:00": cluster.Hour, "365-00:00:00": 365 * 24 * cluster.Hour,
		"1-12": 36 * cluster.Hour, "30:05": 30*cluster.Minute + 5*cluster.Second, "2-01:30": 49*cluster.Hour + 30*cluster.Minute,
	} {
		if got, err := durationOf(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "1:2:3:4", "1-2-3", "-1", "1:x"} {
		if got, err := durationOf(text); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}

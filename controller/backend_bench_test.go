package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/slurm"
	"xce.internal/elastic/controller/store"
)

// queue is how long a queue of Slurm is: jobs by themselves, and arrays of a thousand elements.
type queue struct{ separate, arrays, running int }

// benchNodes is how many nodes of the stand-in for Slurm there are, of 64 cpus each.
const benchNodes = 100

// rowEnds stands for the mark that ends a row in the file of rows.
const rowEnds = "@"

// row is a job as squeue prints it; what is not said is empty.
func (q queue) row(i int, array, state, on string) string {
	id := strconv.Itoa(1000 + i)
	started := "N/A"
	if on != "" {
		started = "1767220100"
	}
	return strings.Join([]string{
		id, id, array, "N/A", "N/A", "user" + strconv.Itoa(i%100), "main", state, "Licenses", strconv.Itoa(100000 - i%1000), "1", "4",
		"1", "8000M", "avx512&(rhel8|rhel9)", fmt.Sprintf("vcs:%d,sim:1", i%3+1), "cpu=4,mem=8000M,node=1,billing=4,license/vcs=1", "N/A", "N/A", "N/A", "N/A",
		"1-00:00:00", strconv.Itoa(1767220000 + i%5000), "1767220000", started, "(null)", on, "(null)", "OK", "regression_" + id,
	}, "\x1f") + rowEnds + "\n"
}

func (q queue) rows() string {
	var b strings.Builder
	for i := range q.running {
		b.WriteString(q.row(i, "N/A", "RUNNING", "n"+strconv.Itoa(i%benchNodes)))
	}
	for i := range q.separate {
		b.WriteString(q.row(q.running+i, "N/A", "PENDING", ""))
	}
	for i := range q.arrays {
		b.WriteString(q.row(q.running+q.separate+i, "1-1000", "PENDING", ""))
	}
	return b.String()
}

// standIn writes programs that print what Slurm's would, and answers their folder.
func (q queue) standIn(tb testing.TB) string {
	tb.Helper()
	folder := tb.TempDir()
	var nodes strings.Builder
	for i := range benchNodes {
		fmt.Fprintf(&nodes, "NodeName=n%d CPUAlloc=4 CPUEfctv=64 CPUTot=64 AvailableFeatures=avx512,rhel9 ActiveFeatures=avx512,rhel9 Gres=(null) NodeAddr=n%d "+
			"NodeHostName=n%d RealMemory=512000 AllocMem=8000 State=MIXED Partitions=main BootTime=1767000000 SlurmdStartTime=1767000000\n", i, i, i)
	}
	for name, text := range map[string]string{
		"rows":        q.rows(),
		"node":        nodes.String(),
		"licenses":    fmt.Sprintf("LicenseName=vcs Total=%d Used=%d Free=0 Reserved=10 Remote=no\nLicenseName=sim Total=900000 Used=%d Free=0 Reserved=0 Remote=no\n", 2*q.running+10, 2*q.running, q.running),
		"reservation": "ReservationName=xce-withheld.vcs StartTime=1767000000 EndTime=1798536000 Nodes=(null) Licenses=vcs:10 State=ACTIVE Users=root Flags=LICENSE_ONLY\n",
		"partition":   "PartitionName=main AllowGroups=ALL MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP Nodes=n[0-99]\n",
		"config":      "BOOT_TIME = 1767000000\nSLURM_VERSION = 22.05.8\nClusterName = test\n",
		"squeue":      "#!/bin/sh\nfor a; do case $a in --Format=*) mark=${a##*Name:};; esac; done\nexec sed \"s/" + rowEnds + "/$mark/\" " + folder + "/rows\n",
		"scontrol":    "#!/bin/sh\nfor a; do last=$a; done\nexec cat " + folder + "/$last\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	return folder
}

// behind answers a controller behind the stand-in.
func (q queue) behind(tb testing.TB) *world {
	tb.Helper()
	config := controllertest.Vcs(int64(2*q.running), 10)
	b := slurm.New(slurm.Options{Commands: slurm.Commands{Folder: q.standIn(tb)}, Licences: map[string]string{"vcs": "vcs"}, Now: func() cluster.Time { return 1767225600_000 }})
	config.Backend = b
	w := &world{Controller: controllertest.Open(tb, store.Memory, config), t: tb}
	w.must(w.Service.PublishCatalog(tb.Context(), "provisioner/p1", "pool", catalog(10)))
	_ = w.Service.Session(tb.Context()) // the first reading is not acted upon
	return w
}

// judged is that after a session, in which all jobs were seen and some wait for more than there is.
func (q queue) judged(tb testing.TB) *world {
	tb.Helper()
	w := q.behind(tb)
	w.Session()
	st := w.Status()
	if want := int64(q.separate + 1000*q.arrays); st.Jobs.Waiting != want || st.Backend.Trouble != nil || st.Backend.Unsettled != nil || len(st.Demand) == 0 {
		tb.Fatalf("%d wait, want %d; demand %+v, %+v", st.Jobs.Waiting, want, st.Demand, st.Backend)
	}
	return w
}

// TestAShortQueueIsJudgedToo keeps what the benchmarks read in step with what is read.
func TestAShortQueueIsJudgedToo(t *testing.T) {
	t.Parallel()
	queue{separate: 20, arrays: 1, running: 2}.judged(t)
}

var queues = map[string]queue{
	"waiting=10000":            {10_000, 0, 200},
	"waiting=100000/arrays=80": {20_000, 80, 200},
}

// BenchmarkSlurmLook measures reading a long queue from Slurm's programs.
func BenchmarkSlurmLook(b *testing.B) {
	for name, q := range queues {
		b.Run(name, func(b *testing.B) {
			w := q.behind(b)
			b.ReportAllocs()
			peak := peakFrom(b)
			for b.Loop() {
				if _, err := w.Config.Backend.Look(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			peak()
		})
	}
}

// BenchmarkSlurmSession measures reading a long queue and a session over it.
func BenchmarkSlurmSession(b *testing.B) {
	for name, q := range queues {
		b.Run(name, func(b *testing.B) {
			w := q.judged(b)
			b.ReportAllocs()
			peak := peakFrom(b)
			for b.Loop() {
				w.Session()
			}
			peak()
		})
	}
}

// peakFrom begins to watch how much memory this process has at most; what it answers reports that.
// Where the system does not tell there is no report.
func peakFrom(b *testing.B) (report func()) {
	const forget = "5" // what was the most so far
	if err := os.WriteFile("/proc/self/clear_refs", []byte(forget), 0o600); err != nil {
		return func() {}
	}
	return func() {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return
		}
		for line := range strings.Lines(string(status)) {
			if kb, found := strings.CutPrefix(line, "VmHWM:"); found {
				if n, err := strconv.ParseFloat(strings.Fields(kb)[0], 64); err == nil {
					b.ReportMetric(n/1024, "peak-RSS-MB")
				}
			}
		}
	}
}

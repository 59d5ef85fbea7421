package slurm

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

const recordedMark = "\x1e0123456789abcdef"

// recordedJobs answers what a Slurm 22.05.8 printed, by id.
func recordedJobs(t testing.TB) map[int64]Job {
	t.Helper()
	text, err := os.ReadFile("testdata/jobs.txt")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := parseJobs(text, recordedMark)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[int64]Job{}
	for _, j := range jobs {
		byID[j.ID] = j
	}
	if len(byID) != strings.Count(string(text), recordedMark) {
		t.Fatalf("%d jobs of %d rows", len(byID), strings.Count(string(text), recordedMark))
	}
	return byID
}

func TestRecordedJobs(t *testing.T) {
	jobs := recordedJobs(t)
	// What is the same for most of them.
	plain := func(id int64, name string, change func(*Job)) Job {
		j := Job{
			ID: id, Name: name, User: "root", Partition: "main", State: "PENDING", Reason: "Priority", Priority: 1,
			Nodes: 1, CPUs: 1, Tasks: 1, MemoryMB: 100,
		}
		change(&j)
		return j
	}
	held := func(j *Job) { j.Reason, j.Priority = "JobHeldUser", 0 }
	for _, want := range []Job{
		plain(1, "running", func(j *Job) {
			j.State, j.Reason, j.On, j.TimeLimit = "RUNNING", "None", []string{"n1"}, 365*24*cluster.Hour
		}),
		plain(2, "we|ird\nname", func(j *Job) {
			j.State, j.Reason, j.Priority, j.On, j.TimeLimit = "SUSPENDED", "None", 0, []string{"n1"}, 365*24*cluster.Hour
			j.CPUs, j.Tasks, j.MemoryPerCPU, j.Licences = 2, 2, true, map[string]int64{"foo": 2, "sim": 1}
		}),
		plain(3, "excl", func(j *Job) {
			j.State, j.Reason, j.On, j.TimeLimit = "RUNNING", "None", []string{"n2", "n3"}, 365*24*cluster.Hour
			j.Nodes, j.CPUs, j.Tasks, j.MemoryPerCPU, j.Exclusive = 2, 8, 4, true, true
		}),
		plain(4, "arr", func(j *Job) {
			j.Reason, j.ArrayID, j.ArrayTasks, j.Elements, j.AtOnce = "JobArrayTaskLimit", 4, "3-100%2", 98, 2
			j.Licences = map[string]int64{"foo": 1}
		}),
		plain(5, "arr2", func(j *Job) {
			j.Reason, j.ArrayID, j.ArrayTasks, j.Elements, j.AtOnce, j.Features = "Resources", 5, "4-5,7,9%4", 4, 4, "static|fut"
		}),
		plain(24, "arr", func(j *Job) {
			j.State, j.Reason, j.On, j.TimeLimit = "RUNNING", "None", []string{"n1"}, 365*24*cluster.Hour
			j.ArrayID, j.ArrayTasks, j.Elements, j.Licences = 4, "1", 1, map[string]int64{"foo": 1}
		}),
		plain(7, "dep", func(j *Job) { j.Reason = "Dependency" }),
		plain(10, "multi", func(j *Job) {
			j.Reason, j.Nodes, j.CPUs, j.Tasks, j.Features = "ReqNodeNotAvail, May be reserved for other job", 2, 2, 2, "[static*1&fut*1]"
		}),
		plain(11, "req", func(j *Job) { j.Features, j.RequiredNodes = "static&x86", []string{"n1"} }),
		plain(12, "gres", func(j *Job) { j.Nodes, j.CPUs, j.Tasks, j.Gres = 2, 2, 2, map[string]int64{"gpu": 2} }),
		plain(13, "gpus", func(j *Job) { j.Nodes, j.Gres = 2, map[string]int64{"gpu": 2} }),
		plain(14, "gpt", func(j *Job) {
			j.CPUs, j.Tasks, j.MemoryPerCPU, j.Gres = 2, 2, true, map[string]int64{"gpu": 2}
		}),
		plain(15, "mpc", func(j *Job) {
			j.Nodes, j.CPUs, j.Tasks, j.MemoryMB, j.MemoryPerCPU = 2, 6, 3, 500, true
			j.TimeLimit = 26*cluster.Hour + 4*cluster.Minute
		}),
		plain(19, "het", func(j *Job) {
			j.Reason, j.HetID, j.HetOffset, j.CPUs, j.Tasks, j.MemoryMB = "Resources", 18, 1, 2, 2, 1024
			j.Licences = map[string]int64{"sim": 4}
		}),
		plain(23, "zero", func(*Job) {}),
		plain(26, "hetj", func(j *Job) { // --mem=0: all that a node has
			held(j)
			j.HetID, j.HetOffset, j.Nodes, j.CPUs, j.Tasks, j.MemoryMB, j.Licences = 25, 1, 2, 4, 4, 4000, map[string]int64{"sim": 3}
		}),
		plain(28, "inj\x1eect\x1fed", held),
		plain(30, "m15", func(j *Job) { held(j); j.MemoryMB = 1536 }),
		plain(31, "gps", func(j *Job) {
			held(j)
			j.Gres, j.Unjudged = map[string]int64{"gpu": 1}, "it asks for gres:gpu:1 on each socket, and how many sockets it gets is not known here"
		}),
		plain(32, "m0", func(j *Job) { held(j); j.MemoryMB, j.Licences = 4000, map[string]int64{"foo": 3, "sim": 1} }),
		plain(36, "m4t", func(j *Job) { held(j); j.MemoryMB = 4 << 20 }),
		plain(37, "sparse", func(j *Job) {
			held(j)
			j.ArrayID, j.Elements = 37, 31
			j.ArrayTasks = "0,7,9,11-13,20,22,24,30-31,33,35,37,39,41,43-44,48,50-53,55,60-62,64,66,68,70"
		}),
	} {
		got := jobs[want.ID]
		if got.Submitted == 0 || (got.Started != 0) != (len(got.On) > 0) {
			t.Errorf("job %d: submitted %v, started %v on %v", want.ID, got.Submitted, got.Started, got.On)
		}
		got.Submitted, got.Eligible, got.Started, got.Expected = 0, 0, 0, 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("job %d is\n%+v, want\n%+v", want.ID, got, want)
		}
	}
	if j := jobs[8]; j.Eligible != 1796112547_000 || j.Expected != j.Eligible || j.Submitted != 1796026147_000 {
		t.Errorf("the job that begins later: submitted %d, eligible %d, expected %d", j.Submitted, j.Eligible, j.Expected)
	}
}

// aRow is a row that can be read, with some fields changed.
func aRow(mark string, change map[int]string) string {
	fields := [fieldCount]string{
		fieldID: "7", fieldArrayID: "7", fieldArrayTasks: "N/A", fieldHetID: "N/A", fieldHetOffset: "N/A", fieldUser: "u",
		fieldPartition: "main", fieldState: "PENDING", fieldReason: "Priority", fieldPriority: "5", fieldNodes: "2", fieldCPUs: "5",
		fieldTasks: "5", fieldMemory: "100M", fieldFeatures: "(null)", fieldLicences: "(null)",
		fieldTRES: "cpu=5,mem=200M,node=2,billing=5", fieldPerJob: "N/A", fieldPerNode: "N/A", fieldPerSocket: "N/A", fieldPerTask: "N/A",
		fieldTimeLimit: "UNLIMITED", fieldSubmitted: "1796026147", fieldEligible: "1796026147", fieldStarted: "N/A",
		fieldReservation: "(null)", fieldOversubscribe: "OK", fieldName: "job",
	}
	for i, text := range change {
		fields[i] = text
	}
	return strings.Join(fields[:], string(fieldEnd)) + mark + "\n"
}

func parseOne(t *testing.T, change map[int]string) Job {
	t.Helper()
	jobs, err := parseJobs([]byte(aRow(recordedMark, change)), recordedMark)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, error %v", len(jobs), err)
	}
	return jobs[0]
}

func TestRowsThatCannotBeReadRefuseAll(t *testing.T) {
	good := aRow(recordedMark, nil)
	for name, c := range map[string]struct {
		row, says string
	}{
		"no end":               {strings.TrimSuffix(good, recordedMark+"\n"), "row 2 has no end"},
		"fields are missing":   {"9\x1f9" + recordedMark, `job "9"): it ends after field ArrayJobID`},
		"an id":                {aRow(recordedMark, map[int]string{fieldID: "x"}), `field JobID: "x"`},
		"id 0":                 {aRow(recordedMark, map[int]string{fieldID: "0"}), "field JobID"},
		"a state":              {aRow(recordedMark, map[int]string{fieldState: "DREAMING"}), `field State: "DREAMING"`},
		"a count":              {aRow(recordedMark, map[int]string{fieldNodes: "1-3"}), `field NumNodes: "1-3"`},
		"no count":             {aRow(recordedMark, map[int]string{fieldCPUs: ""}), "field NumCPUs"},
		"a negative count":     {aRow(recordedMark, map[int]string{fieldTasks: "-1"}), "field NumTasks"},
		"too large a count":    {aRow(recordedMark, map[int]string{fieldPriority: "9999999999999999999"}), "field PriorityLong"},
		"a list cut short":     {aRow(recordedMark, map[int]string{fieldArrayTasks: "0,7,9,..."}), "SLURM_BITSTR_LEN"},
		"a backward range":     {aRow(recordedMark, map[int]string{fieldArrayTasks: "9-1"}), "holds nothing"},
		"steps of nothing":     {aRow(recordedMark, map[int]string{fieldArrayTasks: "1-9:0"}), "holds nothing"},
		"a date":               {aRow(recordedMark, map[int]string{fieldSubmitted: "2026-01-01T00:00:00"}), "field SubmitTime"},
		"no submit time":       {aRow(recordedMark, map[int]string{fieldSubmitted: "N/A"}), "told apart"},
		"a limit":              {aRow(recordedMark, map[int]string{fieldTimeLimit: "1-xx:00"}), "field TimeLimit"},
		"memory":               {aRow(recordedMark, map[int]string{fieldMemory: "lots"}), "field MinMemory"},
		"a sum":                {aRow(recordedMark, map[int]string{fieldTRES: "cpu"}), "field tres-alloc"},
		"a licence":            {aRow(recordedMark, map[int]string{fieldLicences: "vcs:many"}), "field Licenses"},
		"a licence of no name": {aRow(recordedMark, map[int]string{fieldLicences: ":2"}), "field Licenses"},
		"a countable":          {aRow(recordedMark, map[int]string{fieldPerNode: "gres:gpu:a:b"}), "field tres-per-node"},
		"a list of nodes":      {aRow(recordedMark, map[int]string{fieldOn: "n[1-"}), "field NodeList"},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, err := parseJobs([]byte(good+c.row), recordedMark)
			if err == nil || jobs != nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "row 2") {
				t.Errorf("%d jobs, error %v, want row 2 and %q", len(jobs), err, c.says)
			}
		})
	}
}

// A job's name is what its user likes, even another job's whole row.
func TestNoNameForgesARow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOf(rapid.SampledFrom([]rune("a\n|\x1e\x1f01"))).Draw(t, "name") + aRow("\x1e0000000000000000", nil)
		mark, err := newMark()
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := parseJobs([]byte(aRow(mark, map[int]string{fieldName: name})+aRow(mark, nil)), mark)
		if err != nil || len(jobs) != 2 || jobs[0].Name != name {
			t.Fatalf("%d jobs, error %v", len(jobs), err)
		}
	})
}

func TestEachCallHasAnotherMark(t *testing.T) {
	a, _ := newMark()
	b, _ := newMark()
	if a == b || len(a) != 17 {
		t.Errorf("marks %q and %q", a, b)
	}
	if format := jobFormat(a); !strings.HasSuffix(format, ",Name:"+a) || strings.Count(format, ",") != fieldCount-1 {
		t.Errorf("the format is %q", format)
	}
}

func TestEveryLiveStateIsRead(t *testing.T) {
	for state, live := range liveStates {
		jobs, err := parseJobs([]byte(aRow(recordedMark, map[int]string{fieldState: state})), recordedMark)
		if err != nil || (len(jobs) == 1) != live {
			t.Errorf("%s: %d jobs, error %v", state, len(jobs), err)
		}
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string][2]int64{
		"1": {1, 0}, "0": {1, 0}, "2-100%10": {99, 10}, "1,3,5-9:2%4": {5, 4}, "1-598:3": {200, 0}, "5-5": {1, 0}, "1,2,3": {3, 0}, "1-10:20%1": {1, 1},
	} {
		count, atOnce, err := parseElements([]byte(text))
		if err != nil || count != want[0] || atOnce != want[1] {
			t.Errorf("%s: %d elements, %d at once, error %v; want %v", text, count, atOnce, err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	for text, want := range map[string]cluster.Duration{
		"1-02:03:04": 26*cluster.Hour + 3*cluster.Minute + 4*cluster.Second, "10:00": 10 * cluster.Minute, "2:00:00": 2 * cluster.Hour,
		"365-00:00:00": 365 * 24 * cluster.Hour, "9999-00:00:00": 9999 * 24 * cluster.Hour, "UNLIMITED": 0, "NOT_SET": 0, "Partition_Limit": 0, "N/A": 0, "0:30": 30 * cluster.Second,
	} {
		if got, err := durationOf(text); err != nil || got != want {
			t.Errorf("%s: %v, error %v; want %v", text, got, err, want)
		}
	}
}

func TestALimitOfManyYearsIsNone(t *testing.T) {
	if j := parseOne(t, map[int]string{fieldTimeLimit: "9999-00:00:00"}); j.TimeLimit != 0 {
		t.Errorf("the limit is %v", j.TimeLimit)
	}
}

// What is too large to count with is more than anything has, and never less than nothing.
func TestHugeNeeds(t *testing.T) {
	j := parseOne(t, map[int]string{fieldTasks: "4294967295", fieldPerTask: "gres:mps:4T", fieldCPUs: "4294967295", fieldMemory: "900000000Mc"})
	out, _ := viewing.Jobs([]Job{j})
	if out[0].Countables["mps"] != mostCounted || out[0].MemoryMB != mostCounted {
		t.Errorf("%+v", out[0])
	}
}

func TestMemory(t *testing.T) {
	for text, want := range map[string]struct {
		mb   int64
		kind byte
	}{
		"4000Mc": {4000, 'c'}, "100M": {100, 0}, "4G": {4096, 0}, "4Gn": {4096, 'n'}, "1.50G": {1536, 0}, "0": {0, 0}, "500": {500, 0},
		"1T": {1 << 20, 0}, "100K": {1, 0}, "N/A": {0, 0}, "1.1M": {2, 0},
	} {
		mb, kind, err := parseMemory([]byte(text))
		if err != nil || mb != want.mb || kind != want.kind {
			t.Errorf("%s: %d %q, error %v; want %v", text, mb, kind, err, want)
		}
	}
}

func TestMemoryIsOfANodeOrACPU(t *testing.T) {
	for name, c := range map[string]struct {
		memory, sum string
		mb          int64
		perCPU      bool
	}{
		"of a node":            {"100M", "cpu=5,mem=200M,node=2", 100, false},
		"of a cpu":             {"100M", "cpu=5,mem=500M,node=2", 100, true},
		"it is said":           {"100Mc", "(null)", 100, true},
		"the sum is not told":  {"100M", "(null)", 100, false},
		"of each alike":        {"100M", "cpu=2,mem=200M,node=2", 100, false},
		"all that a node has":  {"0", "cpu=5,mem=8000M,node=2", 4000, false},
		"memory is no concern": {"0", "cpu=5,node=2", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			j := parseOne(t, map[int]string{fieldMemory: c.memory, fieldTRES: c.sum})
			if j.MemoryMB != c.mb || j.MemoryPerCPU != c.perCPU {
				t.Errorf("%d MB, per cpu %v; want %d, %v", j.MemoryMB, j.MemoryPerCPU, c.mb, c.perCPU)
			}
		})
	}
}

func TestLicenceNeeds(t *testing.T) {
	for text, want := range map[string]licenceNeed{
		"(null)":             {},
		"a:1,b@srv:2":        {units: map[string]int64{"a": 1, "b@srv": 2}},
		"b@srv:2,a:1":        {units: map[string]int64{"a": 1, "b@srv": 2}},
		"a":                  {units: map[string]int64{"a": 1}},
		"a,a:2":              {units: map[string]int64{"a": 3}},
		"a:0":                {},
		"a:0,b":              {units: map[string]int64{"b": 1}},
		"a|b:2":              {units: map[string]int64{"a": 1, "b": 2}, any: true},
		"a:0|b:2":            {},
		"a|b,c":              {units: map[string]int64{"a": 1, "b": 1, "c": 1}, any: true, unjudged: "it asks for licences joined by both , and |, which cannot be judged here"},
		"a*2":                {units: map[string]int64{"a": 2}},
		"weird:name@x:y@z:3": {units: map[string]int64{"weird:name@x:y@z": 3}},
	} {
		need, err := (&jobParser{licences: map[string]licenceNeed{}}).licenceNeed([]byte(text))
		if err != nil || !maps.Equal(need.units, want.units) || need.any != want.any || need.unjudged != want.unjudged {
			t.Errorf("%s: %+v, error %v; want %+v", text, need, err, want)
		}
	}
}

func TestCountables(t *testing.T) {
	for name, c := range map[string]struct {
		field int
		text  string
		want  map[string]int64
	}{
		"22.05":                  {fieldPerNode, "gres:gpu:2", map[string]int64{"gpu": 2}},
		"with its type":          {fieldPerNode, "gres/gpu:tesla:2", map[string]int64{"gpu": 2}},
		"newer, of an equals":    {fieldPerNode, "gres/gpu:tesla=2", map[string]int64{"gpu": 2}},
		"bare":                   {fieldPerNode, "gpu:2", map[string]int64{"gpu": 2}},
		"without a count":        {fieldPerNode, "gres/gpu", map[string]int64{"gpu": 1}},
		"a type and no count":    {fieldPerNode, "gres:gpu:tesla", map[string]int64{"gpu": 1}},
		"two types of one":       {fieldPerNode, "gres:gpu:tesla:2,gres:gpu:kepler:1", map[string]int64{"gpu": 3}},
		"none of it":             {fieldPerNode, "gres:gpu:0", nil},
		"in thousands":           {fieldPerNode, "gres:mps:2K", map[string]int64{"mps": 2048}},
		"of the job, rounded up": {fieldPerJob, "gres:gpu:3", map[string]int64{"gpu": 2}},
		"of a task":              {fieldPerTask, "gres/gpu:1", map[string]int64{"gpu": 3}},
		"what else a task takes": {fieldPerTask, "cpu=2,license/vcs:1,gres/gpu=1", map[string]int64{"gpu": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			j := parseOne(t, map[int]string{c.field: c.text}) // 5 tasks on 2 nodes
			if !maps.Equal(j.Gres, c.want) || j.Unjudged != "" {
				t.Errorf("%v (%s), want %v", j.Gres, j.Unjudged, c.want)
			}
		})
	}
	if j := parseOne(t, map[int]string{fieldPerNode: "gres:a/b:1"}); j.Unjudged == "" {
		t.Error("a countable that cannot be named here is judged")
	}
}

// rows are what squeue prints for a long queue.
func rows(separate, arrays int) []byte {
	var b strings.Builder
	for i := range separate {
		b.WriteString(aRow(recordedMark, map[int]string{
			fieldID: fmt.Sprint(1000 + i), fieldArrayID: fmt.Sprint(1000 + i), fieldName: fmt.Sprintf("run_%d", i), fieldUser: fmt.Sprintf("user%d", i%100),
			fieldLicences: fmt.Sprintf("vcs:%d,sim", i%7+1), fieldFeatures: "avx512&(rhel8|rhel9)", fieldPerNode: "gres:gpu:1",
			fieldSubmitted: fmt.Sprint(1796026147 + i),
		}))
	}
	for i := range arrays {
		id := fmt.Sprint(1_000_000 + i)
		b.WriteString(aRow(recordedMark, map[int]string{fieldID: id, fieldArrayID: id, fieldArrayTasks: "1-1000%50", fieldLicences: "vcs:1"}))
	}
	return []byte(b.String())
}

func benchmarkJobs(b *testing.B, text []byte, elements int64) {
	translation := Translation{Resources: map[string]string{"vcs": "vcs"}, Licences: map[string]Licence{"vcs": {Total: 100}, "sim": {Total: 100}}, At: 1796036147_000, Grace: 5000}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	var peak uint64
	for b.Loop() {
		parsed, err := parseJobs(text, recordedMark)
		if err != nil {
			b.Fatal(err)
		}
		jobs, _ := translation.Jobs(parsed)
		sum := int64(0)
		for _, j := range parsed {
			sum += max(j.Elements, 1)
		}
		if len(jobs) != len(parsed) || sum != elements {
			b.Fatalf("%d jobs of %d rows with %d elements", len(jobs), len(parsed), sum)
		}
		runtime.ReadMemStats(&after)
		peak = max(peak, after.HeapAlloc-min(after.HeapAlloc, before.HeapAlloc))
	}
	b.ReportMetric(float64(peak)/(1<<20), "peak-MB")
}

func BenchmarkSeparateJobs(b *testing.B) { benchmarkJobs(b, rows(10_000, 0), 10_000) }

func BenchmarkJobsAndArrays(b *testing.B) { benchmarkJobs(b, rows(10_000, 90), 100_000) }

// Whatever a field holds, there are jobs or an error, and never both.
func FuzzJobs(f *testing.F) {
	for field, text := range map[int]string{
		fieldArrayTasks: "1,3,5-9:2%4", fieldMemory: "1.50Gc", fieldTRES: "cpu=1,mem=4T,node=1", fieldLicences: "a|b@c:2", fieldPerNode: "gres/gpu:t=2",
		fieldTimeLimit: "1-02:03:04", fieldOn: "n[1-3],m", fieldFeatures: "(a|b)&[c*2]", fieldPartition: "a,b", fieldReason: "ReqNodeNotAvail, x",
	} {
		f.Add(field, text)
	}
	f.Fuzz(func(t *testing.T, field int, text string) {
		if field < 0 || field >= fieldCount {
			t.Skip()
		}
		jobs, err := parseJobs([]byte(aRow(recordedMark, map[int]string{field: text})), recordedMark)
		if err != nil && jobs != nil {
			t.Fatalf("%d jobs and the error %v", len(jobs), err)
		}
		for _, j := range jobs {
			if j.Nodes < 0 || j.CPUs < 0 || j.MemoryMB < 0 || j.TimeLimit < 0 || j.Submitted <= 0 || j.Elements < 0 {
				t.Fatalf("%+v", j)
			}
		}
		view, _ := viewing.Jobs(jobs)
		for _, j := range view {
			if ps := j.ValidateShape(""); len(ps) > 0 && j.Told.Barred == "" && j.State == "waiting" {
				t.Fatalf("raises demand and cannot be judged: %v", ps)
			}
		}
	})
}

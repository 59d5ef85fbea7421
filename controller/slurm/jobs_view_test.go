package slurm

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

const viewedAt = 1796036147_000

var viewing = Translation{
	Resources: map[string]string{"vcs": "foo"},
	Licences:  map[string]Licence{"foo": {Total: 10}, "sim": {Total: 4, Used: 1}},
	At:        viewedAt, Grace: 5 * cluster.Second,
}

// aJob is a waiting job with one thing changed.
func aJob(change func(*Job)) Job {
	j := Job{
		ID: 7, Name: "job", User: "u", Partition: "main", State: "PENDING", Reason: "Priority", Priority: 5, Nodes: 1, CPUs: 1, Tasks: 1,
		MemoryMB: 100, Submitted: viewedAt - 3600_000, Eligible: viewedAt - 3600_000,
	}
	change(&j)
	return j
}

func viewOne(t *testing.T, v Translation, rows ...Job) cluster.Job {
	t.Helper()
	jobs, _ := v.Jobs(rows)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs", len(jobs))
	}
	return jobs[0]
}

// The words of a job's refusal to raise demand, or "" where it raises some.
func TestWhatIsBarred(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Job)
		says   string
	}{
		"nothing":                      {func(*Job) {}, ""},
		"held":                         {func(j *Job) { j.Reason = "JobHeldUser" }, "holds"},
		"not known":                    {func(j *Job) { j.Reason = "Moonlight" }, "not known here"},
		"just submitted":               {func(j *Job) { j.Reason, j.Submitted, j.Eligible = "None", viewedAt-1000, viewedAt-1000 }, "not looked"},
		"just eligible":                {func(j *Job) { j.Reason, j.Eligible = "None", viewedAt-1000 }, "not looked"},
		"not looked at for long":       {func(j *Job) { j.Reason = "None" }, ""},
		"looked at at once":            {func(j *Job) { j.Submitted, j.Eligible = viewedAt-1000, viewedAt-1000 }, ""},
		"in a reservation":             {func(j *Job) { j.Reservation = "r1" }, "reservation r1"},
		"unjudged":                     {func(j *Job) { j.Unjudged = "it is odd" }, "it is odd"},
		"elsewhere":                    {func(j *Job) { j.State = "REVOKED" }, "federation"},
		"features with counts":         {func(j *Job) { j.Features = "[a*1&b*2]" }, "[a*1&b*2]"},
		"features joined ambiguously":  {func(j *Job) { j.Features = "a&b|c" }, "without parentheses"},
		"a node and others":            {func(j *Job) { j.RequiredNodes, j.Nodes = []string{"n1"}, 2 }, "by name"},
		"a foreign licence, there":     {func(j *Job) { j.Licences = map[string]int64{"sim": 3} }, ""},
		"a foreign licence, short":     {func(j *Job) { j.Licences = map[string]int64{"sim": 4, "foo": 1} }, "licence sim"},
		"a licence that is gone":       {func(j *Job) { j.Licences = map[string]int64{"gone": 1} }, "licence gone"},
		"ours, however short":          {func(j *Job) { j.Licences = map[string]int64{"foo": 10} }, ""},
		"ours, more than the total":    {func(j *Job) { j.Licences = map[string]int64{"foo": 11} }, "total is 10"},
		"either, ours above the total": {func(j *Job) { j.Licences, j.AnyLicence = map[string]int64{"foo": 11, "sim": 4}, true }, "licence sim"},
		"either, one of ours":          {func(j *Job) { j.Licences, j.AnyLicence = map[string]int64{"sim": 4, "foo": 1}, true }, ""},
		"either, none of ours":         {func(j *Job) { j.Licences, j.AnyLicence = map[string]int64{"sim": 4, "gone": 1}, true }, "licence sim"},
		"either, one elsewhere":        {func(j *Job) { j.Licences, j.AnyLicence = map[string]int64{"sim": 1, "gone": 1}, true }, ""},
		"an array at its limit":        {func(j *Job) { j.ArrayID, j.Elements, j.AtOnce = 99, 5, 1 }, ""},
		"a partition without its name": {func(j *Job) { j.Partition = "a b" }, "no constraint can hold"},
	} {
		t.Run(name, func(t *testing.T) {
			j := viewOne(t, viewing, aJob(c.change))
			if got := j.Told.Barred; (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
				t.Errorf("barred %q, want %q", got, c.says)
			}
			if j.State != cluster.JobWaiting {
				t.Errorf("state %s", j.State)
			}
		})
	}
}

func TestConstraints(t *testing.T) {
	for name, c := range map[string]struct {
		features, partition string
		required            []string
		want                string
	}{
		"the partition":      {"", "main", nil, "partition:main"},
		"several partitions": {"", "main,all", nil, "(partition:main | partition:all)"},
		"and":                {"a&b", "main", nil, "a&b & partition:main"},
		"or":                 {"a|b", "main", nil, "(a|b) & partition:main"},
		"both":               {"(a|b)&c", "main", nil, "((a|b)&c) & partition:main"},
		"two in parentheses": {"(a|b)&(c|d)", "main", nil, "((a|b)&(c|d)) & partition:main"},
		"a comma is and":     {"a,b", "main", nil, "a&b & partition:main"},
		"nodes":              {"a", "main", []string{"n1", "n2"}, "a & partition:main & (node:n1 | node:n2)"},
		"one node":           {"", "main,all", []string{"n1"}, "(partition:main | partition:all) & node:n1"},
	} {
		t.Run(name, func(t *testing.T) {
			j := viewOne(t, viewing, aJob(func(j *Job) { j.Features, j.Partition, j.RequiredNodes = c.features, c.partition, c.required }))
			if j.Constraint != c.want || j.Told.Barred != "" {
				t.Errorf("constraint %q (%s), want %q", j.Constraint, j.Told.Barred, c.want)
			}
			if _, err := cluster.ParseConstraint(j.Constraint); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a partition has now bars no job, since hosts may come; what it allows does.
func TestWhatPartitionsForbid(t *testing.T) {
	v := viewing
	v.Partitions = []Partition{
		{Name: "main", State: "UP"},
		{Name: "few", State: "UP", MaxNodes: 2},
		{Name: "short", State: "UP", MaxTime: cluster.Hour},
		{Name: "closed", State: "DOWN"},
		{Name: "off", State: "INACTIVE"},
		{Name: "emptying", State: "DRAIN"},
	}
	for name, c := range map[string]struct {
		reason, partition string
		nodes             int64
		limit             cluster.Duration
		says              string
	}{
		"more than there are":      {"PartitionNodeLimit", "main", 30, 0, ""},
		"no such shape":            {"PartitionConfig", "main", 1, 0, ""},
		"as many as may":           {"PartitionConfig", "few", 2, 0, ""},
		"more than may":            {"PartitionNodeLimit", "few", 3, 0, "few lets a job have 2"},
		"more than may, otherwise": {"PartitionConfig", "few", 3, 0, "few lets a job have 2"},
		"one of two would do":      {"PartitionNodeLimit", "few,main", 3, 0, ""},
		"none of two would do":     {"PartitionNodeLimit", "few,closed", 3, 0, "closed is DOWN"},
		"as long as may":           {"PartitionConfig", "short", 1, cluster.Hour, ""},
		"longer than may":          {"PartitionConfig", "short", 1, cluster.Hour + 1, "more time"},
		"as long as the partition": {"PartitionConfig", "short", 1, 0, ""},
		"down":                     {"PartitionConfig", "closed", 1, 0, "DOWN"},
		"inactive":                 {"PartitionConfig", "off", 1, 0, "INACTIVE"},
		"takes no new jobs":        {"PartitionConfig", "emptying", 1, 0, ""},
		"not known":                {"PartitionConfig", "gone", 1, 0, ""},
		"another reason":           {"Resources", "few", 3, 0, ""},
		"what Slurm says of time":  {"PartitionTimeLimit", "main", 1, 0, "more time"},
	} {
		j := viewOne(t, v, aJob(func(j *Job) { j.Reason, j.Partition, j.Nodes, j.TimeLimit = c.reason, c.partition, c.nodes, c.limit }))
		if got := j.Told.Barred; (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: barred %q, want %q", name, got, c.says)
		}
	}
}

// A constraint of ours means what Slurm's features mean, whichever way they are joined.
func TestConstraintsMeanTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		ands := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(names), 1, 3), 1, 3).Draw(t, "ands of ors")
		var groups []string
		for _, ors := range ands {
			group := strings.Join(ors, "|")
			if len(ors) > 1 && len(ands) > 1 {
				group = "(" + group + ")"
			}
			groups = append(groups, group)
		}
		jobs, _ := viewing.Jobs([]Job{aJob(func(j *Job) { j.Features = strings.Join(groups, "&") })})
		constraint, err := cluster.ParseConstraint(jobs[0].Constraint)
		if err != nil || jobs[0].Told.Barred != "" {
			t.Fatalf("%q: error %v, barred %q", jobs[0].Constraint, err, jobs[0].Told.Barred)
		}
		has := rapid.SliceOf(rapid.SampledFrom(append(names, "partition:main"))).Draw(t, "features of a host")
		want := slices.Contains(has, "partition:main")
		for _, ors := range ands {
			want = want && slices.ContainsFunc(ors, func(f string) bool { return slices.Contains(has, f) })
		}
		if got := constraint.Holds(func(f string) bool { return slices.Contains(has, f) }); got != want {
			t.Fatalf("%q holds %v on %v, want %v", jobs[0].Constraint, got, has, want)
		}
	})
}

func TestShapes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Job)
		want   cluster.JobSpec
	}{
		"cpus are rounded up":      {func(j *Job) { j.Nodes, j.CPUs = 2, 5 }, cluster.JobSpec{Nodes: 2, CPUs: 3, MemoryMB: 100}},
		"memory for each cpu":      {func(j *Job) { j.Nodes, j.CPUs, j.MemoryPerCPU = 2, 5, true }, cluster.JobSpec{Nodes: 2, CPUs: 3, MemoryMB: 300}},
		"exclusive":                {func(j *Job) { j.Exclusive = true }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100, Exclusive: true}},
		"countables":               {func(j *Job) { j.Gres = map[string]int64{"gpu": 2} }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100, Countables: map[string]int64{"gpu": 2}}},
		"a begin time":             {func(j *Job) { j.Eligible = viewedAt + 5000 }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100, NotBefore: viewedAt + 5000}},
		"tokens by our names":      {func(j *Job) { j.Licences = map[string]int64{"foo": 2, "sim": 1} }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100, Tokens: map[string]int64{"vcs": 2}}},
		"of two, the one of ours":  {func(j *Job) { j.Licences, j.AnyLicence = map[string]int64{"foo": 2, "gone": 1}, true }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100, Tokens: map[string]int64{"vcs": 2}}},
		"of two, another is there": {func(j *Job) { j.Licences, j.AnyLicence = map[string]int64{"foo": 2, "sim": 1}, true }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100}},
		"an array":                 {func(j *Job) { j.ArrayID, j.Elements, j.ArrayTasks = 7, 99, "2-100" }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100, Array: 99}},
		"an array with a limit":    {func(j *Job) { j.ArrayID, j.Elements, j.AtOnce, j.ArrayTasks = 7, 99, 10, "2-100%10" }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100, Array: 10}},
		"a limit above the rest":   {func(j *Job) { j.ArrayID, j.Elements, j.AtOnce, j.ArrayTasks = 7, 3, 10, "98-100%10" }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100, Array: 3}},
		"an element by itself":     {func(j *Job) { j.ArrayID, j.Elements, j.ArrayTasks = 3, 1, "9" }, cluster.JobSpec{Nodes: 1, CPUs: 1, MemoryMB: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			j := viewOne(t, viewing, aJob(c.change))
			c.want.Name, c.want.Queue, c.want.Priority, c.want.Constraint = "job", "main", 5, "partition:main"
			if !reflect.DeepEqual(j.JobSpec, c.want) {
				t.Errorf("%+v, want\n%+v", j.JobSpec, c.want)
			}
		})
	}
	both := viewing
	both.Resources = map[string]string{"vcs": "foo", "verdi": "bar"}
	both.Licences = map[string]Licence{"foo": {Total: 10}, "bar": {Total: 10}}
	j := viewOne(t, both, aJob(func(j *Job) { j.Licences, j.AnyLicence = map[string]int64{"foo": 2, "bar": 1}, true }))
	if want := []map[string]int64{{"verdi": 1}, {"vcs": 2}}; !reflect.DeepEqual(j.Alternatives, want) || j.Tokens != nil {
		t.Errorf("alternatives %v beside %v, want %v", j.Alternatives, j.Tokens, want)
	}
	whole := viewing
	whole.WholeNodes = true
	if !viewOne(t, whole, aJob(func(*Job) {})).Exclusive {
		t.Error("a job that gets whole nodes is not exclusive")
	}
}

func TestElementsThatRunCountAgainstTheLimit(t *testing.T) {
	rows := []Job{
		aJob(func(j *Job) { j.ArrayID, j.Elements, j.AtOnce, j.ArrayTasks = 7, 97, 4, "4-100%4" }),
		aJob(func(j *Job) {
			j.ID, j.ArrayID, j.Elements, j.ArrayTasks, j.State, j.On = 8, 7, 1, "1", "RUNNING", []string{"n1"}
		}),
		aJob(func(j *Job) {
			j.ID, j.ArrayID, j.Elements, j.ArrayTasks, j.State, j.On = 9, 7, 1, "2", "SUSPENDED", []string{"n1"}
		}),
		aJob(func(j *Job) {
			j.ID, j.ArrayID, j.Elements, j.ArrayTasks, j.State, j.On = 10, 7, 1, "3", "COMPLETING", []string{"n1"}
		}),
	}
	jobs, _ := viewing.Jobs(rows)
	if len(jobs) != 4 || jobs[0].Array != 1 || jobs[0].Told.Barred != "" || jobs[0].Told.Name != "7_[4-100%4]" || jobs[2].Told.Name != "7_2" {
		t.Errorf("%+v", jobs)
	}
	rows = append(rows, aJob(func(j *Job) { j.ID, j.ArrayID, j.Elements, j.ArrayTasks, j.State = 11, 7, 1, "4", "CONFIGURING" }))
	jobs, _ = viewing.Jobs(rows)
	if jobs[0].Array != 97 || jobs[0].Told.Barred == "" {
		t.Errorf("%d elements may start, barred %q", jobs[0].Array, jobs[0].Told.Barred)
	}
}

func TestJobsThatHaveHostsRun(t *testing.T) {
	for state := range holdsHosts {
		j := viewOne(t, viewing, aJob(func(j *Job) {
			j.State, j.Reason, j.On, j.Nodes, j.CPUs, j.Started = state, "None", []string{"n1", "n2"}, 2, 8, viewedAt-1000
			j.Licences = map[string]int64{"foo": 2}
		}))
		if j.State != cluster.JobRunning || j.Host != "n1" || len(j.Hosts) != 2 || j.CPUs != 4 || j.Tokens["vcs"] != 2 || j.Told.Barred != "" || j.Started == 0 {
			t.Errorf("%s: %+v", state, j)
		}
		if (j.Told.Reason == "") != (state == "RUNNING") {
			t.Errorf("%s: told %q", state, j.Told.Reason)
		}
	}
}

func TestHeterogeneousJobsAreWhole(t *testing.T) {
	first := aJob(func(j *Job) {
		j.ID, j.HetID, j.Nodes, j.CPUs, j.MemoryMB, j.TimeLimit, j.Licences = 18, 18, 1, 1, 4000, 5000, map[string]int64{"foo": 1}
	})
	second := aJob(func(j *Job) {
		j.ID, j.HetID, j.HetOffset, j.Nodes, j.CPUs, j.TimeLimit, j.Licences = 19, 18, 1, 2, 8, 6000, map[string]int64{"foo": 3}
		j.Gres = map[string]int64{"gpu": 2}
	})
	j := viewOne(t, viewing, second, first)
	if j.ID != 18 || j.Nodes != 3 || j.CPUs != 4 || j.MemoryMB != 4000 || j.Tokens["vcs"] != 4 || j.Countables["gpu"] != 2 || j.TimeLimit != 6000 || j.Told.Barred != "" {
		t.Errorf("%+v, barred %q", j, j.Told.Barred)
	}
	if first.Licences["foo"] != 1 || second.Gres["gpu"] != 2 {
		t.Error("the rows were changed")
	}
	other := second
	other.Partition = "gpu"
	if j := viewOne(t, viewing, first, other); !strings.Contains(j.Told.Barred, "different hosts") {
		t.Errorf("components of two partitions: barred %q", j.Told.Barred)
	}
	held := second
	held.Reason = "JobHeldUser"
	if j := viewOne(t, viewing, first, held); j.Told.Barred == "" || j.Told.Reason != "JobHeldUser" {
		t.Errorf("a held component: %+v", j.Told)
	}
	begun := first
	begun.State, begun.On = "RUNNING", []string{"n1"}
	jobs, _ := viewing.Jobs([]Job{begun, second})
	if len(jobs) != 2 || jobs[1].Told.Barred == "" {
		t.Errorf("a component that waits for the others: %+v", jobs)
	}
}

// An id that is given again is another job, and jobs are in order whatever the order of the rows is.
func TestJobsAreKeyedByIDAndTime(t *testing.T) {
	again := aJob(func(j *Job) { j.Submitted += 5000 })
	later := aJob(func(j *Job) { j.ID = 9 })
	jobs, _ := viewing.Jobs([]Job{later, again, aJob(func(*Job) {})})
	if len(jobs) != 3 || jobs[0].ID != 7 || jobs[1].Submitted != jobs[0].Submitted+5000 || jobs[2].ID != 9 {
		t.Errorf("%+v", jobs)
	}
	het := func(submitted cluster.Time) Job {
		return aJob(func(j *Job) { j.HetID, j.Submitted = 7, submitted })
	}
	if jobs, _ := viewing.Jobs([]Job{het(1000), het(2000)}); len(jobs) != 2 {
		t.Errorf("%d jobs of two heterogeneous ones with the same id", len(jobs))
	}
}

func TestForeignLicencesStayVisible(t *testing.T) {
	_, warnings := viewing.Jobs([]Job{aJob(func(j *Job) { j.Licences = map[string]int64{"sim": 1, "foo": 1} })})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "licence sim") {
		t.Errorf("warnings %q", warnings)
	}
}

// The whole recorded queue is read as one that people would expect.
func TestRecordedQueue(t *testing.T) {
	var rows []Job
	for _, j := range recordedJobs(t) {
		rows = append(rows, j)
	}
	jobs, _ := viewing.Jobs(rows)
	wants, holds := map[string]bool{}, map[string]bool{}
	for _, j := range jobs {
		switch {
		case j.State == cluster.JobRunning:
			holds[j.Name] = true
		case j.Told.Barred == "":
			wants[j.Name] = true
		}
	}
	sorted := func(m map[string]bool) string {
		var names []string
		for n := range m {
			names = append(names, n)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	if got, want := sorted(wants), "arr2 dl excl2 feat gpt gpus gres lic mpc req toomany zero"; got != want {
		t.Errorf("%s raise demand, want %s", got, want)
	}
	if got, want := sorted(holds), "arr arr2 excl parts running we|ird\nname"; got != want {
		t.Errorf("%s have hosts, want %s", got, want)
	}
}

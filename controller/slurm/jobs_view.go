package slurm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

// Translation is what turns Slurm's jobs into ours.
type Translation struct {
	// Resources maps our names of shared resources to Slurm's of licences.
	Resources map[string]string
	// Licences are what Slurm has, by its names.
	Licences map[string]Licence
	// Partitions are Slurm's, whose limits keep a job from starting however many hosts there are.
	Partitions []Partition
	// At is when the jobs were read, Grace how long Slurm is given to look at a new one.
	At    cluster.Time
	Grace cluster.Duration
	// WholeNodes tells that Slurm gives jobs only whole nodes.
	WholeNodes bool
}

// translator holds what is worked out once for all jobs.
type translator struct {
	Translation
	ours        map[string]string // Slurm's name to ours
	partitions  map[string]Partition
	running     map[int64]int64      // elements that run, by array
	begun       map[backend.Key]bool // heterogeneous jobs of which a component runs
	constraints map[constraintKey]judged
	foreign     map[string]int64 // jobs that wait with a need for a licence that is no shared resource
	names       []string         // of one job's licences
}

type constraintKey struct {
	features, partition, required string
	enough                        bool
}

type judged struct{ constraint, unjudged string }

// Jobs answers Slurm's rows as jobs of ours, ordered by id: one for each that waits,
// for all waiting elements of an array together, for each heterogeneous one that
// waits as a whole, and for each that has hosts. Warnings tell of what many of them want and is not ours to give.
func (t Translation) Jobs(rows []Job) (jobs []cluster.Job, warnings []string) {
	tr := translator{
		Translation: t, ours: make(map[string]string, len(t.Resources)), running: map[int64]int64{}, begun: map[backend.Key]bool{},
		partitions:  make(map[string]Partition, len(t.Partitions)),
		constraints: map[constraintKey]judged{}, foreign: map[string]int64{},
	}
	for our, name := range t.Resources {
		tr.ours[name] = our
	}
	for _, p := range t.Partitions {
		tr.partitions[p.Name] = p
	}
	tr.count(rows)
	jobs = make([]cluster.Job, 0, len(rows))
	parts := map[backend.Key][]*Job{}
	for i := range rows {
		j := &rows[i]
		switch {
		case holdsHosts[j.State]:
			jobs = append(jobs, tr.runs(j))
		case j.HetID != 0:
			parts[het(j)] = append(parts[het(j)], j)
		default:
			jobs = append(jobs, tr.waits(j))
		}
	}
	for key, components := range parts {
		jobs = append(jobs, tr.whole(key, components))
	}
	slices.SortFunc(jobs, func(a, b cluster.Job) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Submitted, b.Submitted))
	})
	return jobs, tr.warnings()
}

func het(j *Job) backend.Key { return backend.Key{ID: j.HetID, Submitted: j.Submitted} }

func (t *translator) count(rows []Job) {
	for i := range rows {
		j := &rows[i]
		if !holdsHosts[j.State] {
			continue
		}
		if j.ArrayID != 0 {
			t.running[j.ArrayID]++
		}
		if j.HetID != 0 {
			t.begun[het(j)] = true
		}
	}
}

func (t *translator) warnings() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t.foreign)) {
		all = append(all, fmt.Sprintf("%d waiting jobs ask for licence %s, which is no shared resource here, so that none of it is borrowed for them.", t.foreign[name], name))
	}
	return all
}

// spec answers what a row asks for, but for its tokens and constraint.
func (t *translator) spec(j *Job) cluster.JobSpec {
	s := cluster.JobSpec{
		Name: j.Name, Queue: j.Partition, Nodes: max(j.Nodes, 1), Countables: j.Gres, Exclusive: j.Exclusive || t.WholeNodes,
		Priority: j.Priority, TimeLimit: j.TimeLimit,
	}
	s.CPUs = ceil(j.CPUs, s.Nodes)
	s.MemoryMB = j.MemoryMB
	if j.MemoryPerCPU {
		s.MemoryMB = times(s.MemoryMB, s.CPUs)
	}
	if j.Eligible > j.Submitted {
		s.NotBefore = j.Eligible
	}
	return s
}

func (t *translator) runs(j *Job) cluster.Job {
	out := cluster.Job{
		ID: j.ID, JobSpec: t.spec(j), User: j.User, State: cluster.JobRunning, Hosts: j.On, Submitted: j.Submitted, Started: j.Started,
		Told: &cluster.Told{Name: nameOf(j), Reason: told(j)},
	}
	out.Nodes = max(int64(len(j.On)), out.Nodes)
	if len(j.On) > 0 {
		out.Host = j.On[0]
	}
	out.NotBefore = 0
	out.Tokens, out.Alternatives, _ = t.tokens(j)
	return out
}

// told answers why a job waits, or in which state one is that has hosts and does not just run.
func told(j *Job) string {
	if holdsHosts[j.State] {
		if j.State == "RUNNING" {
			return ""
		}
		return j.State
	}
	return j.Reason
}

const longestName = 60 // bytes

// nameOf answers how Slurm calls a job, as in 12_[3-7%2] or 12+1; empty where that is its id.
func nameOf(j *Job) string {
	switch {
	case j.HetID != 0:
		return fmt.Sprintf("%d+%d", j.HetID, j.HetOffset)
	case j.ArrayID == 0:
		return ""
	case j.Elements == 1 && j.AtOnce == 0:
		return fmt.Sprintf("%d_%s", j.ArrayID, j.ArrayTasks)
	}
	tasks := j.ArrayTasks
	if len(tasks) > longestName {
		tasks = tasks[:longestName] + "..."
	}
	return fmt.Sprintf("%d_[%s]", j.ArrayID, tasks)
}

func (t *translator) waits(j *Job) cluster.Job {
	out := cluster.Job{ID: j.ID, JobSpec: t.spec(j), User: j.User, State: cluster.JobWaiting, Submitted: j.Submitted}
	var barred barrier
	meaning := meaningOf(j.Reason)
	barred.where(meaning.Barred(), meaning.Why)
	if meaning.Partition {
		why := t.forbidden(j)
		barred.where(why != "", why)
	}
	barred.where(j.State == "REVOKED", "another cluster of the federation runs it")
	barred.where(j.Unjudged != "", j.Unjudged)
	if j.Reservation != "" {
		barred.where(true, "it may run in the reservation "+j.Reservation+" only, to which hosts are not added")
	}
	barred.where(meaning.Unlooked && t.At.Sub(max(j.Submitted, j.Eligible)) < t.Grace, meaning.Why)
	var lacking string
	out.Tokens, out.Alternatives, lacking = t.tokens(j)
	barred.where(lacking != "", lacking)
	where := t.constraint(j)
	out.Constraint = where.constraint
	barred.where(where.unjudged != "", where.unjudged)
	if j.ArrayID != 0 && (j.Elements > 1 || j.AtOnce > 0) {
		out.Array = j.Elements
		if j.AtOnce > 0 {
			out.Array = min(j.Elements, j.AtOnce-t.running[j.ArrayID])
		}
		if out.Array < 1 {
			barred.where(true, meanings["JobArrayTaskLimit"].Why)
			out.Array = j.Elements
		}
	}
	out.Told = &cluster.Told{Name: nameOf(j), Reason: j.Reason, Barred: string(barred), Expected: j.Expected}
	return out
}

// forbidden says why none of a job's partitions would run it, however many hosts it had; "" where one may.
func (t *translator) forbidden(j *Job) (why string) {
	for name := range strings.SplitSeq(j.Partition, ",") {
		p, known := t.partitions[name]
		if !known {
			return ""
		}
		if why = p.forbids(j); why == "" {
			return ""
		}
	}
	return why
}

// forbids says why a partition would not run a job, however many hosts it had; "" where it may.
func (p Partition) forbids(j *Job) string {
	switch {
	case p.State == "DOWN" || p.State == "INACTIVE":
		return fmt.Sprintf("its partition %s is %s", p.Name, p.State)
	case p.MaxNodes > 0 && j.Nodes > p.MaxNodes:
		return fmt.Sprintf("it asks for %d nodes, and its partition %s lets a job have %d", j.Nodes, p.Name, p.MaxNodes)
	case p.MaxTime > 0 && j.TimeLimit > p.MaxTime:
		return fmt.Sprintf("it asks for more time than its partition %s lets a job have, which is %s", p.Name, p.MaxTime)
	}
	return ""
}

// barrier is the first reason for which a job raises no demand.
type barrier string

func (b *barrier) where(so bool, why string) {
	if so && *b == "" {
		*b = barrier(why)
	}
}

// usable is how many tokens of a licence jobs may still take.
func (l Licence) usable() int64 { return max(0, l.Total-l.Used-l.Reserved-max(0, l.Deficit)) }

// tokens answers what a job takes of our shared resources. Licences that are none of
// ours cannot be borrowed: where they are short the job is barred.
func (t *translator) tokens(j *Job) (tokens map[string]int64, alternatives []map[string]int64, lacking string) {
	if len(j.Licences) == 0 {
		return nil, nil, ""
	}
	waits := !holdsHosts[j.State]
	elsewhere := false
	t.names = slices.AppendSeq(t.names[:0], maps.Keys(j.Licences))
	slices.Sort(t.names)
	for _, name := range t.names {
		units := j.Licences[name]
		our, isOurs := t.ours[name]
		never := ""
		if isOurs && waits {
			never = t.never(name, units)
		}
		switch {
		case never != "":
			lacking = never
		case isOurs && j.AnyLicence:
			alternatives = append(alternatives, map[string]int64{our: units})
		case isOurs:
			if tokens == nil {
				tokens = make(map[string]int64, len(j.Licences))
			}
			tokens[our] += units
		case !waits:
		case t.Licences[name].usable() >= units:
			t.foreign[name]++
			elsewhere = true
		default:
			t.foreign[name]++
			lacking = fmt.Sprintf("it needs %d of licence %s, which is short in Slurm and no shared resource here", units, name)
		}
	}
	if !j.AnyLicence {
		return tokens, nil, lacking
	}
	switch {
	case elsewhere: // one that it may take as well is there
		return nil, nil, ""
	case len(alternatives) == 1:
		return alternatives[0], nil, ""
	case len(alternatives) > 0:
		return nil, alternatives, ""
	}
	return nil, nil, lacking
}

// never says why Slurm cannot give so many units of one of our licences, however many are borrowed; "" where it can.
func (t *translator) never(name string, units int64) string {
	switch l, there := t.Licences[name]; {
	case !there:
		return fmt.Sprintf("it needs %d of licence %s, which is gone from Slurm's configuration", units, name)
	case units > l.Total:
		return fmt.Sprintf("it needs %d of licence %s, of which Slurm's total is %d; have that raised, or ask for less", units, name, l.Total)
	}
	return ""
}

// constraint answers on which hosts a job may run: its features, its partitions and
// the nodes that it names.
func (t *translator) constraint(j *Job) judged {
	key := constraintKey{features: j.Features, partition: j.Partition, enough: int64(len(j.RequiredNodes)) >= j.Nodes}
	if len(j.RequiredNodes) > 0 {
		key.required = strings.Join(j.RequiredNodes, ",")
	}
	if known, ok := t.constraints[key]; ok {
		return known
	}
	features, unjudged := translate(j.Features)
	if len(j.RequiredNodes) > 0 && !key.enough {
		unjudged = "it asks for nodes by name and for others beside, which cannot be judged here"
	}
	partitions := strings.FieldsFunc(j.Partition, func(r rune) bool { return r == ',' })
	answer := judged{allOf(features, either(backend.InPartition, partitions), either(backend.AtNode, j.RequiredNodes)), unjudged}
	if _, err := cluster.ParseConstraint(answer.constraint); err != nil {
		answer = judged{"", fmt.Sprintf("its partition or its nodes have names that no constraint can hold: %v", err)}
	}
	t.constraints[key] = answer
	return answer
}

// whole answers a heterogeneous job that waits as one: as many hosts as all its
// components want, each with the most that any of them wants of one.
func (t *translator) whole(key backend.Key, components []*Job) cluster.Job {
	slices.SortFunc(components, func(a, b *Job) int { return cmp.Compare(a.HetOffset, b.HetOffset) })
	out := t.waits(components[0])
	out.ID = key.ID
	var barred barrier
	barred.where(t.begun[key], "some of its components have hosts already")
	barred.where(out.Told.Barred != "", out.Told.Barred)
	for _, c := range components[1:] {
		part := t.waits(c)
		barred.where(part.Told.Barred != "", part.Told.Barred)
		barred.where(part.Constraint != out.Constraint, "its components may run on different hosts, which cannot be judged here")
		barred.where(len(part.Alternatives) > 0 && len(out.Alternatives) > 0, "several of its components take one licence of several, which cannot be judged here")
		out.Nodes += part.Nodes
		out.CPUs, out.MemoryMB = max(out.CPUs, part.CPUs), max(out.MemoryMB, part.MemoryMB)
		out.Countables = most(out.Countables, part.Countables)
		out.Exclusive = out.Exclusive || part.Exclusive
		out.Priority, out.NotBefore = max(out.Priority, part.Priority), max(out.NotBefore, part.NotBefore)
		out.Tokens = sums(out.Tokens, part.Tokens)
		out.Alternatives = append(slices.Clip(out.Alternatives), part.Alternatives...)
		out.TimeLimit = longer(out.TimeLimit, part.TimeLimit)
		out.Told.Expected = max(out.Told.Expected, part.Told.Expected)
		if meaningOf(out.Told.Reason).Hosts && part.Told.Barred != "" {
			out.Told.Reason = part.Told.Reason
		}
	}
	out.Told.Name, out.Told.Barred = fmt.Sprintf("%d+", key.ID), string(barred)
	return out
}

// longer answers the longer of two limits, of which 0 is none.
func longer(a, b cluster.Duration) cluster.Duration {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

func sums(a, b map[string]int64) map[string]int64 {
	if len(a) == 0 {
		return b
	}
	sum := maps.Clone(a)
	for name, n := range b {
		sum[name] += n
	}
	return sum
}

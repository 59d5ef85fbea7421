package slurm

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// Fields of one row, in the order in which squeue prints them. The name is the last,
// since people choose it freely: only what follows it must not be found in it.
const (
	fieldID = iota
	fieldArrayID
	fieldArrayTasks
	fieldHetID
	fieldHetOffset
	fieldUser
	fieldPartition
	fieldState
	fieldReason
	fieldPriority
	fieldNodes
	fieldCPUs
	fieldTasks
	fieldMemory
	fieldFeatures
	fieldLicences
	fieldTRES
	fieldPerJob
	fieldPerNode
	fieldPerSocket
	fieldPerTask
	fieldTimeLimit
	fieldSubmitted
	fieldEligible
	fieldStarted
	fieldRequired
	fieldOn
	fieldReservation
	fieldOversubscribe
	fieldName
	fieldCount
)

var fieldNames = [fieldCount]string{
	"JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "HetJobOffset", "UserName", "Partition",
	"State", "Reason", "PriorityLong", "NumNodes", "NumCPUs", "NumTasks", "MinMemory", "Feature",
	"Licenses", "tres-alloc", "tres-per-job", "tres-per-node", "tres-per-socket", "tres-per-task", "TimeLimit",
	"SubmitTime", "EligibleTime", "StartTime", "ReqNodes", "NodeList", "Reservation", "OverSubscribe",
	"Name",
}

const (
	fieldEnd = '\x1f'
	rowEnd   = '\x1e'
)

// Jobs reads every job that waits or runs, an array's waiting elements as one, in
// the order in which Slurm prints them. Jobs with the same wishes share their maps and lists.
// Where one row cannot be read there is an error, which names the row and the field, and nothing else.
func (c Commands) Jobs(ctx context.Context) ([]Job, error) {
	mark, err := newMark()
	if err != nil {
		return nil, err
	}
	// Without a list of states squeue shows all that are live; with one it leaves out those that have flags beside.
	text, err := c.Run(ctx, "squeue", "--noheader", "--all", "--local", "--noconvert", "--Format="+jobFormat(mark))
	if err != nil {
		return nil, err
	}
	return parseJobs(text, mark)
}

// newMark answers what ends each row of one call: nobody who names a job can know it,
// so that no name ends its own row and writes another.
func newMark() (string, error) {
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("draw the mark that ends a row: %w", err)
	}
	return string(rowEnd) + hex.EncodeToString(random), nil
}

func jobFormat(mark string) string {
	var b strings.Builder
	for i, name := range fieldNames {
		b.WriteString(name)
		b.WriteByte(':')
		if i == fieldName {
			b.WriteString(mark)
			break
		}
		b.WriteByte(fieldEnd)
		b.WriteByte(',')
	}
	return b.String()
}

// jobParser reads rows. What many rows say alike it makes once.
type jobParser struct {
	fields   [fieldCount][]byte
	known    map[string]string
	licences map[string]licenceNeed
	gres     map[string]map[string]int64
	hosts    map[string][]string
}

func parseJobs(text []byte, mark string) ([]Job, error) {
	end := []byte(mark)
	jobs := make([]Job, 0, bytes.Count(text, end))
	p := jobParser{known: map[string]string{}, licences: map[string]licenceNeed{}, gres: map[string]map[string]int64{}, hosts: map[string][]string{}}
	for row := 1; ; row++ {
		text = bytes.TrimPrefix(text, []byte("\n"))
		if len(text) == 0 {
			return jobs, nil
		}
		line, rest, ok := bytes.Cut(text, end)
		if !ok {
			return nil, fmt.Errorf("squeue: row %d has no end; read again, and if it stays, look at what squeue prints", row)
		}
		var job Job
		live, err := p.row(line, &job)
		if err != nil {
			return nil, fmt.Errorf("squeue: row %d (job %s): %w", row, printable(p.fields[fieldID]), err)
		}
		if live {
			jobs = append(jobs, job)
		}
		text = rest
	}
}

// printable answers a short text that is safe in an error.
func printable(text []byte) string { return strconv.QuoteToASCII(string(text[:min(len(text), 80)])) }

// row reads one job; it tells whether the job is a live one.
func (p *jobParser) row(line []byte, j *Job) (live bool, err error) {
	p.fields = [fieldCount][]byte{}
	for i := range fieldName {
		var ok bool
		if p.fields[i], line, ok = bytes.Cut(line, []byte{fieldEnd}); !ok {
			return false, fmt.Errorf("it ends after field %s, and %d should follow", fieldNames[i], fieldName-i)
		}
	}
	p.fields[fieldName] = line
	var known bool
	j.State = p.text(fieldState)
	if live, known = liveStates[j.State]; !known {
		return false, p.fault(fieldState, errors.New("is no state that is known here"))
	}
	if !live {
		return false, nil
	}
	p.texts(j)
	if err = p.numbers(j); err == nil {
		err = p.elements(j)
	}
	if err == nil {
		err = p.times(j)
	}
	if err == nil {
		err = p.memory(j)
	}
	if err == nil {
		err = p.needs(j)
	}
	if err == nil {
		err = p.places(j)
	}
	return true, err
}

func (p *jobParser) fault(field int, err error) error {
	return fmt.Errorf("field %s: %s %w", fieldNames[field], printable(p.fields[field]), err)
}

// isEmpty tells of the words by which Slurm says that there is nothing.
func isEmpty(text []byte) bool {
	switch string(text) {
	case "", "(null)", "N/A", "NONE", "None", "Unknown":
		return true
	}
	return false
}

// text answers a field, as one text for all rows that say the same.
func (p *jobParser) text(field int) string {
	raw := p.fields[field]
	if isEmpty(raw) {
		return ""
	}
	return p.same(raw)
}

func (p *jobParser) same(raw []byte) string {
	if text, ok := p.known[string(raw)]; ok {
		return text
	}
	text := string(raw)
	p.known[text] = text
	return text
}

func (p *jobParser) texts(j *Job) {
	j.User, j.Partition, j.Features, j.Reservation = p.text(fieldUser), p.text(fieldPartition), p.text(fieldFeatures), p.text(fieldReservation)
	j.Reason, j.Name = p.same(p.fields[fieldReason]), p.same(p.fields[fieldName])
	j.Exclusive = string(p.fields[fieldOversubscribe]) == "NO"
}

var (
	errNumber = errors.New("is not a whole number, or too large a one")
	errMemory = errors.New("is not an amount of memory such as 4000M")
)

func (p *jobParser) numbers(j *Job) error {
	for _, f := range [...]struct {
		field    int
		to       *int64
		optional bool
	}{
		{fieldID, &j.ID, false},
		{fieldArrayID, &j.ArrayID, true},
		{fieldHetID, &j.HetID, true},
		{fieldHetOffset, &j.HetOffset, true},
		{fieldPriority, &j.Priority, true},
		{fieldNodes, &j.Nodes, false},
		{fieldCPUs, &j.CPUs, false},
		{fieldTasks, &j.Tasks, true},
	} {
		if f.optional && isEmpty(p.fields[f.field]) {
			continue
		}
		n, err := whole(p.fields[f.field])
		if err == nil && n > math.MaxUint32 { // Slurm counts in 32 bits
			err = errNumber
		}
		if err != nil {
			return p.fault(f.field, err)
		}
		*f.to = n
	}
	if j.ID == 0 {
		return p.fault(fieldID, errors.New("is no job's id"))
	}
	return nil
}

// elements reads which elements of an array the row stands for.
func (p *jobParser) elements(j *Job) error {
	raw := p.fields[fieldArrayTasks]
	if isEmpty(raw) {
		j.ArrayID = 0 // of a job that is no array Slurm repeats the id
		return nil
	}
	var err error
	if j.Elements, j.AtOnce, err = parseElements(raw); err != nil {
		return p.fault(fieldArrayTasks, err)
	}
	j.ArrayTasks = p.same(raw)
	return nil
}

// parseElements counts a list such as 1,3,5-9:2%4: five elements, of which four may run at once.
func parseElements(text []byte) (count, atOnce int64, err error) {
	list, most, limited := bytes.Cut(text, []byte{'%'})
	if limited {
		if atOnce, err = whole(most); err != nil {
			return 0, 0, err
		}
	}
	if bytes.HasSuffix(list, []byte("...")) {
		return 0, 0, errors.New("is cut short by Slurm; SLURM_BITSTR_LEN=0 should have kept it from that")
	}
	for more := true; more; {
		var item []byte
		item, list, more = bytes.Cut(list, []byte{','})
		n, err := elementsOf(item)
		if err != nil {
			return 0, 0, err
		}
		count += n
	}
	return count, atOnce, nil
}

func elementsOf(item []byte) (int64, error) {
	ends, by, stepped := bytes.Cut(item, []byte{':'})
	first, last, many := bytes.Cut(ends, []byte{'-'})
	from, err := whole(first)
	if err != nil || !many {
		return 1, err
	}
	to, err := whole(last)
	if err != nil {
		return 0, err
	}
	step := int64(1)
	if stepped {
		if step, err = whole(by); err != nil {
			return 0, err
		}
	}
	if to < from || step == 0 {
		return 0, fmt.Errorf("has the range %q, which holds nothing", item)
	}
	return (to-from)/step + 1, nil
}

func (p *jobParser) times(j *Job) error {
	for _, f := range [...]struct {
		field int
		to    *cluster.Time
	}{{fieldSubmitted, &j.Submitted}, {fieldEligible, &j.Eligible}, {fieldStarted, &j.Started}} {
		if isEmpty(p.fields[f.field]) {
			continue
		}
		seconds, err := whole(p.fields[f.field])
		if err != nil || seconds > mostSeconds {
			return p.fault(f.field, errors.New("is not a time in seconds since 1970"))
		}
		*f.to = cluster.Time(seconds * 1000)
	}
	if j.Submitted == 0 {
		return p.fault(fieldSubmitted, errors.New("is no time, and without it jobs that were given the same id cannot be told apart"))
	}
	if !holdsHosts[j.State] {
		j.Started, j.Expected = 0, j.Started
	}
	limit, err := durationOf(p.same(p.fields[fieldTimeLimit]))
	if err != nil {
		return p.fault(fieldTimeLimit, err)
	}
	if limit <= longestLimit {
		j.TimeLimit = limit
	}
	return nil
}

// longestLimit is the longest limit that is one; those who mean none write years.
const longestLimit = 10 * 366 * 24 * cluster.Hour

const mostSeconds = math.MaxInt64 / 1000 / 1000 // so that milliseconds, and sums of some of them, are whole numbers

// memory reads what the job wants of memory. Whether that is for each node or for
// each cpu squeue does not say; the sum over all of them does.
func (p *jobParser) memory(j *Job) error {
	raw := p.fields[fieldMemory]
	least, kind, err := parseMemory(raw)
	if err != nil {
		return p.fault(fieldMemory, err)
	}
	sum, nodes, cpus, err := parseTotals(p.fields[fieldTRES])
	if err != nil {
		return p.fault(fieldTRES, err)
	}
	switch {
	case least == 0: // all that a node has, or memory is not counted
		j.MemoryMB = ceil(sum, nodes)
	default:
		j.MemoryMB = least
		j.MemoryPerCPU = kind == 'c' || kind == 0 && sum != times(least, max(nodes, 1)) && sum == times(least, max(cpus, 1))
	}
	return nil
}

// ceil answers n / by, rounded up.
func ceil(n, by int64) int64 {
	by = max(by, 1)
	return (n + by - 1) / by
}

// times answers n * by, or the most that is counted with, which nothing has.
func times(n, by int64) int64 {
	if n > 0 && by > mostCounted/n {
		return mostCounted
	}
	return n * by
}

// parseMemory reads an amount such as 4000M, 1.50G or 100Mc in MB, rounded up, and
// the letter behind it: c for each cpu, n for each node, 0 where there is none.
func parseMemory(text []byte) (mb int64, kind byte, err error) {
	if isEmpty(text) {
		return 0, 0, nil
	}
	rest := text
	if c := rest[len(rest)-1]; c == 'c' || c == 'n' {
		kind, rest = c, rest[:len(rest)-1]
	}
	rest = bytes.TrimSuffix(rest, []byte("B"))
	kb := 1024.0 // no unit is MB
	if len(rest) > 0 {
		if i := strings.IndexByte("KMGTPE", rest[len(rest)-1]); i >= 0 {
			kb, rest = math.Pow(1024, float64(i)), rest[:len(rest)-1]
		}
	}
	units, fraction, _ := bytes.Cut(rest, []byte{'.'})
	if _, err := whole(append(slices.Clone(units), fraction...)); err != nil || len(units) == 0 {
		return 0, 0, errMemory
	}
	n, err := strconv.ParseFloat(string(rest), 64)
	if err != nil || n*kb/1024 > mostCounted {
		return 0, 0, errMemory
	}
	return int64(math.Ceil(n * kb / 1024)), kind, nil
}

const mostCounted = 1_000_000_000_000

// parseTotals reads memory, nodes and cpus of a sum such as cpu=6,mem=3000M,node=1,billing=6.
func parseTotals(text []byte) (mb, nodes, cpus int64, err error) {
	if isEmpty(text) {
		return 0, 0, 0, nil
	}
	for more := true; more; {
		var item []byte
		item, text, more = bytes.Cut(text, []byte{','})
		name, value, ok := bytes.Cut(item, []byte{'='})
		if !ok {
			return 0, 0, 0, fmt.Errorf("has %q, which is not NAME=COUNT", item)
		}
		switch string(name) {
		case "mem":
			mb, _, err = parseMemory(value)
		case "node":
			nodes, err = whole(value)
		case "cpu":
			cpus, err = whole(value)
		}
		if err != nil {
			return 0, 0, 0, fmt.Errorf("has %q, which %w", item, err)
		}
	}
	return mb, nodes, cpus, nil
}

func (p *jobParser) places(j *Job) (err error) {
	if j.On, err = p.expanded(fieldOn); err != nil {
		return err
	}
	j.RequiredNodes, err = p.expanded(fieldRequired)
	return err
}

func (p *jobParser) expanded(field int) ([]string, error) {
	raw := p.fields[field]
	if isEmpty(raw) {
		return nil, nil
	}
	if hosts, ok := p.hosts[string(raw)]; ok {
		return hosts, nil
	}
	hosts, err := ExpandHosts(string(raw))
	if err != nil {
		return nil, p.fault(field, fmt.Errorf("is no list of nodes: %w", err))
	}
	p.hosts[string(raw)] = hosts
	return hosts, nil
}

// liveStates are Slurm's states of jobs; true are those that are not over.
var liveStates = map[string]bool{}

// holdsHosts are the states in which a job has hosts and tokens.
var holdsHosts = map[string]bool{}

func init() {
	for _, s := range strings.Fields("PENDING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD REVOKED SPECIAL_EXIT EXPEDITING") {
		liveStates[s] = true
	}
	for _, s := range strings.Fields("RUNNING COMPLETING CONFIGURING RESIZING SIGNALING STAGE_OUT STOPPED SUSPENDED POWER_UP_NODE") {
		liveStates[s], holdsHosts[s] = true, true
	}
	for _, s := range strings.Fields("BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED RECONFIG_FAIL TIMEOUT") {
		liveStates[s] = false
	}
}

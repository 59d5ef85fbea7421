package snapshot

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// Validate checks a state as a whole: what a session gets without a fault found
// here, it can judge. Paths begin with "state.".
//
// A waiting job may need tokens of a resource that is there no more, and may
// come after jobs that are there no more (they have ended): clusters get so.
func Validate(in scheduling.Input) cluster.Problems {
	c := &checks{in: &in}
	c.magnitudes("state", reflect.ValueOf(in))
	if in.Now == 0 {
		c.add("state.now", "the time of the state is missing", timeRemedy)
	}
	if len(c.problems) > 0 {
		return c.problems // the sums below would not be safe
	}
	c.problems = append(c.problems, ValidatePolicy("state.policy", in.Policy)...)
	c.resources()
	c.hosts()
	c.catalog()
	c.running()
	c.waiting()
	c.reservations()
	c.problems = append(c.problems, ValidateThresholds("state.thresholds", in.Thresholds, c.resourceNames)...)
	c.sums()
	return c.problems
}

// checks is a validation in progress.
type checks struct {
	in            *scheduling.Input
	problems      cluster.Problems
	resourceNames []string
	hostIndex     map[string]int
	jobIndex      map[int64]int // the waiting ones
}

func (c *checks) add(path, what, remedy string) {
	c.problems = append(c.problems, cluster.Problem{Path: path, What: what, Remedy: remedy})
}

func (c *checks) name(path, name string) {
	if !cluster.ValidName(name) {
		c.add(path, fmt.Sprintf("name %q is not valid", name), "use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit")
	}
}

// names finds names that are there twice, and answers where each is.
func (c *checks) names(list, key string, n int, of func(i int) string) map[string]int {
	first := make(map[string]int, n)
	for i := range n {
		name := of(i)
		if j, twice := first[name]; twice {
			c.add(fmt.Sprintf("%s[%d].%s", list, i, key), fmt.Sprintf("%q is there already as %s[%d]", name, list, j), "keep one of them")
			continue
		}
		first[name] = i
	}
	return first
}

// ValidatePolicy checks a policy; paths begin with `at`.
func ValidatePolicy(at string, p scheduling.Policy) (ps cluster.Problems) {
	orders := []scheduling.Order{scheduling.FCFS, scheduling.EASY, scheduling.Conservative}
	if p.Order != "" && !slices.Contains(orders, p.Order) {
		ps = append(ps, cluster.Problem{Path: at + ".order", What: fmt.Sprintf("%q is no order", p.Order), Remedy: "write fcfs, easy or conservative"})
	}
	switch {
	case p.Depth < 0:
		ps = append(ps, cluster.Problem{Path: at + ".depth", What: fmt.Sprintf("%d is negative", p.Depth), Remedy: "write how many jobs get a reservation, or 0 for all"})
	case p.Depth > 0 && p.Order != scheduling.Conservative:
		ps = append(ps, cluster.Problem{Path: at + ".depth", What: "only the order conservative has a depth", Remedy: "remove it, or write order: conservative"})
	}
	return ps
}

// ValidateThresholds checks thresholds; paths begin with `at`.
func ValidateThresholds(at string, thresholds []scheduling.Threshold, resources []string) (ps cluster.Problems) {
	for i, t := range thresholds {
		add := func(key, what, remedy string) {
			ps = append(ps, cluster.Problem{Path: fmt.Sprintf("%s[%d]%s", at, i, key), What: what, Remedy: remedy})
		}
		switch {
		case t.Queue == "" && t.Resource == "":
			add("", "the threshold has neither a queue nor a resource", "name the queue or the resource whose waiting jobs are counted")
		case t.Queue != "" && t.Resource != "":
			add("", "the threshold has a queue and a resource", "name one of them, and give the other a threshold of its own")
		case t.Queue != "" && !cluster.ValidName(t.Queue):
			add(".queue", fmt.Sprintf("name %q is not valid", t.Queue), "use letters, digits, '.', '_' or '-'")
		case t.Resource != "" && !slices.Contains(resources, t.Resource):
			add(".resource", fmt.Sprintf("there is no shared resource %q", t.Resource), "name one that is under resources")
		}
		if t.Jobs < 1 || t.Jobs > mostCount {
			add(".jobs", fmt.Sprintf("%d jobs keep nothing back", t.Jobs), "write how many jobs must have waited, at least 1")
		}
		if t.Wait < 0 || t.Wait > longest {
			add(".wait", fmt.Sprintf("%s is out of range", t.Wait), fmt.Sprintf("write how long they must have waited, between 0s and %s", longest))
		}
	}
	return ps
}

func (c *checks) resources() {
	shared := make([]cluster.SharedResource, len(c.in.Resources))
	var lenders []string // whoever is named is taken for a provider
	for i, r := range c.in.Resources {
		shared[i] = r.SharedResource
		c.resourceNames = append(c.resourceNames, r.Name)
		if r.Elastic != nil {
			lenders = append(lenders, r.Elastic.Lenders...)
		}
	}
	for _, p := range cluster.ValidateResources(shared, lenders, 0) {
		c.add("state."+p.Path, p.What, p.Remedy)
	}
	for i, r := range c.in.Resources {
		at := fmt.Sprintf("state.resources[%d]", i)
		c.loans(at+".loans", r)
		for j, lot := range r.Idle {
			if lot.Units == 0 {
				c.add(fmt.Sprintf("%s.idle[%d].units", at, j), "0 units are no lot", "remove the lot")
			}
		}
	}
}

func (c *checks) loans(at string, r scheduling.Resource) {
	states := []cluster.LoanState{cluster.LoanRequested, cluster.LoanBorrowed, cluster.LoanReturning}
	for i, l := range r.Loans {
		if l.Resource != r.Name {
			c.add(fmt.Sprintf("%s[%d].resource", at, i), fmt.Sprintf("the loan is one of %q, not of %q", l.Resource, r.Name), "put it under its own resource")
		}
		if !slices.Contains(states, l.State) {
			c.add(fmt.Sprintf("%s[%d].state", at, i), fmt.Sprintf("%q is not the state of an open loan", l.State), "write requested, borrowed or returning, or remove the loan")
		}
	}
	c.names(at, "id", len(r.Loans), func(i int) string { return r.Loans[i].ID })
}

func (c *checks) hosts() {
	c.hostIndex = c.names("state.hosts", "name", len(c.in.Hosts), func(i int) string { return c.in.Hosts[i].Name })
	c.names("state.templates", "name", len(c.in.Templates), func(i int) string { return c.in.Templates[i].Name })
	c.names("state.expected", "id", len(c.in.Expected), func(i int) string { return c.in.Expected[i].ID })
	countables := map[string]bool{}
	capacity := func(at string, has cluster.Capacity) {
		c.problems = append(c.problems, has.Validate(at+".")...)
		for name := range has.Countables {
			countables[name] = true
		}
	}
	for i, h := range c.in.Hosts {
		at := fmt.Sprintf("state.hosts[%d]", i)
		c.name(at+".name", h.Name)
		if h.Template != "" {
			c.name(at+".template", h.Template) // it may not be offered any more
		}
		capacity(at, h.Capacity)
	}
	for i, h := range c.in.Expected {
		at := fmt.Sprintf("state.expected[%d]", i)
		c.name(at+".template", h.Template)
		capacity(at, h.Capacity)
	}
	for i, t := range c.in.Templates {
		at := fmt.Sprintf("state.templates[%d]", i)
		c.name(at+".name", t.Name)
		c.name(at+".provider", t.Provider)
		capacity(at, t.Capacity)
		c.delivered(at, t, capacity)
	}
	if len(countables) > cluster.MostCountables {
		c.add("state.hosts", fmt.Sprintf("hosts and templates have %d different countables together", len(countables)), fmt.Sprintf("use at most %d", cluster.MostCountables))
	}
	c.quotas(countables)
}

// delivered checks what came of a template.
func (c *checks) delivered(at string, t cluster.Template, capacity func(at string, has cluster.Capacity)) {
	switch {
	case t.Delivered != nil && t.Misses > 0:
		capacity(at+".delivered", *t.Delivered)
	case t.Delivered != nil:
		c.add(at+".delivered", "no host is said to have joined with it", "say under misses how many did, or remove it")
	case t.Misses > 0:
		c.add(at+".misses", fmt.Sprintf("it is not said what the %d hosts had", t.Misses), "say it under delivered, or remove it")
	}
}

// longName is that of a quota: its provider's name or a part of the cluster's
// configuration comes first.
var longName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

func (c *checks) quotaName(path, name string) {
	if !longName.MatchString(name) {
		c.add(path, fmt.Sprintf("name %q is not valid", name), "use 1 to 200 letters, digits, '.', '_' or '-', beginning with a letter or digit")
	}
}

func (c *checks) quotas(countables map[string]bool) {
	known := c.names("state.quotas", "name", len(c.in.Quotas), func(i int) string { return c.in.Quotas[i].Name })
	counted := append([]string{"hosts", "cpus", "memory_mb"}, slices.Sorted(maps.Keys(countables))...)
	for i, q := range c.in.Quotas {
		at := fmt.Sprintf("state.quotas[%d]", i)
		c.quotaName(at+".name", q.Name)
		if !slices.Contains(counted, q.Counts) {
			c.add(at+".counts", fmt.Sprintf("no template has %q to count", q.Counts), "write one of "+strings.Join(counted, ", "))
		}
	}
	for i, t := range c.in.Templates {
		for j, name := range t.Quotas {
			at := fmt.Sprintf("state.templates[%d].quotas[%d]", i, j)
			if _, ok := known[name]; !ok {
				c.add(at, fmt.Sprintf("there is no quota %q", name), "add it under quotas, or name one that is there")
			}
			if slices.Contains(t.Quotas[:j], name) {
				c.add(at, fmt.Sprintf("quota %q is named twice", name), "name each once")
			}
		}
	}
}

func (c *checks) catalog() {
	for i, o := range c.in.Offers {
		at := fmt.Sprintf("state.offers[%d]", i)
		c.name(at+".provider", o.Provider)
		if !slices.Contains(c.resourceNames, o.Resource) {
			c.add(at+".resource", fmt.Sprintf("there is no shared resource %q", o.Resource), "name one that is under resources, or remove the offer")
		}
		if j := slices.IndexFunc(c.in.Offers[:i], func(p cluster.Offer) bool { return p.Provider == o.Provider && p.Resource == o.Resource }); j >= 0 {
			c.add(at, fmt.Sprintf("%s offers %s already as state.offers[%d]", o.Provider, o.Resource, j), "keep one of them")
		}
	}
}

// runKey tells running jobs, and elements of arrays, apart.
type runKey struct{ job, element int64 }

func (c *checks) running() {
	first := make(map[runKey]int, len(c.in.Running))
	for i := range c.in.Running {
		job := &c.in.Running[i]
		at := fmt.Sprintf("state.running[%d]", i)
		c.job(at, job, cluster.JobRunning)
		key := runKey{job.ID, job.Element}
		if j, twice := first[key]; twice {
			c.add(at+".id", fmt.Sprintf("job %d is there already as state.running[%d]", job.ID, j), "keep one of them, or number the elements of an array")
		} else {
			first[key] = i
		}
		switch {
		case job.Array == 0 && job.Element != 0:
			c.add(at+".element", "the job is no array, so it has no elements", "remove it, or write the array's size")
		case job.Array > 0 && (job.Element < 1 || job.Element > job.Array):
			c.add(at+".element", fmt.Sprintf("%d is no element of an array of %d", job.Element, job.Array), "number elements from 1")
		}
		c.alternative(at, job.Alternative, job)
		c.placed(at, job)
		for _, name := range slices.Sorted(maps.Keys(job.TokensTaken(job.Alternative))) {
			if !slices.Contains(c.resourceNames, name) {
				c.add(at+".tokens."+shown(name), fmt.Sprintf("there is no shared resource %q", name), "add it under resources, or remove it")
			}
		}
	}
}

// alternative checks which of a job's alternatives was taken.
func (c *checks) alternative(at string, taken int64, job *cluster.Job) {
	if none := len(job.Alternatives) == 0; none && taken != 0 || !none && (taken < 1 || taken > int64(len(job.Alternatives))) {
		c.add(at+".alternative", fmt.Sprintf("%d is none of the job's %d alternatives", taken, len(job.Alternatives)), "say which one it takes, from 1, or 0 where it has none")
	}
}

// knownHosts checks a list of hosts.
func (c *checks) knownHosts(at string, names []string) {
	seen := map[string]bool{}
	for i, name := range names {
		path := fmt.Sprintf("%s.hosts[%d]", at, i)
		if _, known := c.hostIndex[name]; !known {
			c.add(path, fmt.Sprintf("there is no host %q", name), "add it under hosts, or name one that is there")
		}
		if seen[name] {
			c.add(path, fmt.Sprintf("host %q is named twice", name), "name each once")
		}
		seen[name] = true
	}
}

// placed checks the hosts of a running job.
func (c *checks) placed(at string, job *cluster.Job) {
	if _, known := c.hostIndex[job.Host]; !known {
		c.add(at+".host", fmt.Sprintf("there is no host %q", job.Host), "add it under hosts, or name one that is there")
	}
	c.knownHosts(at, job.Hosts)
	if len(job.Hosts) > 0 && job.Hosts[0] != job.Host {
		c.add(at+".host", fmt.Sprintf("host is %q, and the first of hosts is %q", job.Host, job.Hosts[0]), "name the first of hosts")
	}
	if n := max(int64(len(job.Hosts)), 1); n != max(job.Nodes, 1) {
		c.add(at+".hosts", fmt.Sprintf("the job runs on %d hosts and asks for %d", n, max(job.Nodes, 1)), "name as many as nodes says")
	}
}

// reservations checks what waiting jobs are promised.
func (c *checks) reservations() {
	first := make(map[runKey]int, len(c.in.Reservations))
	for i := range c.in.Reservations {
		r := &c.in.Reservations[i]
		at := fmt.Sprintf("state.reservations[%d]", i)
		j, waits := c.jobIndex[r.Job]
		if !waits {
			c.add(at+".job", fmt.Sprintf("job %d does not wait", r.Job), "name one that is under jobs, or remove the reservation")
			continue
		}
		job := &c.in.Jobs[j]
		key := runKey{r.Job, r.Element}
		if k, twice := first[key]; twice {
			c.add(at+".job", fmt.Sprintf("job %d has a reservation already as state.reservations[%d]", r.Job, k), "keep one of them, or number the elements of an array")
		} else {
			first[key] = i
		}
		if job.Array == 0 && r.Element != 0 || job.Array > 0 && (r.Element <= job.Begun || r.Element > job.Array) {
			c.add(at+".element", fmt.Sprintf("%d is no element of the job that waits", r.Element), fmt.Sprintf("number the elements of an array from %d, and write 0 for another job", job.Begun+1))
		}
		c.alternative(at, r.Alternative, job)
		c.knownHosts(at, r.Hosts)
		if n := int64(len(r.Hosts)); n != max(job.Nodes, 1) {
			c.add(at+".hosts", fmt.Sprintf("%d hosts are reserved for a job that asks for %d", n, max(job.Nodes, 1)), "name as many as the job's nodes say")
		}
	}
}

func (c *checks) waiting() {
	first := make(map[int64]int, len(c.in.Jobs))
	c.jobIndex = first
	for i := range c.in.Jobs {
		job := &c.in.Jobs[i]
		at := fmt.Sprintf("state.jobs[%d]", i)
		c.job(at, job, cluster.JobWaiting)
		if job.Stopping {
			c.add(at+".stopping", "the job waits, so that it cannot be stopped", "remove it, or put the job under running")
		}
		if j, twice := first[job.ID]; twice {
			c.add(at+".id", fmt.Sprintf("job %d is there already as state.jobs[%d]", job.ID, j), "keep one of them")
		} else {
			first[job.ID] = i
		}
		if job.Array == 0 && job.Begun > 0 || job.Array > 0 && job.Begun >= job.Array {
			c.add(at+".begun", fmt.Sprintf("%d elements of an array of %d have begun, so none waits", job.Begun, job.Array), "remove the job, or write how many have begun")
		}
	}
	for i := range c.in.Running {
		run := &c.in.Running[i]
		j, waits := first[run.ID]
		if waits && (run.Array == 0 || c.in.Jobs[j].Array != run.Array || run.Element > c.in.Jobs[j].Begun) {
			c.add(fmt.Sprintf("state.jobs[%d].id", j), fmt.Sprintf("job %d runs already as state.running[%d]", run.ID, i), "keep one of them; the elements of an array that run have begun")
		}
	}
}

// job checks a job by itself.
func (c *checks) job(at string, job *cluster.Job, state cluster.JobState) {
	if job.ID < 1 {
		c.add(at+".id", fmt.Sprintf("%d is no job id", job.ID), "number jobs from 1")
	}
	if job.State != state {
		c.add(at+".state", fmt.Sprintf("the job is %q here", job.State), fmt.Sprintf("write %s", state))
	}
	c.problems = append(c.problems, job.ValidateShape(at+".")...)
	if slices.Contains(job.After, job.ID) {
		c.add(at+".after", "the job comes after itself", "name other jobs")
	}
}

// fieldOf is a field of a struct by its name in JSON.
type fieldOf struct {
	name  string
	index []int
}

// fieldsOf answers the fields of a struct, those of embedded structs too.
func fieldsOf(t reflect.Type) []fieldOf {
	if known, ok := fieldLists[t]; ok {
		return known
	}
	return jsonFields(t)
}

// fieldLists are those of the types of which a state has many.
var fieldLists = map[reflect.Type][]fieldOf{
	reflect.TypeFor[cluster.Job]():          jsonFields(reflect.TypeFor[cluster.Job]()),
	reflect.TypeFor[scheduling.Host]():      jsonFields(reflect.TypeFor[scheduling.Host]()),
	reflect.TypeFor[cluster.ExpectedHost](): jsonFields(reflect.TypeFor[cluster.ExpectedHost]()),
}

func jsonFields(t reflect.Type) (fields []fieldOf) {
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			fields = append(fields, fieldOf{name, field.Index})
		}
	}
	return fields
}

package report

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// Summary is what a simulation comes to. Waits are those of jobs that have started, until their last
// start; slowdowns those of jobs that have ended.
type Summary struct {
	Cluster  string       `json:"cluster"`
	Label    string       `json:"label,omitempty"`
	Source   string       `json:"source"`
	Seed     uint64       `json:"seed,string"`
	Began    cluster.Time `json:"began"`
	Ended    cluster.Time `json:"ended"`
	Stopped  bool         `json:"stopped,omitempty"`
	Sessions int64        `json:"sessions"`
	Changes  int64        `json:"changes"`
	Repairs  int64        `json:"repairs"`

	Jobs     JobFigures `json:"jobs"`
	Wait     Spread     `json:"wait_ms"`
	Slowdown Spread     `json:"slowdown_thousandths"`
	// WaitSoFar is that of jobs that still wait.
	WaitSoFar Spread `json:"wait_so_far_ms"`
	// Queues are ordered by name; Causes as Result.Causes are, without those of no job. Jobs that the
	// cluster never had, as absent and impossible ones, waited for nothing and have no cause.
	Queues []Group `json:"queues"`
	Causes []Group `json:"causes"`

	Hosts     HostFigures       `json:"hosts"`
	Resources []ResourceFigures `json:"resources"`
	Providers []ProviderFigures `json:"providers"`
	Cost      CostFigures       `json:"cost_millionths"`
	Little    Little            `json:"littles_law_job_ms"`
}

// JobFigures count jobs.
type JobFigures struct {
	Total      int64 `json:"total"`
	Done       int64 `json:"done"`
	TimedOut   int64 `json:"timed_out"`
	Running    int64 `json:"running"`
	Waiting    int64 `json:"waiting"`
	Impossible int64 `json:"impossible"`
	Absent     int64 `json:"absent"`
	Requeues   int64 `json:"requeues"`
	// WorkMS is the last runs' time on all their processors, in processor-milliseconds.
	WorkMS int64 `json:"work_ms"`
}

// Ended counts the jobs that have ended.
func (f JobFigures) Ended() int64 { return f.Done + f.TimedOut }

// Group is the jobs of a queue, or of a cause.
type Group struct {
	Name     string     `json:"name"`
	Jobs     JobFigures `json:"jobs"`
	Wait     Spread     `json:"wait_ms"`
	Slowdown Spread     `json:"slowdown_thousandths"`
}

// HostFigures are the hosts' sums, in host-milliseconds, and counts.
type HostFigures struct {
	OwnedBusyMS int64 `json:"owned_busy_ms"`
	OwnedIdleMS int64 `json:"owned_idle_ms"`
	// Bought is the time of elastic hosts from the provider's answer until they were back, Used
	// that with jobs on them.
	BoughtMS  int64             `json:"bought_ms"`
	UsedMS    int64             `json:"used_ms"`
	Requested int64             `json:"requested"`
	Made      int64             `json:"made"`
	Joined    int64             `json:"joined"`
	Templates []TemplateFigures `json:"templates"`
	// OwnedUtilisation and Utilisation are in hundredths of a percent.
	OwnedUtilisation int64 `json:"owned_utilisation"`
	Utilisation      int64 `json:"utilisation"`
}

// TemplateFigures are those of the elastic hosts of one template.
type TemplateFigures struct {
	Name      string        `json:"name"`
	Requested int64         `json:"requested"`
	Made      int64         `json:"made"`
	Joined    int64         `json:"joined"`
	BoughtMS  int64         `json:"bought_ms"`
	UsedMS    int64         `json:"used_ms"`
	Cost      cluster.Price `json:"cost_millionths"`
}

// ResourceFigures are those of one shared resource, in unit-milliseconds and units.
type ResourceFigures struct {
	Name         string `json:"name"`
	OwnedMS      int64  `json:"owned_ms"`
	BorrowedMS   int64  `json:"borrowed_ms"`
	LentMS       int64  `json:"lent_ms"`
	InUseMS      int64  `json:"in_use_ms"`
	WaitingMS    int64  `json:"waiting_ms"`
	MostBorrowed int64  `json:"most_borrowed"`
	MostInUse    int64  `json:"most_in_use"`
	MostWaiting  int64  `json:"most_waiting"`
	// Bought is how long borrowed units were held, Used how long jobs used units beyond what the
	// cluster owns.
	BoughtMS     int64         `json:"bought_ms"`
	UsedMS       int64         `json:"used_ms"`
	Loans        int64         `json:"loans"`
	UnitsAsked   int64         `json:"units_asked"`
	UnitsGranted int64         `json:"units_granted"`
	Cost         cluster.Price `json:"cost_millionths"`
	// Utilisation is in hundredths of a percent of the total.
	Utilisation int64 `json:"utilisation"`
}

// TotalMS is the total over the time.
func (f ResourceFigures) TotalMS() int64 { return f.OwnedMS + f.BorrowedMS - f.LentMS }

// ProviderFigures count how one provider's calls went.
type ProviderFigures struct {
	Name      string            `json:"name"`
	Requests  int64             `json:"requests"`
	Granted   int64             `json:"granted"`
	Partial   int64             `json:"partial"`
	Refused   int64             `json:"refused"`
	Unknown   int64             `json:"unknown"`
	Refusals  []RefusalsFigures `json:"refusals"`
	Flaps     int64             `json:"flaps"`
	HostCost  cluster.Price     `json:"host_cost_millionths"`
	TokenCost cluster.Price     `json:"token_cost_millionths"`
}

// RefusalsFigures count the refusals for one reason.
type RefusalsFigures struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// CostFigures are money, in millionths of a currency unit.
type CostFigures struct {
	Hosts  cluster.Price `json:"hosts"`
	Tokens cluster.Price `json:"tokens"`
	Total  cluster.Price `json:"total"`
}

// Summarize answers what a simulation comes to.
func Summarize(r *simulation.Result) Summary {
	s := Summary{
		Cluster: r.Cluster, Label: r.Label, Seed: r.Seed, Began: r.Began, Ended: r.Ended, Stopped: r.Stopped,
		Sessions: r.Sessions, Changes: int64(len(r.Changes)), Little: littleOf(r),
	}
	if r.Trace != nil {
		s.Source = r.Trace.Source
		for _, repair := range r.Trace.Repairs {
			s.Repairs += repair.Count
		}
	}
	s.jobs(r)
	s.resources(r)
	s.hosts(r)
	s.providers(r)
	s.Cost.Total = s.Cost.Hosts + s.Cost.Tokens
	return s
}

// jobs fills in what is about jobs. One buffer serves for all spreads in turn.
func (s *Summary) jobs(r *simulation.Result) {
	buffer := make([]int64, len(jobsOf(r)))
	queues := byQueue(r)
	s.Queues = queues.groups(r, func(simulation.State) bool { return true })
	spread(queues, r, waitOf, buffer, s.Queues, func(g *Group) *Spread { return &g.Wait })
	s.Wait = spreadOf(buffer[:total(s.Queues, func(g *Group) int64 { return g.Wait.Count })])
	spread(queues, r, slowdownOf, buffer, s.Queues, func(g *Group) *Spread { return &g.Slowdown })
	s.Slowdown = spreadOf(buffer[:total(s.Queues, func(g *Group) int64 { return g.Slowdown.Count })])
	queues.of = nil // it is large
	causes := byCause(r)
	s.Causes = causes.groups(r, tookPart)
	spread(causes, r, waitOf, buffer, s.Causes, func(g *Group) *Spread { return &g.Wait })
	spread(causes, r, slowdownOf, buffer, s.Causes, func(g *Group) *Spread { return &g.Slowdown })
	s.Causes = slices.DeleteFunc(s.Causes, func(g Group) bool { return g.Jobs.Total == 0 })
	s.WaitSoFar = waitSoFar(r, buffer)
	for _, g := range s.Queues {
		s.Jobs.add(g.Jobs)
	}
	if r.Trace != nil { // those without an outcome had not arrived
		absent := int64(len(r.Trace.Jobs)) - s.Jobs.Total
		s.Jobs.Total += absent
		s.Jobs.Absent += absent
	}
}

func total(groups []Group, of func(*Group) int64) (n int64) {
	for i := range groups {
		n += of(&groups[i])
	}
	return n
}

// spread fills in the spread of one measure by group.
func spread(d division, r *simulation.Result, m measure, buffer []int64, groups []Group, of func(*Group) *Spread) {
	for g, part := range d.parts(r, m, buffer) {
		*of(&groups[g]) = spreadOf(part)
	}
}

// groups counts the jobs in some states by group.
func (d division) groups(r *simulation.Result, counted func(simulation.State) bool) []Group {
	groups := make([]Group, len(d.names))
	for g, name := range d.names {
		groups[g].Name = name
	}
	jobs, end := jobsOf(r), horizon(r)
	for i := range jobs {
		if counted(r.Outcomes[i].State) {
			groups[d.of[i]].Jobs.count(&jobs[i], &r.Outcomes[i], end)
		}
	}
	return groups
}

func (f *JobFigures) count(j *trace.Job, o *simulation.Outcome, end cluster.Time) {
	f.Total++
	f.Requeues += int64(o.Requeues)
	switch o.State {
	case simulation.Absent:
		f.Absent++
	case simulation.Impossible:
		f.Impossible++
	case simulation.Waiting:
		f.Waiting++
	case simulation.Running:
		f.Running++
	case simulation.Done:
		f.Done++
	case simulation.TimedOut:
		f.TimedOut++
	}
	_, run := lives(j.Submit, o, end)
	f.WorkMS += procs(j) * int64(run)
}

func (f *JobFigures) add(g JobFigures) {
	f.Total += g.Total
	f.Done += g.Done
	f.TimedOut += g.TimedOut
	f.Running += g.Running
	f.Waiting += g.Waiting
	f.Impossible += g.Impossible
	f.Absent += g.Absent
	f.Requeues += g.Requeues
	f.WorkMS += g.WorkMS
}

func waitSoFar(r *simulation.Result, buffer []int64) Spread {
	n, end, jobs := 0, horizon(r), jobsOf(r)
	for i := range jobs {
		if r.Outcomes[i].State == simulation.Waiting {
			buffer[n] = int64(end.Sub(jobs[i].Submit))
			n++
		}
	}
	return spreadOf(buffer[:n])
}

func (s *Summary) resources(r *simulation.Result) {
	s.Resources = []ResourceFigures{}
	for _, res := range r.Resources {
		f := ResourceFigures{
			Name: res.Name, OwnedMS: integral(res.Series, 0), BorrowedMS: integral(res.Series, 1), LentMS: integral(res.Series, 2),
			InUseMS: integral(res.Series, 3), WaitingMS: integral(res.Series, 4),
			MostBorrowed: most(res.Series, 1), MostInUse: most(res.Series, 3), MostWaiting: most(res.Series, 4),
			BoughtMS: res.Bought, UsedMS: res.Used, Cost: res.Cost,
		}
		f.Utilisation = share(f.InUseMS, f.TotalMS())
		s.Cost.Tokens += f.Cost
		s.Resources = append(s.Resources, f)
	}
	for _, loan := range r.Loans {
		if i := slices.IndexFunc(s.Resources, func(f ResourceFigures) bool { return f.Name == loan.Resource }); i >= 0 {
			s.Resources[i].Loans++
			s.Resources[i].UnitsAsked += loan.Units
			s.Resources[i].UnitsGranted += loan.Granted
		}
	}
}

func (s *Summary) hosts(r *simulation.Result) {
	f := HostFigures{OwnedBusyMS: integral(r.Hosts, 0), OwnedIdleMS: integral(r.Hosts, 1), Templates: templatesOf(r)}
	for _, t := range f.Templates {
		f.BoughtMS += t.BoughtMS
		f.UsedMS += t.UsedMS
		f.Requested += t.Requested
		f.Made += t.Made
		f.Joined += t.Joined
		s.Cost.Hosts += t.Cost
	}
	f.OwnedUtilisation = share(f.OwnedBusyMS, f.OwnedBusyMS+f.OwnedIdleMS)
	f.Utilisation = share(f.OwnedBusyMS+f.UsedMS, f.OwnedBusyMS+f.OwnedIdleMS+f.BoughtMS)
	s.Hosts = f
}

// templatesOf answers the figures of elastic hosts by template, in the order of the names.
func templatesOf(r *simulation.Result) []TemplateFigures {
	figures, places := []TemplateFigures{}, map[string]int{}
	for i := range r.Machines {
		m := &r.Machines[i]
		at, known := places[m.Template]
		if !known {
			at = len(figures)
			places[m.Template] = at
			figures = append(figures, TemplateFigures{Name: m.Template})
		}
		figures[at].count(m, r.Ended)
	}
	slices.SortFunc(figures, func(a, b TemplateFigures) int { return cmp.Compare(a.Name, b.Name) })
	return figures
}

func (f *TemplateFigures) count(m *simulation.HostResult, end cluster.Time) {
	f.Requested++
	if m.Expected > 0 {
		f.Made++
		f.BoughtMS += int64(until(m.Closed, end).Sub(m.Expected))
	}
	if m.Joined > 0 {
		f.Joined++
	}
	f.UsedMS += m.Busy
	f.Cost += m.Cost
}

// until answers when something ended, or the end of all where it has not.
func until(t, end cluster.Time) cluster.Time {
	if t == 0 {
		return end
	}
	return t
}

func (s *Summary) providers(r *simulation.Result) {
	s.Providers = []ProviderFigures{}
	places := map[string]int{}
	for _, p := range r.Providers {
		f := ProviderFigures{
			Name: p.Name, Requests: p.Requests, Granted: p.Granted, Partial: p.Partial, Refused: p.Refused,
			Unknown: p.Unknown, Flaps: p.Flaps, Refusals: []RefusalsFigures{},
		}
		for _, c := range p.Refusals {
			f.Refusals = append(f.Refusals, RefusalsFigures{c.Name, c.N})
		}
		places[p.Name] = len(s.Providers)
		s.Providers = append(s.Providers, f)
	}
	for i := range r.Loans {
		if at, known := places[r.Loans[i].Provider]; known {
			s.Providers[at].TokenCost += r.Loans[i].Cost
		}
	}
	for i := range r.Machines {
		if at, known := places[r.Machines[i].Provider]; known {
			s.Providers[at].HostCost += r.Machines[i].Cost
		}
	}
}

// called sums up how all calls of providers went.
func (s *Summary) called() ProviderFigures {
	var sum ProviderFigures
	for _, p := range s.Providers {
		sum.Requests += p.Requests
		sum.Granted += p.Granted
		sum.Partial += p.Partial
		sum.Refused += p.Refused
		sum.Unknown += p.Unknown
		sum.Flaps += p.Flaps
	}
	return sum
}

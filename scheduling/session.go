package scheduling

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// Input is the state that a session judges, read at one moment.
type Input struct {
	Now       cluster.Time  `json:"now"`
	Hosts     []Host        `json:"hosts"`
	Resources []Resource    `json:"resources"`
	Jobs      []cluster.Job `json:"jobs"` // the waiting ones
	// Offers as the providers published them.
	Offers []cluster.Offer `json:"offers"`
}

// Host is a host that takes jobs and what is free on it.
type Host struct {
	Name     string `json:"name"`
	CPUs     int64  `json:"cpus"`
	MemoryMB int64  `json:"memory_mb"`
	// The host's size, for what can never fit; 0 where it is not known.
	AllCPUs     int64 `json:"all_cpus"`
	AllMemoryMB int64 `json:"all_memory_mb"`
}

// takes tells whether the job may fit on the host once it is empty.
func (h Host) takes(job cluster.Job) bool {
	return (h.AllCPUs == 0 || h.AllCPUs >= job.CPUs) && (h.AllMemoryMB == 0 || h.AllMemoryMB >= job.MemoryMB)
}

// Resource is a shared resource as the session sees it.
type Resource struct {
	cluster.SharedResource
	Total int64 `json:"total"`
	InUse int64 `json:"in_use"`
	// Loans that are open: requested ones are coming supply and take room
	// under the limit.
	Loans []cluster.Loan `json:"loans"`
	// Idle is the idle clock as the last session left it.
	Idle cluster.IdleClock `json:"idle"`
}

// Result is what a session decided and found.
type Result struct {
	Starts []Start `json:"starts"`
	// Demand is ordered by resource, then provider.
	Demand []cluster.Demand `json:"demand"`
	// Idle has one entry per resource with idle units, ordered by resource.
	Idle []cluster.IdleSupply `json:"idle"`
	// Clocks are the idle clocks after this session, by resource.
	Clocks map[string]cluster.IdleClock `json:"clocks"`
	// Unplaced has one entry per job that stays waiting, in session order.
	Unplaced []Unplaced `json:"unplaced"`
}

// Start places a job on a host; the job takes its tokens with it.
type Start struct {
	Job  int64  `json:"job"`
	Host string `json:"host"`
}

// Unplaced says why a job waits.
type Unplaced struct {
	Job  int64  `json:"job"`
	Code Code   `json:"code"`
	Why  string `json:"why"`
}

// Code is the kind of reason for which a job waits.
type Code string

// Codes, by what would have to change.
const (
	WaitHosts  Code = "hosts"     // a host must become free
	WaitBehind Code = "behind"    // an earlier job must start
	WaitTokens Code = "tokens"    // running jobs must give tokens back: no one can lend what lacks
	WaitComing Code = "coming"    // requested tokens must arrive
	WaitBorrow Code = "borrowing" // tokens are about to be borrowed
	Never      Code = "never"     // the limits must change
)

// Run is one session.
func Run(in Input) Result {
	s := newSession(in)
	for _, job := range s.queue {
		s.placeReal(job)
	}
	s.hostWaiter = 0 // it comes after all that lack tokens
	for _, job := range s.lackTokens {
		s.placeVirtual(job)
	}
	return s.finish()
}

// session is the working state of one pass.
type session struct {
	in    Input
	queue []cluster.Job
	hosts []Host
	pools []*pool // by resource name
	// lackTokens are the jobs that a host could take but for their tokens.
	lackTokens []cluster.Job
	// hostWaiter is the first job that waits for a host; 0 while there is none.
	hostWaiter int64
	starts     []Start
	unplaced   map[int64]Unplaced
}

func newSession(in Input) *session {
	s := &session{
		in: in, queue: slices.Clone(in.Jobs), hosts: slices.Clone(in.Hosts),
		unplaced: map[int64]Unplaced{},
	}
	slices.SortFunc(s.queue, func(a, b cluster.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(s.hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	for _, r := range in.Resources {
		s.pools = append(s.pools, newPool(r, in.Offers, in.Now))
	}
	slices.SortFunc(s.pools, func(a, b *pool) int { return cmp.Compare(a.resource.Name, b.resource.Name) })
	return s
}

// placeReal tries a job on what is really there.
func (s *session) placeReal(job cluster.Job) {
	needs, ok := s.needs(job)
	if !ok {
		return
	}
	if s.hostWaiter != 0 {
		s.wait(job, WaitBehind, behindHosts(s.hostWaiter))
		return
	}
	host := s.fit(job)
	if host == nil {
		if slices.ContainsFunc(s.hosts, func(h Host) bool { return h.takes(job) }) {
			s.hostWaiter = job.ID
		}
		s.wait(job, WaitHosts, noHost(job, s.hosts))
		return
	}
	if !slices.ContainsFunc(needs, func(n need) bool { return n.pool.free < n.units }) {
		s.start(job, host, needs)
		return
	}
	for _, n := range needs {
		n.pool.free -= n.units
	}
	s.lackTokens = append(s.lackTokens, job)
}

func (s *session) start(job cluster.Job, host *Host, needs []need) {
	host.CPUs -= job.CPUs
	host.MemoryMB -= job.MemoryMB
	for _, n := range needs {
		n.pool.free -= n.units
		n.pool.unreserved -= n.units
	}
	s.starts = append(s.starts, Start{Job: job.ID, Host: host.Name})
}

// placeVirtual tries a job that lacks only tokens with what is coming and what
// could be borrowed. What it takes is gone for the jobs after it.
func (s *session) placeVirtual(job cluster.Job) {
	if s.hostWaiter != 0 {
		s.wait(job, WaitBehind, behindHosts(s.hostWaiter))
		return
	}
	needs, _ := s.needs(job)
	host := s.fit(job)
	if host == nil {
		s.hostWaiter = job.ID
		s.wait(job, WaitHosts, noHostNorTokens(job, needs))
		return
	}
	shares := make([]share, 0, len(needs))
	for _, n := range needs {
		shares = append(shares, n.pool.offer(n.units))
	}
	if code, why := blocked(needs, shares); code != "" {
		s.wait(job, code, why)
		for _, sh := range shares {
			sh.reserve(job.ID)
		}
		return
	}
	host.CPUs -= job.CPUs
	host.MemoryMB -= job.MemoryMB
	code := WaitComing
	for _, sh := range shares {
		if sh.take(job.ID) {
			code = WaitBorrow
		}
	}
	s.wait(job, code, onTheWay(shares))
}

// blocked answers why the tokens of a job can neither be coming nor be borrowed;
// no code means that they can.
func blocked(needs []need, shares []share) (Code, string) {
	for _, n := range needs {
		if n.pool.waiter != 0 {
			return WaitBehind, behindTokens(n.pool.waiter, n)
		}
	}
	if slices.ContainsFunc(shares, func(sh share) bool { return sh.lacking > 0 }) {
		return WaitTokens, cannotBeLent(shares)
	}
	return "", ""
}

// need is what one job needs of one pool.
type need struct {
	pool  *pool
	units int64
}

// needs answers what a job needs, by resource name; not ok means that it can
// never run as things are configured, which is recorded.
func (s *session) needs(job cluster.Job) ([]need, bool) {
	var needs []need
	for _, name := range job.TokenNames() {
		units := job.Tokens[name]
		i, found := slices.BinarySearchFunc(s.pools, name, func(p *pool, name string) int { return cmp.Compare(p.resource.Name, name) })
		if !found {
			s.wait(job, Never, unknownResource(name))
			return nil, false
		}
		if ceiling := s.pools[i].ceiling; units > ceiling {
			s.wait(job, Never, overCeiling(name, units, ceiling))
			return nil, false
		}
		needs = append(needs, need{pool: s.pools[i], units: units})
	}
	return needs, true
}

// fit answers the host on which the job leaves the fewest cpus, or nil.
func (s *session) fit(job cluster.Job) *Host {
	var best *Host
	for i := range s.hosts {
		h := &s.hosts[i]
		if h.CPUs >= job.CPUs && h.MemoryMB >= job.MemoryMB && (best == nil || h.CPUs < best.CPUs) {
			best = h
		}
	}
	return best
}

func (s *session) wait(job cluster.Job, code Code, why string) {
	s.unplaced[job.ID] = Unplaced{Job: job.ID, Code: code, Why: why}
}

func (s *session) finish() Result {
	r := Result{Starts: s.starts, Clocks: map[string]cluster.IdleClock{}}
	for _, job := range s.queue {
		if u, ok := s.unplaced[job.ID]; ok {
			r.Unplaced = append(r.Unplaced, u)
		}
	}
	for _, p := range s.pools {
		r.Demand = append(r.Demand, p.demand()...)
		clock := p.resource.Idle.Follow(p.free, s.in.Now)
		r.Clocks[p.resource.Name] = clock
		if clock.Units() > 0 {
			r.Idle = append(r.Idle, cluster.IdleSupply{Resource: p.resource.Name, Units: clock.Units(), Since: clock.Since()})
		}
	}
	slices.SortFunc(r.Demand, cluster.CompareDemand)
	return r
}

// Package limit keeps any one peer of the controller from taking what is there
// for all: calls, waiting calls, connections, memory and time. It counts; who
// answers, and with what words, is the server's business.
package limit

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"xce.internal/elastic/cluster"
)

// Limits are what one peer may take. A peer is who its certificate says, or,
// for who has none, the address that it calls from.
type Limits struct {
	// Rate is how many calls a peer may make in a second, and Burst how many
	// more at once after it was quiet.
	Rate  int64 `json:"rate"`
	Burst int64 `json:"burst"`
	// StrangerRate and StrangerBurst are those of callers without a certificate.
	StrangerRate  int64 `json:"stranger_rate"`
	StrangerBurst int64 `json:"stranger_burst"`
	// Calls is how many calls of a peer may go on at once, and Polls how many of
	// them may be waiting for news.
	Calls int64 `json:"calls"`
	Polls int64 `json:"polls"`
	// Connections is how many there may be at once, and AddressConnections how
	// many of them from one address.
	Connections        int64 `json:"connections"`
	AddressConnections int64 `json:"address_connections"`
	// CatalogMB is how large a catalog may be; all else has fixed limits.
	CatalogMB int64 `json:"catalog_mb"`
	// Time is how long one call may take, beside what it waits for news.
	Time cluster.Duration `json:"time"`
}

// Defaults are so wide that what agents, provisioners and people do never meets them.
func Defaults() Limits {
	return Limits{
		Rate: 500, Burst: 2000, StrangerRate: 20, StrangerBurst: 200, Calls: 512, Polls: 64,
		Connections: 8192, AddressConnections: 2048, CatalogMB: 16, Time: 30 * cluster.Second,
	}
}

const (
	most        = 1_000_000
	mostCatalog = 1024
	longest     = 10 * cluster.Minute
)

// Validate finds limits that would let no one in, or that limit nothing.
func (l Limits) Validate(at string) (ps cluster.Problems) {
	for _, n := range []struct {
		key   string
		is    int64
		limit int64
	}{
		{"rate", l.Rate, most},
		{"burst", l.Burst, most},
		{"stranger_rate", l.StrangerRate, most},
		{"stranger_burst", l.StrangerBurst, most},
		{"calls", l.Calls, most},
		{"polls", l.Polls, most},
		{"connections", l.Connections, most},
		{"address_connections", l.AddressConnections, most},
		{"catalog_mb", l.CatalogMB, mostCatalog},
	} {
		if n.is < 1 || n.is > n.limit {
			ps = append(ps, cluster.Problem{Path: at + "." + n.key, What: fmt.Sprintf("%d is out of range", n.is), Remedy: fmt.Sprintf("write between 1 and %d", n.limit)})
		}
	}
	if l.Time < cluster.Second || l.Time > longest {
		ps = append(ps, cluster.Problem{Path: at + ".time", What: fmt.Sprintf("%s is out of range", l.Time), Remedy: fmt.Sprintf("write between 1s and %s", longest)})
	}
	return ps
}

// mostPeers is how many peers' rates are remembered. Who was quiet the longest
// is forgotten first, and so has its full burst again.
const mostPeers = 10_000

// Guard counts what peers do.
type Guard struct {
	limits Limits
	now    func() time.Time

	mu sync.Mutex
	// known and strangers are apart, so that many of these cannot have those forgotten.
	known, strangers *simplelru.LRU[string, *rate.Limiter]
	// going is what goes on now; a peer of which nothing does is not in it.
	going map[string]going
}

// going is how many calls of a peer go on, and how many of them wait for news.
type going struct{ calls, polls int64 }

// New answers a guard by a clock, which must not go back.
func New(limits Limits, now func() time.Time) *Guard {
	g := &Guard{limits: limits, now: now, going: map[string]going{}}
	for _, table := range []**simplelru.LRU[string, *rate.Limiter]{&g.known, &g.strangers} {
		*table, _ = simplelru.NewLRU[string, *rate.Limiter](mostPeers, nil) // the size is positive
	}
	return g
}

// Peer is who calls.
type Peer struct {
	Name string
	// Stranger has no certificate; its name is its address.
	Stranger bool
}

// key keeps a stranger's address apart from names.
func (p Peer) key() string { return map[bool]string{true: "?", false: "!"}[p.Stranger] + p.Name }

// Refusal is why a call is not taken now, and after how long it may be tried again.
type Refusal struct {
	Why   string
	After time.Duration
}

// soon is after how long a peer may try again that has too much going on.
const soon = time.Second

// Enter counts a call, until done is called. A nil refusal lets it in.
func (g *Guard) Enter(p Peer) (done func(), refusal *Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.wait(p); wait > 0 {
		per, _ := g.rates(p)
		return nil, &Refusal{fmt.Sprintf("more than %d calls in a second", per), wait}
	}
	if g.going[p.key()].calls >= g.limits.Calls {
		return nil, &Refusal{fmt.Sprintf("more than %d calls at once", g.limits.Calls), soon}
	}
	g.count(p, 1, 0)
	return func() { g.end(p, 1, 0) }, nil
}

// Poll counts that a call waits for news, until done is called.
func (g *Guard) Poll(p Peer) (done func(), refusal *Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.going[p.key()].polls >= g.limits.Polls {
		return nil, &Refusal{fmt.Sprintf("more than %d calls that wait for news", g.limits.Polls), soon}
	}
	g.count(p, 0, 1)
	return func() { g.end(p, 0, 1) }, nil
}

func (g *Guard) rates(p Peer) (perSecond, burst int64) {
	if p.Stranger {
		return g.limits.StrangerRate, g.limits.StrangerBurst
	}
	return g.limits.Rate, g.limits.Burst
}

// wait takes a call out of the peer's rate, or answers how long until it could.
func (g *Guard) wait(p Peer) time.Duration {
	table := g.known
	if p.Stranger {
		table = g.strangers
	}
	limiter, known := table.Get(p.Name)
	if !known {
		perSecond, burst := g.rates(p)
		limiter = rate.NewLimiter(rate.Limit(perSecond), int(burst))
		table.Add(p.Name, limiter)
	}
	now := g.now()
	turn := limiter.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait > 0 {
		turn.CancelAt(now)
	}
	return wait
}

func (g *Guard) count(p Peer, calls, polls int64) {
	n := g.going[p.key()]
	n.calls, n.polls = n.calls+calls, n.polls+polls
	if n == (going{}) {
		delete(g.going, p.key())
		return
	}
	g.going[p.key()] = n
}

func (g *Guard) end(p Peer, calls, polls int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(p, -calls, -polls)
}

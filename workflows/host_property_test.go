package workflows_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/mishap"
	"xce.internal/elastic/workflows"
)

// saga is all that happens to one host from outside, as plain data, so that it can
// be told more than once.
type saga struct {
	terms            cluster.HostTerms
	want             int64
	surplus          int64
	pending, returns time.Duration
	boots            cluster.Duration
	mishaps          map[providers.Verb][]mishap.Mishap
	honest           cluster.Duration
	jobs, silences   []span
	fates            []fateOfMachine
	orders           []order
	late             []cluster.Duration
	times            []int
	took             []cluster.Duration
	again            []int
}

// span is something that begins at an instant and lasts.
type span struct{ after, lasts cluster.Duration }

// fateOfMachine is what its provider does with the machine by itself.
type fateOfMachine struct {
	after, grace cluster.Duration
	swap         bool
}

// order is an operator's wish at an instant.
type order struct {
	after   cluster.Duration
	kind    workflows.HostUpdate
	within  cluster.Duration
	requeue bool
}

// kinds are the wishes of operators, that a machine is gone the least often.
var kinds = []workflows.HostUpdate{
	workflows.UpdateDrain, workflows.UpdateDrain, workflows.UpdateDrain, workflows.UpdateUndrain, workflows.UpdateUndrain,
	workflows.UpdateHold, workflows.UpdateHold, workflows.UpdateRelease, workflows.UpdateRelease, workflows.UpdateGone,
}

// stormy is how long anything may happen to a host.
const stormy = 5 * cluster.Hour

// instants are when something may happen: often in the first half hour.
var instants = func() (all []cluster.Duration) {
	for m := cluster.Duration(0); m < 30; m++ {
		all = append(all, m*cluster.Minute, m*10*cluster.Minute)
	}
	return all
}()

func drawSaga(t *rapid.T) saga {
	after := func(name string) cluster.Duration {
		return rapid.SampledFrom(instants).Draw(t, name) + cluster.Duration(rapid.IntRange(0, 59_999).Draw(t, name+" and"))
	}
	pick := func(name string, of ...cluster.Duration) cluster.Duration { return rapid.SampledFrom(of).Draw(t, name) }
	count := func(name string, most int) int { return rapid.SampledFrom([]int{0, 1, 2, 3, 4}[:most+1]).Draw(t, name) }
	s := saga{
		terms: cluster.HostTerms{
			MinimumHold: pick("hold", 0, 0, cluster.Hour), BillingStep: pick("step", 0, 0, cluster.Hour), PollInterval: pick("poll", cluster.Second, 10*cluster.Second),
			JoinWithin: pick("join within", 5*cluster.Minute, 15*cluster.Minute), IdleTime: pick("idle", cluster.Minute, 10*cluster.Minute),
			MaxLifetime: pick("lifetime", 0, 0, cluster.Hour), ReturnLost: rapid.Bool().Draw(t, "return lost"),
		},
		want: rapid.SampledFrom([]int64{1, 1, 1, 1, 1, 1, 1, 0}).Draw(t, "want"), surplus: rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, "surplus"),
		pending: pick("pending", 0, 0, 10*cluster.Second, 20*cluster.Minute).Std(), returns: pick("returns", 0, 0, cluster.Minute, cluster.Hour).Std(),
		boots:  pick("boots", 0, cluster.Second, cluster.Second, cluster.Minute, cluster.Minute, 5*cluster.Minute, 15*cluster.Minute),
		honest: after("honest"), mishaps: map[providers.Verb][]mishap.Mishap{},
	}
	mishap := rapid.Custom(func(t *rapid.T) mishap.Mishap {
		return mishap.Mishap{
			Kind: rapid.SampledFrom([]mishap.Kind{
				mishap.None, mishap.None, mishap.NotHeard, mishap.NoAnswer, mishap.Late, mishap.Refusal, mishap.Unsettled,
			}).Draw(t, "kind"),
			After:      rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "late"),
			RetryAfter: rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "retry"),
		}
	})
	if rapid.Bool().Draw(t, "mishaps") {
		for _, verb := range verbs {
			s.mishaps[verb] = rapid.SliceOfN(mishap, 0, 5).Draw(t, string(verb))
		}
	}
	for range count("jobs", 4) {
		s.jobs = append(s.jobs, span{after("job"), pick("lasts", cluster.Minute, 20*cluster.Minute, cluster.Hour)})
	}
	for range count("silences", 2) {
		s.silences = append(s.silences, span{after("silence"), pick("lasts", cluster.Minute, 4*cluster.Minute, 10*cluster.Minute, cluster.Hour)})
	}
	if rapid.IntRange(0, 2).Draw(t, "fate") == 0 {
		s.fates = append(s.fates, fateOfMachine{after("fate"), pick("grace", 0, 0, 10*cluster.Second, 2*cluster.Minute, 10*cluster.Minute), rapid.Bool().Draw(t, "swap")})
	}
	for range count("orders", 4) {
		s.orders = append(s.orders, order{
			after("order"), rapid.SampledFrom(kinds).Draw(t, "kind"), pick("within", 0, 0, cluster.Minute, cluster.Hour), rapid.Bool().Draw(t, "requeue"),
		})
	}
	s.late = rapid.SliceOfN(rapid.SampledFrom([]cluster.Duration{10, 10, cluster.Second, cluster.Minute}), 1, 5).Draw(t, "told late")
	s.times = rapid.SliceOfN(rapid.SampledFrom([]int{1, 1, 2, 3}), 1, 5).Draw(t, "told times")
	s.took = rapid.SliceOfN(rapid.SampledFrom([]cluster.Duration{10, 400, 5 * cluster.Second, cluster.Minute}), 1, 5).Draw(t, "took")
	s.again = rapid.SliceOfN(rapid.IntRange(0, 3), 1, 7).Draw(t, "again")
	return s
}

// lived is what came of a saga.
type lived struct {
	*yard
	host    workflows.Host
	wishes  int
	answers map[int]int // by wish
}

// world sets a saga up.
func (s saga) world() *lived {
	y := newYard()
	l := &lived{yard: y, answers: map[int]int{}, host: workflows.Host{Request: cluster.HostRequest{
		ID: hostID, Provider: provider, Template: template, Reason: "a job waits", PollInterval: s.terms.PollInterval,
	}}}
	y.terms, y.want, y.boots = s.terms, s.want, s.boots
	y.took = func(n int) cluster.Duration { return s.took[n%len(s.took)] }
	y.again = func(n int) int { return s.again[n%len(s.again)] }
	y.hear = func(n int) (cluster.Duration, int) { return s.late[n%len(s.late)], s.times[n%len(s.times)] }
	m := y.maker
	m.Surplus, m.PendingFor, m.ReturnFor = s.surplus, s.pending, s.returns
	m.Mishap = func(c mishap.Call) mishap.Mishap {
		if of := s.mishaps[c.Verb]; c.Number <= len(of) && cluster.TimeOf(c.At) < began.Add(s.honest) {
			return of[c.Number-1]
		}
		return mishap.Mishap{}
	}
	for i, j := range s.jobs {
		y.at(j.after, func() { y.begin(i, j.lasts) })
	}
	for _, q := range s.silences {
		y.at(q.after, func() { y.silent = true })
		y.at(q.after+q.lasts, func() { y.silent = false })
	}
	for _, f := range s.fates {
		y.at(f.after, func() { y.befall(f) })
	}
	for i, o := range s.orders {
		y.at(o.after, func() {
			l.wish(i, o.kind, workflows.HostOrder{By: operator, Why: "why", Within: o.within, Requeue: o.requeue})
		})
	}
	y.at(stormy+2*cluster.Hour, func() { l.wish(len(s.orders), workflows.UpdateRelease, workflows.HostOrder{By: operator}) })
	var tick func(n int)
	tick = func(n int) {
		y.tick(n)
		if y.now < began.Add(stormy+30*cluster.Hour) {
			y.at(cluster.Minute, func() { tick(n + 1) })
		}
	}
	y.at(30*cluster.Second, func() { tick(0) })
	return l
}

func (y *yard) befall(f fateOfMachine) {
	switch {
	case len(y.maker.Machines(hostID)) == 0:
	case f.grace > 0:
		y.maker.Reclaim(hostID, f.grace.Std())
	case f.swap:
		y.boots = 0
		y.maker.Swap(hostID)
	default:
		y.maker.Vanish(hostID)
	}
}

func (l *lived) wish(i int, kind workflows.HostUpdate, o workflows.HostOrder) {
	l.wishes++
	l.inbox = append(l.inbox, workflows.Message{Wish: &workflows.HostWish{
		Kind: kind, HostOrder: o, Answer: func(workflows.HostAnswer) { l.answers[i]++ },
	}})
}

// relive tells the story to its end; where it is cut it goes on from another
// state, if there is one.
func (l *lived) relive(t *rapid.T, from func() (workflows.Host, bool)) {
	defer func() {
		switch stuck := recover().(type) {
		case nil:
		case errStuck:
			t.Fatalf("stuck after %s and %d steps: %s\n%+v\nrow %+v\n%s", l.now.Sub(began), l.steps, stuck.why, l.host, l.books.Row, l.maker)
		default:
			panic(stuck)
		}
	}()
	for !l.host.Live(l) {
		if h, ok := from(); ok {
			l.host = throughJSON(h)
		}
	}
}

func (l *lived) live(t *rapid.T) {
	l.relive(t, func() (workflows.Host, bool) { return l.host, true })
}

// judge checks what must be true of every story that has ended.
func (l *lived) judge(t *rapid.T) {
	for _, wrong := range l.wrong {
		t.Error(wrong)
	}
	row := l.books.Row
	if row.State.Open() || l.host.Chapter != workflows.Closed {
		t.Errorf("the row is %+v, the story %s", row, l.host.Chapter)
	}
	for _, m := range l.maker.Machines("") {
		if !l.givenUp && m.ID == row.Instance {
			t.Errorf("the provider still has %s:\n%s", m.ID, l.maker)
		}
	}
	for id, w := range l.jobs {
		if w.state == cluster.JobRunning {
			t.Errorf("job %d is on a host that is %s", id, row.State)
		}
	}
	waiting := 0
	for _, m := range l.inbox {
		if m.Wish != nil {
			waiting++
		}
	}
	for i, n := range l.answers {
		if n != 1 {
			t.Errorf("wish %d was answered %d times", i, n)
		}
	}
	if len(l.answers) != l.wishes-waiting {
		t.Errorf("%d wishes came, %d of them after the end, %d are answered", l.wishes, waiting, len(l.answers))
	}
}

func TestEveryStoryOfAHostEndsWithItsMachineBack(t *testing.T) {
	thoroughly(t)
	rapid.Check(t, func(t *rapid.T) {
		l := drawSaga(t).world()
		l.live(t)
		l.judge(t)
	})
}

func TestAHostsStoryCutAtAnyChapterWritesTheSameLedger(t *testing.T) {
	thoroughly(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawSaga(t)
		whole := s.world()
		whole.live(t)
		cut := s.world()
		cut.cut = everyFew(t)
		cut.live(t)
		if a, b := whole.String(), cut.String(); a != b {
			t.Errorf("uncut:\n%s\ncut:\n%s", a, b)
		}
		if a, b := whole.maker.String(), cut.maker.String(); a != b {
			t.Errorf("uncut:\n%s\ncut:\n%s", a, b)
		}
	})
}

func TestAHostsStoryTakenUpFromItsRowEndsAsWell(t *testing.T) {
	thoroughly(t)
	rapid.Check(t, func(t *rapid.T) {
		l := drawSaga(t).world()
		read := rapid.IntRange(2, 20).Draw(t, "the row is read before chapter")
		gone := read + rapid.IntRange(0, 3).Draw(t, "chapters until the workflow is terminated")
		var row cluster.ElasticHost
		l.cut = func(n int) bool {
			if n == read {
				row = l.books.Row
			}
			return n == gone
		}
		l.relive(t, func() (workflows.Host, bool) { return workflows.ResumeHost(row), row.State != "" && row.State.Open() })
		l.judge(t)
	})
}

func TestAHostsStoryFromAnOldBackupGoesOnFromTheLedgersRow(t *testing.T) {
	thoroughly(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawSaga(t)
		// A call that is forgotten and carried out late cannot be undone, nor can a
		// provider be helped that refuses what it has granted.
		for verb, kind := range map[providers.Verb]mishap.Kind{providers.VerbReturn: mishap.Late, providers.VerbRequest: mishap.Refusal} {
			for i, m := range s.mishaps[verb] {
				if m.Kind == kind {
					s.mishaps[verb][i].Kind = mishap.NotHeard
				}
			}
		}
		l := s.world()
		saved := rapid.IntRange(1, 20).Draw(t, "backup before chapter")
		lost := saved + rapid.IntRange(1, 10).Draw(t, "chapters that are lost")
		var backup workflows.Host
		l.cut = func(n int) bool {
			if n == saved {
				backup = throughJSON(l.host)
			}
			return n == lost
		}
		l.relive(t, func() (workflows.Host, bool) { return backup, true })
		l.judge(t)
	})
}

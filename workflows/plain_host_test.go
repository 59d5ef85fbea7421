package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/maker"
	"xce.internal/elastic/workflows"
)

// yard is a world for the story of one host without Temporal and without a
// controller's store: the clock and agenda of [plain], the rules of the ledger, a
// maker, and the cluster with the jobs on the host, in memory and in one goroutine.
type yard struct {
	*plain
	maker *maker.Maker
	books ledger.Host
	terms cluster.HostTerms
	want  int64 // hosts that are demanded
	// idleSince is when a session found the host idle; 0 if it is not.
	idleSince cluster.Time
	lastSeen  cluster.Time
	// alive tells of each machine that it is there, and silent that the host does not
	// reach the controller.
	alive  map[string]bool
	silent bool
	// jobs are all that were ever on the host.
	jobs map[int]*work
	// wasLost and givenUp tell that the host did not answer for long, and that an
	// operator said that its machine is no more.
	wasLost, givenUp bool
	// hear answers how late the n-th message is told, and how often.
	hear func(n int) (late cluster.Duration, times int)
	said int
	// boots answers how long a machine takes to boot; 0 is for ever.
	boots  cluster.Duration
	events []ledger.HostEvent
	calls  []func()
}

// work is a job on the host: as the cluster sees it, and whether its machine runs it.
type work struct {
	state    cluster.JobState
	runs     bool
	stopping bool
}

const (
	hostID   = "host/c16-1"
	template = "c16"
)

func newYard() *yard {
	y := &yard{plain: newPlain(), want: 1, alive: map[string]bool{}, jobs: map[int]*work{}, boots: cluster.Minute}
	y.hear = func(int) (cluster.Duration, int) { return 100, 1 }
	y.terms = cluster.HostTerms{JoinWithin: 15 * cluster.Minute, IdleTime: 10 * cluster.Minute, PollInterval: 10 * cluster.Second}
	y.maker = &maker.Maker{Now: func() time.Time { return y.now.Std() }, Templates: []maker.Template{{
		Template: providers.Template{Template: template, CPUs: 16, MemoryMB: 65536}, Capacity: 3,
	}}}
	y.maker.Wake = func(d time.Duration) { y.at(cluster.DurationOf(d), y.maker.Advance) }
	y.maker.Made = func(m maker.Machine) {
		y.alive[m.ID] = true
		if y.boots > 0 {
			y.at(y.boots, func() { y.join(m) })
		}
	}
	y.maker.Ended = y.ended
	y.maker.BeforeReturn = y.judgeReturn
	y.script = activities.Provider{Script: y.maker, Hosts: gate{y}}
	return y
}

// gate is the controller as the activities of a provider of hosts reach it.
type gate struct{ y *yard }

func (gate) Join(_ context.Context, host string) (providers.Join, error) {
	return providers.Join{Host: host}, nil
}

func (g gate) Machines(context.Context, string) ([]api.HostMachine, error) {
	return g.y.machines(), nil
}

// machines are those that a list is compared with.
func (y *yard) machines() []api.HostMachine {
	row := y.books.Row
	if !row.State.Open() || row.ID == "" {
		return nil
	}
	return []api.HostMachine{{ID: row.ID, Instance: row.Instance, State: row.State}}
}

// ended ends a machine, and with it what runs on it.
func (y *yard) ended(m maker.Machine) {
	delete(y.alive, m.ID)
	if m.ID != y.books.Row.Instance {
		return
	}
	for _, w := range y.jobs {
		w.runs = false
	}
}

// join has a machine join; one that is not expected yet comes again.
func (y *yard) join(m maker.Machine) {
	switch {
	case !y.alive[m.ID] || y.books.Row.State != cluster.HostRequested && y.books.Row.Instance != m.ID:
		return
	case y.silent || y.books.Row.State == cluster.HostRequested:
		y.at(10*cluster.Second, func() { y.join(m) })
		return
	}
	if y.note(ledger.Join{Capacity: cluster.Capacity{CPUs: 16, MemoryMB: 65536}}) {
		y.lastSeen, y.idleSince = y.now, y.now
		y.tell(workflows.Message{Joined: &workflows.HostJoined{At: y.now}})
	}
}

// note writes what the cluster saw, and tells whether it changed anything.
func (y *yard) note(f ledger.HostFact) bool {
	row, event, err := y.books.Note(f, y.now)
	y.books.Row = row
	return err == nil && event.Kind != ""
}

// tell tells the story something, late and perhaps more than once.
func (y *yard) tell(m workflows.Message) {
	y.said++
	late, times := y.hear(y.said)
	for i := range times {
		y.at(late*cluster.Duration(i+1), func() { y.inbox = append(y.inbox, m) })
	}
}

// tick is a session, a look at how the host answers, and now and then a survey of
// the provider.
func (y *yard) tick(n int) {
	row := y.books.Row
	if y.alive[row.Instance] && !y.silent {
		y.lastSeen = y.now
	}
	if row.State.Here() {
		health := cluster.Well
		switch silence := y.now.Sub(y.lastSeen); {
		case silence >= 5*cluster.Minute:
			health, y.wasLost = cluster.Lost, true
		case silence >= 45*cluster.Second:
			health = cluster.Suspect
		}
		if y.note(ledger.Seen{Health: health, Why: "heard of or not"}) {
			y.tell(workflows.Message{Health: &workflows.HostHealth{Health: health}})
		}
	}
	if n%10 == 0 {
		y.survey()
	}
}

// survey tells the host what a provider's story would.
func (y *yard) survey() {
	mishap := y.maker.Mishap
	y.maker.Mishap = nil
	description, _ := y.maker.Describe(ctx)
	list, _ := y.maker.List(ctx)
	y.maker.Mishap = mishap
	at := y.now
	for _, r := range description.Recalls {
		by := at.Add(cluster.Duration(r.Grace) * cluster.Second)
		y.at(cluster.Second, func() {
			y.inbox = append(y.inbox, workflows.Message{Reclaimed: &workflows.Reclaimed{By: by}})
		})
	}
	inv := activities.Compare(y.machines(), list.Grants)
	if len(inv.MissingHosts)+len(inv.Swapped) > 0 {
		y.tell(workflows.Message{Check: true})
	}
}

// begin starts a job on the host, as soon as it takes any.
func (y *yard) begin(id int, lasts cluster.Duration) {
	row := y.books.Row
	if row.State != cluster.HostJoined || row.Health != cluster.Well || !y.alive[row.Instance] || y.silent {
		if y.now < began.Add(stormy) {
			y.at(cluster.Minute, func() { y.begin(id, lasts) })
		}
		return
	}
	w := &work{state: cluster.JobRunning, runs: true}
	y.jobs[id] = w
	y.load(1)
	y.at(lasts, func() { y.finish(w, cluster.JobDone) })
}

// load counts a job more or less.
func (y *yard) load(more int64) {
	y.books.Jobs += more
	y.idleSince = 0
	if y.books.Jobs == 0 {
		y.idleSince = y.now
	}
	if y.note(ledger.Load{Jobs: y.books.Jobs}) && y.books.Jobs == 0 && y.books.Row.Drain != nil {
		y.tell(workflows.Message{Emptied: true})
	}
}

// finish has the host report a job's end, as soon as it is heard.
func (y *yard) finish(w *work, state cluster.JobState) {
	switch {
	case !w.runs || state == cluster.JobWaiting && !w.stopping:
		return
	case y.silent:
		y.at(10*cluster.Second, func() { y.finish(w, state) })
		return
	}
	w.runs = false
	if w.state != cluster.JobRunning {
		return // it was given up, and waits for another host
	}
	w.state = state
	y.load(-1)
}

// judgeReturn sees every machine that a return ends: no job may be on it, unless it
// was given up.
func (y *yard) judgeReturn(m maker.Machine) {
	row := y.books.Row
	running := 0
	for _, w := range y.jobs {
		if w.runs {
			running++
		}
	}
	if m.ID == row.Instance && running > 0 && !y.givenUp && (!row.ReturnLost || !y.wasLost) {
		y.complain("%s goes back while %d jobs run on it; the host is %s", m.ID, running, row.State)
	}
}

// WriteHost implements HostEnv as the controller does.
func (y *yard) WriteHost(in api.WriteHost) (w api.HostWritten) {
	once := func() (err error) {
		row, event, err := y.books.Write(in.Host, in.Step, y.change(in), y.now)
		y.books.Row = row
		if err == nil && event.Kind != "" {
			y.events = append(y.events, event)
			y.bring(in, event)
		}
		return err
	}
	y.step(func() {
		y.calls = append(y.calls, func() { _ = once() })
		if back := y.again(len(y.calls)); back > 0 && back <= len(y.calls) {
			y.calls[len(y.calls)-back]()
		}
		var refusal *ledger.Refusal
		if errors.As(once(), &refusal) {
			w.Refusal = &api.Refusal{Code: string(refusal.Code), Text: refusal.Text}
		}
		w.Host = y.books.Row
	})
	return throughJSON(w)
}

func (y *yard) change(in api.WriteHost) ledger.HostChange {
	row := y.books.Row
	y.books.Demanded = y.want
	switch {
	case in.Intend != nil:
		return ledger.IntendHost{HostRequest: *in.Intend, Capacity: cluster.Capacity{CPUs: 16, MemoryMB: 65536}, Terms: y.terms}
	case in.Expect != nil:
		return ledger.ExpectHost{Instance: in.Expect.Instance, Name: row.DefaultName(), Address: in.Expect.Address}
	case in.Refuse != nil:
		return ledger.RefuseHost{Why: in.Refuse.Why}
	case in.Lapse != nil:
		return ledger.LapseHost{Why: in.Lapse.Why}
	case in.Drain != nil:
		return ledger.DrainHost{Drain: *in.Drain}
	case in.Undrain != nil:
		return ledger.UndrainHost{By: in.Undrain.By}
	case in.Keep != nil:
		return ledger.KeepHost{Keep: *in.Keep}
	case in.Release != nil:
		return ledger.ReleaseHost{By: in.Release.By}
	case in.StopJobs != nil:
		return ledger.StopJobs{Why: in.StopJobs.Why}
	case in.Fence:
		idle, again := policy.ReturnHost(row, y.idleSince, y.now)
		return ledger.FenceHost{Idle: idle, AskAgain: again, Why: "idle"}
	case in.Confirm:
		return ledger.ConfirmHost{}
	}
	return ledger.LoseHost{Why: in.Gone.Why}
}

// bring does what a change means for the jobs.
func (y *yard) bring(in api.WriteHost, event ledger.HostEvent) {
	switch {
	case in.Intend != nil && event.After.State.Open():
		y.want--
	case in.StopJobs != nil:
		for _, w := range y.jobs {
			w.stopping = w.runs
			y.at(2*cluster.Second, func() { y.finish(w, cluster.JobWaiting) })
		}
	case in.Gone != nil:
		y.requeueAll(in, event)
	case event.After.State == cluster.HostLeaving && y.books.Jobs > 0:
		y.complain("the host leaves with %d jobs", y.books.Jobs)
	}
}

func (y *yard) requeueAll(in api.WriteHost, event ledger.HostEvent) {
	byHand := in.Gone.By == operator
	y.givenUp = y.givenUp || byHand
	for id, w := range y.jobs {
		if w.state != cluster.JobRunning {
			continue
		}
		if w.runs && !byHand {
			y.complain("job %d waits again and still runs on %s", id, event.Before.Instance)
		}
		w.state = cluster.JobWaiting
	}
	y.books.Jobs = 0
}

const operator = "admin/eve"

// String is what the story wrote, a line for each write.
func (y *yard) String() (text string) {
	for _, e := range y.events {
		row, _ := json.Marshal(e.After)
		text += fmt.Sprintf("%s %s\n", e.Kind, row)
	}
	return text
}

var _ workflows.HostEnv = (*yard)(nil)

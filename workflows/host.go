package workflows

import (
	"fmt"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/providers"
)

// Host is all that a host's story remembers.
type Host struct {
	Request cluster.HostRequest `json:"request"`
	// Row is the ledger's row as it was answered last, with what the story was
	// told since.
	Row cluster.ElasticHost `json:"row"`
	Dealing
	// Step numbers the last write to the ledger.
	Step int64 `json:"step"`
	// Machines are what the provider made.
	Machines []providers.Instance `json:"machines,omitempty"`
	// AskNow tells that a fence should be asked for without waiting, and Next is
	// when to do so otherwise.
	AskNow bool         `json:"ask_now"`
	Next   cluster.Time `json:"next,omitempty"`
	// Absent counts the looks in a row at which the provider did not list the
	// machine.
	Absent int64 `json:"absent"`
	// Taken tells that the provider may be ending the machine.
	Taken bool `json:"taken,omitempty"`
}

const (
	// absences is how often in a row a machine must not be listed to be gone.
	absences = 2
	// drainLook is how often at most a draining host is looked at that no one said
	// to be empty.
	drainLook = 5 * cluster.Minute
	// keptLook is how often the row of a host is looked at that an operator keeps,
	// should its release not have been heard of.
	keptLook = cluster.Hour
)

// ResumeHost answers the story of a host of which only the ledger's row is left,
// taken up where it can be without harm. An unsettled request is intended again,
// since the row may be settled by now, and then withdrawn.
func ResumeHost(row cluster.ElasticHost) Host {
	h := Host{Row: row, Step: row.Step, Request: cluster.HostRequest{
		ID: row.ID, Provider: row.Provider, Template: row.Template, Jobs: row.Jobs, Reason: row.Reason, PollInterval: row.PollInterval,
	}}
	if row.Instance != "" {
		h.Machines = []providers.Instance{{ID: row.Instance, Name: row.Name, Address: row.Address}}
	}
	switch row.State {
	case cluster.HostRequested:
		h.Step, h.Cancelled = row.Step-1, true
	case cluster.HostExpected:
		h.Chapter = Joining
	case cluster.HostJoined, cluster.HostDraining:
		h.Chapter, h.AskNow = Keeping, true
	case cluster.HostLeaving:
		h.Chapter = GivingBack
	default:
		h.Chapter = Closed
	}
	return h
}

// Live tells the host's story from where its state is, and answers true once it
// is over, or false where the environment is full.
func (h *Host) Live(env HostEnv) bool {
	for h.Chapter != Closed {
		if env.Full() {
			return false
		}
		switch h.Chapter {
		case Intending:
			h.intend(env)
		case Requesting:
			settle(h, env, env.Request(h.ask()))
		case Polling:
			poll(h, env)
		case Settling:
			findOut(h, env)
		case Committing:
			h.expect(env)
		case Joining:
			h.await(env)
		case Keeping:
			h.keep(env)
		case GivingBack:
			h.giveBack(env)
		case Verifying:
			h.verify(env)
		}
	}
	h.show(env, "nothing", 0)
	return true
}

// ask names the request at its provider. The host's id is the request's id.
func (h *Host) ask() activities.Ask {
	return activities.Ask{Provider: h.Request.Provider, Request: h.Request.ID, Template: h.Request.Template, Units: 1, Weight: 1}
}

func (h *Host) pollInterval() cluster.Duration { return max(h.Request.PollInterval, cluster.Second) }

// pause waits, and hears what is said meanwhile.
func (h *Host) pause(env HostEnv, waitsFor string, d cluster.Duration) {
	until := env.Now().Add(d)
	h.show(env, waitsFor, until)
	for {
		m, ok := env.Receive(until)
		if !ok {
			return
		}
		before := h.Chapter
		if h.hear(env, m); h.Chapter == Closed || h.Chapter == Keeping && before != Keeping {
			return
		}
	}
}

// write writes one change to the ledger, numbered. Where it was refused because
// the row is another than the story remembers, as when Temporal was restored from
// an old backup, the story goes on from the row, and answers false.
func (h *Host) write(env HostEnv, in api.WriteHost) (api.HostWritten, bool) {
	h.Step++
	in.Host, in.Step = h.Request.ID, h.Step
	w := env.WriteHost(in)
	if w.Refusal == nil && !landed(in, w.Host) { // the step was another write's
		h.Step++
		in.Step = h.Step
		w = env.WriteHost(in)
	}
	if w.Refusal == nil {
		h.Row = w.Host
		return w, true
	}
	switch w.Refusal.Code {
	case "stale":
		*h = ResumeHost(w.Host)
		return w, false
	case "closed":
		h.Row = w.Host
		h.surrender("the ledger has closed the host: " + w.Refusal.Text)
		return w, false
	case "unknown":
		h.surrender("the ledger does not have the host: " + w.Refusal.Text)
		return w, false
	}
	h.Step-- // nothing was written under it
	if w.Host.ID != "" {
		h.Row = w.Host
	}
	return w, true
}

// landed tells whether a row is as it is after a write.
func landed(in api.WriteHost, row cluster.ElasticHost) bool {
	switch {
	case in.Expect != nil:
		return row.State != cluster.HostRequested
	case in.Lapse != nil:
		return row.State != cluster.HostExpected && !row.State.Here()
	case in.Drain != nil:
		return row.Drain != nil || !row.State.Here()
	case in.Undrain != nil:
		return row.Drain == nil
	case in.Keep != nil:
		return row.Keep != nil
	case in.Release != nil:
		return row.Keep == nil
	case in.StopJobs != nil:
		return row.Drain != nil && row.Drain.Requeued > 0
	}
	return in.Intend != nil || in.Fence || !row.State.Open()
}

// surrender gives the machine back without the ledger, which does not carry it.
func (h *Host) surrender(why string) {
	h.Surrender = why
	if len(h.Machines) == 0 {
		h.turn(Closed)
		return
	}
	h.turn(GivingBack)
}

// intend records the intent before anyone is asked. Where the demand is gone
// meanwhile, the story ends here.
func (h *Host) intend(env HostEnv) {
	h.show(env, "the ledger", 0)
	w, ok := h.write(env, api.WriteHost{Intend: &h.Request})
	switch {
	case !ok:
	case w.Refusal != nil:
		h.Trouble = w.Refusal.Text
		h.turn(Closed)
	case !h.Row.State.Open():
		h.turn(Closed)
	case h.Row.State != cluster.HostRequested: // it was settled before
		*h = ResumeHost(h.Row)
	case h.Cancelled:
		h.turn(Settling)
	default:
		h.turn(Requesting)
		h.show(env, "an answer of "+h.Request.Provider, 0)
	}
}

func (h *Host) granted(g activities.Grant) {
	h.Machines = g.Instances
	if len(g.Instances) == 0 {
		h.turn(Settling) // units without a machine are no answer
		return
	}
	h.turn(Committing)
}

func (h *Host) refused(env HostEnv, o providers.Outcome) {
	refuse := api.RefuseHost{
		Why: o.Message, RetryAfter: cluster.Duration(o.RetryAfter) * cluster.Second,
		Ours: o.Status == "" || o.Reason == providers.ReasonInvalid,
	}
	if o.Status != "" {
		refuse.Why = words(o)
	}
	h.end(env, api.WriteHost{Refuse: &refuse})
}

// end writes what closes the row. Where the row is another than the story
// remembers and stays open, the story goes on from it.
func (h *Host) end(env HostEnv, in api.WriteHost) {
	switch _, ok := h.write(env, in); {
	case !ok:
	case h.Row.State.Open():
		*h = ResumeHost(h.Row)
	default:
		h.turn(Closed)
	}
}

// expect tells the ledger what machine is coming. More than one for one host is
// given back at once, and one that the ledger does not take too.
func (h *Host) expect(env HostEnv) {
	machine := h.Machines[0]
	w, ok := h.write(env, api.WriteHost{Expect: &api.ExpectHost{Instance: machine.ID, Name: machine.Name, Address: machine.Address}})
	if !ok {
		return
	}
	if w.Refusal != nil {
		h.surrender("the machine could not be expected: " + w.Refusal.Text)
		return
	}
	h.giveMore(env, h.Machines)
	h.Machines = h.Machines[:1]
	h.turn(Joining)
}

// await waits for the host to join. One that does not is given up at the
// deadline, unless it joined just then.
func (h *Host) await(env HostEnv) {
	h.show(env, "the host to join", h.Row.JoinBy)
	if m, ok := env.Receive(h.Row.JoinBy); ok {
		h.hear(env, m)
		return
	}
	h.lapse(env, api.LapseHost{Why: fmt.Sprintf("it has not joined within %s", h.Row.JoinWithin), Late: true})
}

// lapse gives up a host that has not joined.
func (h *Host) lapse(env HostEnv, in api.LapseHost) {
	w, ok := h.write(env, api.WriteHost{Lapse: &in})
	switch {
	case !ok:
	case w.Refusal == nil:
		h.turn(GivingBack)
	case h.Row.State.Here():
		h.joined(h.Row.Joined)
	default:
		h.turn(Closed)
	}
}

// joined begins the host's time in the cluster.
func (h *Host) joined(at cluster.Time) {
	if h.Row.State == cluster.HostExpected {
		h.Row.State, h.Row.Joined = cluster.HostJoined, at
	}
	h.Next, h.AskNow = policy.FirstReturn(h.Row, at), h.Row.Health == cluster.Lost
	h.turn(Keeping)
}

// giveBack gives the machine back to the provider.
func (h *Host) giveBack(env HostEnv) {
	h.Tries++
	h.show(env, h.Request.Provider+" to take the machine back", 0)
	left := env.Return(activities.GiveBack{Ask: h.ask(), Remaining: 0, Instances: h.Machines})
	h.note(left.Outcome)
	h.Taken = h.Taken || left.Outcome.Status != providers.StatusRefused
	switch {
	case left.Outcome.Status == providers.StatusOK && left.Units == 0:
		h.back(env)
	case left.Outcome.Status == providers.StatusRefused:
		wait := cluster.Duration(left.Outcome.RetryAfter) * cluster.Second
		if wait == 0 {
			wait = backoff(h.pollInterval(), 10*cluster.Minute, h.Tries)
		}
		h.Chapter = Verifying
		h.pause(env, fmt.Sprintf("a list: %s refused to take the machine back", h.Request.Provider), wait)
	default:
		h.Chapter = Verifying
		h.pause(env, fmt.Sprintf("a list of %s without the machine", h.Request.Provider), backoff(h.pollInterval(), 10*cluster.Minute, h.Tries))
	}
}

// verify settles a return of which the outcome is open by the provider's list.
// Where there is none to be believed, the machine is given back once more.
func (h *Host) verify(env HostEnv) {
	held := env.Holding(h.ask())
	h.note(held.Outcome)
	switch {
	case held.Outcome.Status != providers.StatusOK:
		h.Tries++
		h.Chapter = GivingBack
		h.pause(env, fmt.Sprintf("a list of %s without the machine", h.Request.Provider), backoff(h.pollInterval(), 10*cluster.Minute, h.Tries))
	case held.Ceil() == 0:
		h.back(env)
	default:
		h.Chapter, h.Machines = GivingBack, held.Instances
	}
}

// back records that the provider has the machine back, and ends the story.
func (h *Host) back(env HostEnv) {
	in := api.WriteHost{Gone: &api.By{By: h.Request.Provider, Why: h.Request.Provider + " has the machine back"}}
	switch {
	case h.Surrender != "" && h.Row.State != cluster.HostRequested:
		h.turn(Closed)
		return
	case h.Surrender != "":
		in = api.WriteHost{Refuse: &api.RefuseHost{Why: h.Surrender, Ours: true}}
	case h.Row.State == cluster.HostLeaving:
		in = api.WriteHost{Confirm: true}
	}
	h.Machines = nil
	h.end(env, in)
}

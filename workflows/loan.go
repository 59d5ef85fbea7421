package workflows

import (
	"fmt"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// Chapter says where a loan's story is.
type Chapter string

// Chapters of a loan, in the order in which it goes through them.
const (
	Intending  Chapter = ""           // record the intent
	Requesting Chapter = "requesting" // ask the lender
	Polling    Chapter = "polling"    // the lender has not decided
	Settling   Chapter = "settling"   // what the lender did is unknown
	Committing Chapter = "committing" // take the grant into the total
	Keeping    Chapter = "keeping"    // minimum hold, use, idleness
	GivingBack Chapter = "returning"  // give fenced units back
	Verifying  Chapter = "verifying"  // see whether they are back
	Closed     Chapter = "closed"
)

// Loan is all that a loan's story remembers.
type Loan struct {
	Request cluster.LoanRequest `json:"request"`
	// Row is the ledger's row as it was answered last.
	Row     cluster.Loan `json:"row"`
	Chapter Chapter      `json:"chapter"`
	// Step numbers the last write to the ledger.
	Step int64 `json:"step"`
	// Granted is what the lender gave; Rest that it counts a part of a unit more.
	Granted int64 `json:"granted"`
	Rest    bool  `json:"rest"`
	// Tries counts the calls without success of this chapter, and Doubts the looks
	// at a pending request that failed in a row.
	Tries  int64 `json:"tries"`
	Doubts int64 `json:"doubts"`
	// Cancelled tells that the request is being withdrawn: nothing of it may be
	// used. CancelHeard tells that the lender knows.
	Cancelled   bool `json:"cancelled"`
	CancelHeard bool `json:"cancel_heard"`
	// Surrender is why the ledger does not carry the loan any more, so that all
	// of it goes back without the ledger.
	Surrender string `json:"surrender,omitempty"`
	// AskNow tells that a fence should be asked for without waiting.
	AskNow bool `json:"ask_now"`
	// GaveBack is when the lender had units back last.
	GaveBack cluster.Time `json:"gave_back,omitempty"`
	// Trouble is what went wrong last, in the provider's words.
	Trouble string `json:"trouble,omitempty"`
	// WaitsFor and Until say what the story waits for.
	WaitsFor string       `json:"waits_for"`
	Until    cluster.Time `json:"until,omitempty"`
}

// ResumeLoan answers the story of a loan of which only the ledger's row is left,
// taken up where it can be without harm. An unsettled request is intended again,
// since the row may be settled by now, and then withdrawn: whether it was made,
// or cancelled already by a call that may yet be carried out, is not known.
func ResumeLoan(row cluster.Loan) Loan {
	l := Loan{Request: row.LoanRequest, Row: row, Step: row.Step, Chapter: Keeping}
	switch {
	case row.State == cluster.LoanRequested:
		l.Chapter, l.Step, l.Cancelled = Intending, row.Step-1, true
	case row.Fenced > 0:
		l.Chapter = GivingBack
	}
	return l
}

// Live tells the loan's story from where its state is, and answers true once
// it is over, or false where the environment is full.
func (l *Loan) Live(env LoanEnv) bool {
	for l.Chapter != Closed {
		if env.Full() {
			return false
		}
		switch l.Chapter {
		case Intending:
			l.intend(env)
		case Requesting:
			l.settle(env, env.Request(l.ask()))
		case Polling:
			l.poll(env)
		case Settling:
			l.findOut(env)
		case Committing:
			l.commit(env)
		case Keeping:
			l.keep(env)
		case GivingBack:
			l.giveBack(env)
		case Verifying:
			l.verify(env)
		}
	}
	l.show(env, "nothing", 0)
	l.tellChanged(env)
	return true
}

// tellChanged tells the provider's story that the lender has other units to
// lend than it said last.
func (l *Loan) tellChanged(env LoanEnv) {
	env.TellProvider(l.Request.Provider, Message{Changed: &Changed{Loan: l.Request.ID}})
}

// turn begins a chapter.
func (l *Loan) turn(to Chapter) { l.Chapter, l.Tries = to, 0 }

// intend records the intent before anyone is asked. Where the demand is gone
// meanwhile, the story ends here.
func (l *Loan) intend(env LoanEnv) {
	l.show(env, "the ledger", 0)
	w := env.Intend(api.IntendLoan{LedgerWrite: l.write(), Request: l.Request})
	if l.ahead(w) {
		return
	}
	l.Row = w.Loan
	switch {
	case w.Refusal != nil:
		l.Trouble = w.Refusal.Text
		l.turn(Closed)
	case !w.Loan.State.Open():
		l.turn(Closed)
	case l.Cancelled:
		l.turn(Settling)
	default:
		l.turn(Requesting)
		l.show(env, "an answer of "+l.Request.Provider, 0)
	}
}

// settle takes the lender's answer to the request.
func (l *Loan) settle(env LoanEnv, g activities.Grant) {
	l.note(g.Outcome)
	switch g.Outcome.Status {
	case providers.StatusOK, providers.StatusPartial:
		l.granted(g)
	case providers.StatusRefused:
		l.refused(env, words(g.Outcome), cluster.Duration(g.Outcome.RetryAfter)*cluster.Second)
	case providers.StatusPending:
		if l.Chapter != Polling {
			l.turn(Polling)
		}
	default:
		l.turn(Settling)
	}
}

func (l *Loan) granted(g activities.Grant) {
	l.Granted, l.Rest = g.Units, g.Rest
	if g.Units == 0 {
		l.surrender(fmt.Sprintf("%s granted less than one unit", l.Request.Provider), 1)
		return
	}
	l.turn(Committing)
}

func (l *Loan) refused(env LoanEnv, why string, retryAfter cluster.Duration) {
	w := env.Refuse(api.RefuseLoan{LedgerWrite: l.write(), Why: why, RetryAfter: retryAfter})
	switch {
	case l.ahead(w):
		return
	case w.Refusal == nil && w.Loan.State.Open(): // the step was another write's
		*l = ResumeLoan(w.Loan)
		return
	case w.Refusal == nil:
		l.Row = w.Loan
	}
	l.turn(Closed)
}

// mostDoubts is how many looks in a row may fail before a pending request is
// taken for one of unknown outcome, which is cancelled unless it is listed.
const mostDoubts = 3

// poll asks how the request stands, until the lender has decided.
func (l *Loan) poll(env LoanEnv) {
	l.Tries++
	l.pause(env, "a decision of "+l.Request.Provider, backoff(l.pollInterval(), 5*cluster.Minute, l.Tries))
	g := env.Status(l.ask())
	if g.Outcome.Status == providers.StatusUnknown && l.Doubts < mostDoubts {
		l.Doubts++
		l.note(g.Outcome)
		return
	}
	l.Doubts = 0
	l.settle(env, g)
}

// findOut settles a request of which the outcome is unknown by what the lender
// lists under its id. Where it lists nothing the request is cancelled, so that
// it cannot be granted late; once the lender knows, the list must show nothing
// again. A cancel that was not heard may still come to be: what is listed after
// it is not used either.
func (l *Loan) findOut(env LoanEnv) {
	l.Tries++
	l.pause(env, "a list of "+l.Request.Provider+", since the outcome of the request is unknown", backoff(l.pollInterval(), 10*cluster.Minute, l.Tries))
	held := env.Holding(l.ask())
	l.note(held.Outcome)
	if held.Outcome.Status != providers.StatusOK {
		return
	}
	switch listed := held.Ceil(); {
	case listed > 0 && !l.Cancelled:
		l.granted(held)
	case listed == 0 && l.CancelHeard:
		l.refused(env, fmt.Sprintf("the outcome was unknown; cancelled, and %s lists nothing of it", l.Request.Provider), 0)
	default:
		l.Cancelled = true
		cancel := env.Return(activities.GiveBack{Ask: l.ask(), Remaining: 0}).Outcome
		l.note(cancel)
		l.CancelHeard = l.CancelHeard || heard(cancel)
	}
}

// heard tells that the lender knows of a cancel: it has noted it, or says that
// there is no such request.
func heard(cancel providers.Outcome) bool {
	return cancel.Status == providers.StatusOK ||
		cancel.Status == providers.StatusRefused && cancel.Reason == providers.ReasonInvalid
}

// commit takes the grant into the total. A grant that the ledger does not take
// goes back.
func (l *Loan) commit(env LoanEnv) {
	w := env.Commit(api.CommitLoan{LedgerWrite: l.write(), Granted: l.Granted})
	if l.ahead(w) {
		return
	}
	if w.Refusal != nil {
		l.surrender("the grant could not be committed: "+w.Refusal.Text, l.Granted)
		return
	}
	l.Row = w.Loan
	l.turn(Keeping)
	if l.Row.Fenced > 0 || l.Rest {
		l.turn(GivingBack)
	}
	if l.Granted != l.Row.Units {
		l.tellChanged(env)
	} else {
		// One request less is open: what demand it could not carry may follow.
		env.TellProvider(l.Request.Provider, Message{Demand: true})
	}
}

// surrender gives all units back without the ledger, which does not carry them.
func (l *Loan) surrender(why string, units int64) {
	l.Surrender = why
	l.Row = cluster.Loan{LoanRequest: l.Request, State: cluster.LoanReturning, Fenced: units, Why: why}
	l.turn(GivingBack)
}

// keep waits until units of the loan may go back, and asks the ledger to take
// them out of the total. First the minimum hold passes, then the ledger says
// each time when it is worth asking again.
func (l *Loan) keep(env LoanEnv) {
	if !l.AskNow {
		l.show(env, l.keepingFor(env.Now()), l.Row.AskAgain)
		if m, ok := env.Receive(l.Row.AskAgain); ok {
			l.hear(env, m)
			return
		}
	}
	l.AskNow = false
	l.fence(env, api.FenceLoan{LedgerWrite: l.write()})
	if l.Chapter != Keeping {
		return
	}
	l.Row.AskAgain = l.askAgain(env.Now())
}

// askAgain answers when to ask for the next fence: when the ledger says, but
// never at once. Recalled units that jobs use are asked for less and less often,
// and so is a ledger whose clock is behind.
func (l *Loan) askAgain(now cluster.Time) cluster.Time {
	soonest := now.Add(cluster.Second)
	shortest := cluster.Second
	switch {
	case l.Row.Recalled > 0:
		shortest = 15 * cluster.Second
	case l.Row.AskAgain > now:
		l.Tries = 0
		return max(l.Row.AskAgain, soonest)
	}
	l.Tries++
	return now.Add(backoff(shortest, 5*cluster.Minute, l.Tries))
}

func (l *Loan) keepingFor(now cluster.Time) string {
	switch {
	case l.Row.Fenced > 0:
		return fmt.Sprintf("the next try: %s refused to take %d units back", l.Request.Provider, l.Row.Fenced)
	case now < l.Row.HoldUntil:
		return "the end of the minimum hold"
	case l.Row.Recalled > 0:
		return "jobs to give recalled units back"
	}
	return "idle units"
}

// fence asks the ledger to take units out of the total.
func (l *Loan) fence(env LoanEnv, in api.FenceLoan) api.Written {
	w := env.Fence(in)
	if l.lost(w) {
		return w
	}
	if w.Refusal == nil {
		l.Row = w.Loan
	}
	if l.Row.Fenced > 0 {
		l.Chapter = GivingBack
	}
	return w
}

// ahead takes the story up from the ledger's row, where a write was refused and
// the row is not what the story remembers, as when Temporal was restored from an
// old backup.
func (l *Loan) ahead(w api.Written) bool {
	if w.Refusal == nil || w.Loan.ID == "" || !w.Loan.State.Open() || w.Loan.Step == l.Row.Step {
		return false
	}
	*l = ResumeLoan(w.Loan)
	return true
}

// lost tells that the ledger does not carry the loan as the story remembers it.
// Where it does not carry it at all, as when it was restored from an old backup,
// all of the loan goes back.
func (l *Loan) lost(w api.Written) bool {
	if w.Refusal == nil || l.ahead(w) {
		return w.Refusal != nil
	}
	switch w.Refusal.Code {
	case "unknown", "closed", "stale":
		l.surrender("the ledger carries the loan no more: "+w.Refusal.Text, l.Row.Held())
		return true
	}
	return false
}

// giveBack gives the fenced units back to the lender. One that refuses them may
// take the whole loan: what jobs may use of it is kept meanwhile.
func (l *Loan) giveBack(env LoanEnv) {
	l.Tries++
	l.show(env, fmt.Sprintf("%s to take %d units back", l.Request.Provider, l.Row.Fenced), 0)
	left := env.Return(activities.GiveBack{Ask: l.ask(), Remaining: l.Row.Borrowed + l.Row.Recalled})
	l.note(left.Outcome)
	switch left.Outcome.Status {
	case providers.StatusOK, providers.StatusPartial:
		l.Rest = false
		l.confirm(env, left.Ceil())
	case providers.StatusRefused:
		wait := cluster.Duration(left.Outcome.RetryAfter) * cluster.Second
		if wait == 0 {
			wait = backoff(l.pollInterval(), 10*cluster.Minute, l.Tries)
		}
		if l.Row.Borrowed+l.Row.Recalled > 0 {
			l.keepOn(env.Now(), wait)
			return
		}
		l.pause(env, fmt.Sprintf("the next try: %s refused to take %d units back", l.Request.Provider, l.Row.Fenced), wait)
	default:
		l.Chapter = Verifying
	}
}

// keepOn goes on with keeping for so long, or until more lies idle.
func (l *Loan) keepOn(now cluster.Time, most cluster.Duration) {
	l.Chapter = Keeping
	until := now.Add(most)
	if l.Row.Recalled == 0 {
		until = min(until, max(l.Row.AskAgain, now.Add(l.pollInterval())))
	}
	l.Row.AskAgain = until
}

// verify settles a return of which the outcome is open by the lender's list.
func (l *Loan) verify(env LoanEnv) {
	l.pause(env, fmt.Sprintf("a list of %s that shows %d units back", l.Request.Provider, l.Row.Fenced), backoff(l.pollInterval(), 10*cluster.Minute, l.Tries))
	held := env.Holding(l.ask())
	l.note(held.Outcome)
	if held.Outcome.Status != providers.StatusOK {
		l.Tries++
		return
	}
	l.Rest = false
	l.confirm(env, held.Ceil())
}

// confirm records how many of the fenced units the lender has back, given what
// it still lends. What it has not is asked for again.
func (l *Loan) confirm(env LoanEnv, left int64) {
	back := min(max(l.Row.Held()-left, 0), l.Row.Fenced)
	if back > 0 && !l.confirmed(env, back) {
		return
	}
	switch {
	case l.Row.Held() == 0:
		l.end(env)
	case l.Row.Fenced == 0:
		l.turn(Keeping)
		if back > 0 {
			l.tellChanged(env)
		}
	default:
		l.Chapter = GivingBack
		l.pause(env, fmt.Sprintf("the next try: %s still lends %d units", l.Request.Provider, left), backoff(l.pollInterval(), 10*cluster.Minute, l.Tries))
	}
}

// confirmed tells the ledger, or answers false where it does not carry the loan
// as the story remembers it.
func (l *Loan) confirmed(env LoanEnv, back int64) bool {
	l.GaveBack = env.Now()
	if l.Surrender != "" {
		l.Row.Fenced -= back
		l.Row.Returned += back
		return true
	}
	w := env.Confirm(api.ConfirmLoan{LedgerWrite: l.write(), Units: back})
	if l.lost(w) {
		return false
	}
	if w.Refusal == nil {
		l.Row = w.Loan
	}
	return true
}

// end closes the story. A surrendered loan may still have an open row.
func (l *Loan) end(env LoanEnv) {
	if l.Surrender != "" {
		l.refused(env, l.Surrender, 0)
		return
	}
	l.turn(Closed)
}

// hear answers a message.
func (l *Loan) hear(env LoanEnv, m Message) {
	switch {
	case m.Return != nil:
		m.Return.Answer(l.operatorReturn(env, m.Return.ReturnUnits))
	case m.Recalled != nil && m.Recalled.At > l.GaveBack:
		l.recall(env, m.Recalled.Units-l.Row.Recalled-l.Row.Fenced, fmt.Sprintf("%s wants %d units back", l.Request.Provider, m.Recalled.Units))
	case m.Check && l.Chapter == Keeping:
		l.check(env)
	}
}

// check compares the books with the lender's list. What the lender has lost is
// recalled, unless it is already; what it lends beyond the books goes back.
func (l *Loan) check(env LoanEnv) {
	held := env.Holding(l.ask())
	if held.Outcome.Status != providers.StatusOK {
		return
	}
	listed := held.Ceil()
	if listed > l.Row.Held() {
		l.turn(GivingBack)
		return
	}
	l.recall(env, l.Row.Borrowed+l.Row.Fenced-listed, fmt.Sprintf("%s lists %d units, %d fewer than were lent", l.Request.Provider, listed, l.Row.Held()-listed))
}

// MayReturn tells whether an operator's wish can be taken up at all, or why
// not: what needs no look at the ledger.
func (l *Loan) MayReturn(now cluster.Time, wish ReturnUnits) error {
	here := l.Row.Borrowed + l.Row.Recalled
	switch {
	case wish.Units < 0:
		return fmt.Errorf("%d units cannot be returned; ask for 1 or more, or 0 for all", wish.Units)
	case l.Chapter == GivingBack || l.Chapter == Verifying:
		return fmt.Errorf("%d units of %s are on their way back already; ask again when they are there", l.Row.Fenced, l.Request.ID)
	case l.Chapter != Keeping:
		return fmt.Errorf("loan %s is %s: there is nothing to return", l.Request.ID, l.state())
	case wish.Units > here:
		return fmt.Errorf("loan %s has %d units, not %d", l.Request.ID, here, wish.Units)
	case now < l.Row.HoldUntil && l.Row.Recalled == 0:
		return fmt.Errorf("loan %s is held until %s, as %s demands", l.Request.ID, l.Row.HoldUntil, l.Request.Provider)
	}
	return nil
}

// operatorReturn fences exactly what an operator asked for, all or none.
func (l *Loan) operatorReturn(env LoanEnv, wish ReturnUnits) ReturnAnswer {
	if err := l.MayReturn(env.Now(), wish); err != nil {
		return ReturnAnswer{Refused: err.Error()}
	}
	units := wish.Units
	if units == 0 {
		units = l.Row.Borrowed + l.Row.Recalled
	}
	w := l.fence(env, api.FenceLoan{LedgerWrite: l.write(), Units: units, Why: "returned by " + wish.By})
	if w.Refusal != nil {
		return ReturnAnswer{Refused: w.Refusal.Text}
	}
	return ReturnAnswer{Units: units}
}

// recall takes units that the lender wants back out of the total at once; they
// go back as soon as no job uses them.
func (l *Loan) recall(env LoanEnv, units int64, why string) {
	units = min(units, l.Row.Borrowed)
	if units < 1 || l.Surrender != "" {
		return
	}
	w := env.Recall(api.RecallLoan{LedgerWrite: l.write(), Units: units, Why: why})
	if l.lost(w) || w.Refusal != nil {
		return
	}
	l.Row, l.AskNow = w.Loan, true
}

// pause waits, and hears what is said meanwhile.
func (l *Loan) pause(env LoanEnv, waitsFor string, d cluster.Duration) {
	until := env.Now().Add(d)
	l.show(env, waitsFor, until)
	for {
		m, ok := env.Receive(until)
		if !ok {
			return
		}
		l.hear(env, m)
	}
}

// write numbers the next write to the ledger.
func (l *Loan) write() api.LedgerWrite {
	l.Step++
	return api.LedgerWrite{Loan: l.Request.ID, Resource: l.Request.Resource, Step: l.Step}
}

// ask names the request at its provider. The loan's id is the request's id.
func (l *Loan) ask() activities.Ask {
	units := l.Row.Units
	if l.Chapter == GivingBack || l.Chapter == Verifying {
		units = l.Row.Fenced
	}
	return activities.Ask{
		Provider: l.Request.Provider, Request: l.Request.ID, Resource: l.Request.Resource,
		Units: units, Weight: max(l.Request.UnitWeight, 1),
	}
}

func (l *Loan) pollInterval() cluster.Duration { return max(l.Request.PollInterval, cluster.Second) }

// note remembers what went wrong, in the provider's words; success forgets it.
func (l *Loan) note(o providers.Outcome) {
	l.Trouble = ""
	if o.Status == providers.StatusUnknown || o.Status == providers.StatusRefused {
		l.Trouble = words(o)
	}
}

// words says in one line how a call ended.
func words(o providers.Outcome) string {
	text := string(o.Status)
	if o.Reason != "" {
		text += " (" + string(o.Reason) + ")"
	}
	if o.Message != "" {
		text += ": " + o.Message
	}
	return text
}

// backoff answers how long to wait before the n-th try (n from 1): twice as
// long each time from `first` to `most`.
func backoff(first, most cluster.Duration, n int64) cluster.Duration {
	wait := first
	for ; n > 1 && wait < most; n-- {
		wait *= 2
	}
	return min(wait, max(most, first))
}

// state is the loan's state for people: the ledger's, and finer where the story knows more.
func (l *Loan) state() string {
	switch l.Chapter {
	case Intending, Requesting, Polling, Settling, Committing:
		return "requested"
	case GivingBack, Verifying:
		return "returning"
	case Keeping:
		if l.Row.Fenced > 0 {
			return "returning"
		}
		if l.Row.Recalled > 0 {
			return "recalled"
		}
		return "borrowed"
	}
	if l.Row.Returned > 0 {
		return "returned"
	}
	return "refused"
}

// show tells people how the loan stands.
func (l *Loan) show(env LoanEnv, waitsFor string, until cluster.Time) {
	l.WaitsFor, l.Until = waitsFor, until
	r := l.Row
	title := fmt.Sprintf("%s: %d %s from %s, %s", l.Request.ID, r.Held(), l.Request.Resource, l.Request.Provider, l.state())
	wait := "Waits for " + waitsFor
	if until > 0 {
		wait += ", until " + until.Std().Format("2006-01-02 15:04:05 UTC")
	}
	details := []string{
		fmt.Sprintf("**%s**", title), "",
		wait + ".", "",
		"| requested | borrowed | recalled | fenced | returned |",
		"|---|---|---|---|---|",
		fmt.Sprintf("| %d | %d | %d | %d | %d |", r.Units, r.Borrowed, r.Recalled, r.Fenced, r.Returned), "",
		fmt.Sprintf("Taken because %s.", l.Request.Reason),
	}
	if r.Why != "" && r.Why != l.Request.Reason {
		details = append(details, "", "Last: "+r.Why+".")
	}
	if l.Trouble != "" {
		details = append(details, "", fmt.Sprintf("Trouble after %d tries: %s", l.Tries, l.Trouble))
	}
	env.Show(Summary{State: l.state(), Units: r.Held(), Waits: waitsFor, Title: title, Details: details})
}

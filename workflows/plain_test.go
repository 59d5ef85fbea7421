package workflows_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/ledger"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/simulation/lender"
	"xce.internal/elastic/workflows"
)

// plain is a world for stories without Temporal and without a controller's
// store: a clock, an agenda of what happens from outside, the rules of the ledger
// and a lender, all in memory and all in one goroutine.
type plain struct {
	now    cluster.Time
	agenda []happening // by time
	inbox  []workflows.Message

	account  ledger.Account
	idle     cluster.IdleClock
	idleTime cluster.Duration
	demand   int64
	events   []ledger.Event

	lender *lender.Lender
	script activities.Provider

	// took answers how long the n-th step takes.
	took func(n int) cluster.Duration
	// again answers which write, counted back from the n-th, is delivered once
	// more before it: 0 for none.
	again  func(n int) int
	steps  int
	writes []func() (cluster.Loan, ledger.Event, error)

	// cut tells whether a story should stop before the n-th chapter.
	cut      func(n int) bool
	chapters int

	told  []workflows.Message // to the provider
	shown workflows.Summary
	wrong []string
}

type happening struct {
	at cluster.Time
	do func()
}

const (
	provider = "pool"
	loanID   = "loan/vcs/pool-1"
	began    = cluster.Time(1_767_571_200_000)
	// mostSteps is how many steps a story may take before it must be running in circles.
	mostSteps = 5_000
)

// errStuck is thrown where a story runs in circles or waits for ever.
type errStuck struct{ why string }

func newPlain() *plain {
	p := &plain{
		now: began, idleTime: 30 * cluster.Minute,
		account: ledger.Account{Resource: "vcs", Owned: 4, MaxBorrowed: 8},
		took:    func(int) cluster.Duration { return 100 }, again: func(int) int { return 0 }, cut: func(int) bool { return false },
	}
	p.lender = &lender.Lender{Now: func() time.Time { return p.now.Std() }, Offers: []lender.Offer{{Resource: "vcs", Capacity: 8}}}
	p.lender.BeforeReturn = p.judgeReturn
	p.script.Script = p.lender
	return p
}

// at puts something on the agenda.
func (p *plain) at(after cluster.Duration, do func()) {
	h := happening{at: p.now.Add(after), do: do}
	i, _ := slices.BinarySearchFunc(p.agenda, h.at+1, func(h happening, at cluster.Time) int { return int(h.at - at) })
	p.agenda = slices.Insert(p.agenda, i, h)
}

// pass lets time pass, and with it what is on the agenda.
func (p *plain) pass(until cluster.Time) {
	for len(p.agenda) > 0 && p.agenda[0].at <= until {
		next := p.agenda[0]
		p.agenda = p.agenda[1:]
		p.now = max(p.now, next.at)
		next.do()
	}
	p.now = max(p.now, until)
}

// step lets the time of one step pass, half of it before its effect.
func (p *plain) step(effect func()) {
	p.steps++
	if p.steps > mostSteps {
		panic(errStuck{fmt.Sprintf("more than %d steps", mostSteps)})
	}
	took := p.took(p.steps)
	p.pass(p.now.Add(took / 2))
	effect()
	p.pass(p.now.Add(took - took/2))
}

func (p *plain) complain(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf("%s: ", p.now)+fmt.Sprintf(format, args...))
}

// use lets jobs use so many units, as far as the total allows new starts.
func (p *plain) use(units int64) {
	p.account.InUse = min(units, max(p.account.InUse, p.account.Total()))
	p.session()
}

// session follows what is idle.
func (p *plain) session() {
	p.idle = p.idle.Follow(p.account.Total()-p.account.InUse, p.now)
}

func (p *plain) row() cluster.Loan {
	row, _ := p.account.Loan(loanID)
	return row
}

// judgeReturn sees every return that the lender carries out: no unit that is not
// fenced may go.
func (p *plain) judgeReturn(in providers.ReturnIn) {
	row, found := p.account.Loan(in.RequestID)
	kept := min((row.Borrowed+row.Recalled)*max(row.UnitWeight, 1), p.lender.LentTo(in.RequestID))
	if found && in.Remaining < kept {
		p.complain("the lender is to keep %d of %s, of which jobs may use %d", in.Remaining, in.RequestID, kept)
	}
}

// Now implements Env.
func (p *plain) Now() cluster.Time { return p.now }

// Receive implements Env.
func (p *plain) Receive(until cluster.Time) (workflows.Message, bool) {
	for len(p.inbox) == 0 {
		if len(p.agenda) == 0 && until == 0 {
			panic(errStuck{"it waits for a message that never comes"})
		}
		if len(p.agenda) == 0 || until != 0 && p.agenda[0].at > until {
			p.pass(until)
			return workflows.Message{}, false
		}
		p.pass(p.agenda[0].at)
	}
	m := p.inbox[0]
	p.inbox = p.inbox[1:]
	return m, true
}

// Full implements Env.
func (p *plain) Full() bool {
	p.chapters++
	cut := p.cut(p.chapters)
	return cut && len(p.inbox) == 0
}

// Show implements Env.
func (p *plain) Show(words func() workflows.Summary) { p.shown = words() }

// write writes as the controller does; make builds the change from the books at
// that moment.
func (p *plain) write(at api.LedgerWrite, make func() ledger.Change, then func(ledger.Event)) (w api.Written) {
	once := func() (cluster.Loan, ledger.Event, error) {
		before := p.account.Unused()
		row, event, err := p.account.Write(at.Loan, at.Step, make(), p.now)
		if event.Kind == "fence" && p.account.Unused() < min(before, 0) {
			p.complain("units in use were fenced: %+v", event)
		}
		if event.Kind != "" {
			p.events = append(p.events, event)
			if event.Kind == "fence" {
				p.idle = p.idle.Take(event.Before.Borrowed - event.After.Borrowed)
			}
			if then != nil {
				then(event)
			}
			p.session()
		}
		return row, event, err
	}
	p.step(func() {
		p.writes = append(p.writes, once)
		if back := p.again(len(p.writes)); back > 0 && back <= len(p.writes) {
			_, _, _ = p.writes[len(p.writes)-back]()
		}
		row, _, err := once()
		w.Loan = row
		var refusal *ledger.Refusal
		if errors.As(err, &refusal) {
			w.Refusal = &api.Refusal{Code: string(refusal.Code), Text: refusal.Text}
		}
	})
	return w
}

func (p *plain) Intend(in api.IntendLoan) api.Written {
	return p.write(in.LedgerWrite, func() ledger.Change {
		return ledger.Intend{LoanRequest: in.Request, Demanded: p.demand}
	}, func(e ledger.Event) { p.demand -= e.After.Units })
}

func (p *plain) Commit(in api.CommitLoan) api.Written {
	return p.write(in.LedgerWrite, func() ledger.Change {
		return ledger.Commit{Granted: in.Granted, HoldUntil: policy.HoldUntil(p.row().Terms, 0, p.now)}
	}, nil)
}

func (p *plain) Refuse(in api.RefuseLoan) api.Written {
	return p.write(in.LedgerWrite, func() ledger.Change { return ledger.Refuse{Why: in.Why} }, nil)
}

func (p *plain) Fence(in api.FenceLoan) api.Written {
	return p.write(in.LedgerWrite, func() ledger.Change {
		row := p.row()
		units, again := policy.Share(p.account.Loans, p.idle, p.idleTime, in.Loan, p.now)
		if row.Recalled > 0 {
			units, again = units+row.Recalled, min(again, p.now.Add(15*cluster.Second))
		}
		if in.Units > 0 {
			return ledger.Fence{Units: in.Units, Exact: true, AskAgain: again, Why: in.Why}
		}
		return ledger.Fence{Units: units, AskAgain: again, Why: "idle"}
	}, nil)
}

func (p *plain) Recall(in api.RecallLoan) api.Written {
	return p.write(in.LedgerWrite, func() ledger.Change { return ledger.Recall{Units: in.Units, Why: in.Why} }, nil)
}

func (p *plain) Confirm(in api.ConfirmLoan) api.Written {
	return p.write(in.LedgerWrite, func() ledger.Change { return ledger.Confirm{Units: in.Units} }, nil)
}

// ask asks the lender through the real activities.
func ask[I, O any](p *plain, do func(I) (O, error), in I) (out O) {
	p.step(func() {
		var err error
		if out, err = do(in); err != nil {
			p.complain("an activity of the provider failed: %v", err)
		}
	})
	return out
}

func (p *plain) Request(in activities.Ask) activities.Grant {
	return ask(p, func(in activities.Ask) (activities.Grant, error) { return p.script.Request(ctx, in) }, in)
}

func (p *plain) Status(in activities.Ask) activities.Grant {
	return ask(p, func(in activities.Ask) (activities.Grant, error) { return p.script.Status(ctx, in) }, in)
}

func (p *plain) Holding(in activities.Ask) activities.Grant {
	return ask(p, func(in activities.Ask) (activities.Grant, error) { return p.script.Holding(ctx, in) }, in)
}

func (p *plain) Return(in activities.GiveBack) activities.Grant {
	return ask(p, func(in activities.GiveBack) (activities.Grant, error) { return p.script.Return(ctx, in) }, in)
}

func (p *plain) TellProvider(_ string, m workflows.Message) { p.told = append(p.told, m) }

// throughJSON is what becomes of state that is carried over to a new run.
func throughJSON[T any](in T) (out T) {
	data, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

var _ workflows.LoanEnv = (*plain)(nil)

package workflows

import (
	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// Loan is all that a loan's story remembers.
type Loan struct {
	Request cluster.LoanRequest `json:"request"`
	// Row is the ledger's row as it was answered last.
	Row cluster.Loan `json:"row"`
	Dealing
	// Step numbers the last write to the ledger.
	Step int64 `json:"step"`
	// Granted is what the lender gave; Rest that it counts a part of a unit more.
	Granted int64 `json:"granted"`
	Rest    bool  `json:"rest"`
	// AskNow tells that a fence should be asked for without waiting.
	AskNow bool `json:"ask_now"`
	// GaveBack is when the lender had units back last.
	GaveBack cluster.Time `json:"gave_back,omitempty"`
}

// ResumeLoan answers the story of a loan of which only the ledger's row is left,
// taken up where it can be without harm. An unsettled request is intended again,
// since the row may be settled by now, and then withdrawn: whether it was made,
// or cancelled already by a call that may yet be carried out, is not known.
func ResumeLoan(row cluster.Loan) Loan {
	l := Loan{Request: row.LoanRequest, Row: row, Step: row.Step, Dealing: Dealing{Chapter: Keeping}}
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
			l.begin(env)
		case Requesting:
			settle(l, env, env.Request(l.ask()))
		case Polling:
			poll(l, env)
		case Settling:
			findOut(l, env)
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

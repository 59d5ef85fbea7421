package replay

import (
	"context"
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/scheduling"
)

// Judges are what decided, and is asked again.
type Judges struct {
	Session func(scheduling.Input) scheduling.Result
	Limits  func(judge.Limits, cluster.Time) judge.Limited
	Loan    func(judge.LoanBooks, judge.LoanWrite, cluster.Time) (judge.LoanAnswer, error)
	Lend    func(judge.LoanBooks, cluster.Lending, cluster.Time) (judge.LendAnswer, error)
	Host    func(judge.HostBooks, api.WriteHost, cluster.Time) (judge.HostAnswer, error)
	Fact    func(cluster.ElasticHost, judge.Fact, cluster.Time) (judge.FactAnswer, error)
}

// orLive answers the judges of this program where none are given.
func (j Judges) orLive() Judges {
	if j.Session == nil {
		j.Session = scheduling.Run
	}
	if j.Limits == nil {
		j.Limits = judge.Limits.Judge
	}
	if j.Loan == nil {
		j.Loan = judge.LoanBooks.Write
	}
	if j.Lend == nil {
		j.Lend = judge.LoanBooks.Lend
	}
	if j.Host == nil {
		j.Host = judge.HostBooks.Write
	}
	if j.Fact == nil {
		j.Fact = judge.Note
	}
	return j
}

// decider replays decisions of controllers.
type decider struct {
	*Report
	judges Judges
	tell   func()
}

func (d *decider) file(ctx context.Context, path string) error {
	head, cut, err := record.Read(path, func(at record.Place, e record.Entry) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if d.From == 0 {
			d.From = e.At
		}
		d.To = max(d.To, e.At)
		d.Missed += e.Missed
		err := d.entry(at.String(), e)
		d.tell()
		return err
	})
	if cut {
		d.CutOff++
	}
	d.wroteIt(head.Release)
	return err
}

func (d *decider) entry(where string, e record.Entry) error {
	switch {
	case e.Session != nil:
		return d.session(where, *e.Session)
	case e.Loan != nil:
		return d.judge(kindLoans, where, "write to "+e.Loan.Write.At().Loan, e.Loan.Answer, func() (any, error) {
			return d.judges.Loan(e.Loan.Books, e.Loan.Write, e.At)
		})
	case e.Lend != nil:
		return d.judge(kindLendings, where, "lending "+e.Lend.Lending.ID, e.Lend.Answer, func() (any, error) {
			return d.judges.Lend(e.Lend.Books, e.Lend.Lending, e.At)
		})
	case e.Host != nil:
		return d.judge(kindHosts, where, "write to "+e.Host.Write.Host, e.Host.Answer, func() (any, error) {
			return d.judges.Host(e.Host.Books, e.Host.Write, e.At)
		})
	case e.Fact != nil:
		return d.judge(kindFacts, where, "what was seen of "+e.Fact.Row.ID, e.Fact.Answer, func() (any, error) {
			return d.judges.Fact(e.Fact.Row, e.Fact.Fact, e.At)
		})
	}
	return nil
}

// sessionDecision is all that a session decided, and what it was given to keep to.
type sessionDecision struct {
	scheduling.Result
	Limits judge.Limited `json:"limits"`
}

func (d *decider) session(where string, e record.SessionEntry) error {
	live := sessionDecision{e.Result, judge.Limited{Templates: e.Input.Templates, Quotas: e.Input.Quotas}}
	return d.judge(kindSessions, where, "session at "+e.Input.Now.String(), live, func() (any, error) {
		now := sessionDecision{d.judges.Session(e.Input), d.judges.Limits(e.Limits, e.Input.Now)}
		now.Limits.Halt = "" // the quotas say it
		return now, nil
	})
}

// judge asks anew for what was decided, and compares the two.
func (d *decider) judge(kind, where, what string, live any, ask func() (any, error)) error {
	now, err := orPanic(ask)
	if err != nil {
		d.count(kind, &Difference{Where: where, What: what, Live: shown(live), Now: err.Error()}, nil)
		return nil
	}
	c, err := compare(live, now)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	d.count(kind, c.differs.at(where, what), c.reworded.at(where, what))
	return nil
}

// orPanic answers a panic as an error.
func orPanic(ask func() (any, error)) (now any, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("the program stops: %v", thrown)
		}
	}()
	return ask()
}

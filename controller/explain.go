package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/store"
)

// Explain says in plain sentences why a job waits, why a loan was taken or a host
// made and when it goes back, or why a resource's total is what it is.
func (s *Service) Explain(ctx context.Context, kind, id string) (api.Explanation, error) {
	e := api.Explanation{Subject: kind + " " + id}
	err := s.store.Read(ctx, func(tx *store.Tx) (err error) {
		w := s.work(tx, "")
		switch kind {
		case "job":
			e.Sentences, err = s.explainJob(w, id)
		case "loan":
			e.Sentences, err = w.explainLoan(id)
		case "resource":
			e.Sentences, err = s.explainResource(w, id)
		case "host":
			e.Sentences, err = s.explainHost(w, id)
		default:
			err = refuse(http.StatusUnprocessableEntity, "a %q cannot be explained; ask for a job, a loan, a resource or a host", kind)
		}
		return err
	})
	if err == nil && kind != "loan" {
		e.Sentences = append(e.Sentences, s.unreadSince()...)
	}
	return e, err
}

func (s *Service) explainJob(w *work, id string) ([]string, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil && w.reading != nil {
		if called, found := w.reading.named(id); found {
			n, err = called, nil
		}
	}
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "job id %q is not a number; `xce-elastic jobs` lists them", id)
	}
	job, found, err := w.Job(n)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refuse(http.StatusNotFound, "there is no job %d; `xce-elastic jobs` lists them%s", n, s.pastJobs())
	}
	again, err := w.requeued(job)
	if err != nil {
		return nil, err
	}
	switch {
	case job.State == cluster.JobRunning && job.Requeues > 0:
		return append([]string{fmt.Sprintf("Job %d runs on %s since %s.", n, job.Host, job.Started.Stamp())}, again...), nil
	case job.State == cluster.JobRunning:
		return append([]string{fmt.Sprintf("Job %d runs on %s since %s, after %s of waiting.", n, job.Host, job.Started.Stamp(), job.Started.Sub(job.Submitted))}, again...), nil
	case job.State.Ended():
		return append([]string{fmt.Sprintf("Job %d ended as %s at %s on %s with exit status %d: %s.", n, job.State, job.Ended.Stamp(), job.Host, job.ExitCode, ended(job.Why))}, again...), nil
	}
	sentences, err := w.explainWaiting(job, s.last.Load())
	return append(append(sentences, s.saysOf(job)...), again...), err
}

// explainWaiting tells why a job waits, what would have to change, what it is
// promised, and what is under way for it.
func (w *work) explainWaiting(job cluster.Job, last *api.Session) ([]string, error) {
	sentences := []string{fmt.Sprintf("Job %d waits since %s: it %s.", job.ID, job.Submitted.Stamp(), ended(job.Why))}
	if job.Change != "" {
		sentences = append(sentences, fmt.Sprintf("For it to start, %s.", job.Change))
	}
	sentences = append(sentences, promised(job.ID, last)...)
	sentences = append(sentences, keptFor(job.ID, last)...)
	loans, err := w.OpenLoans("")
	if err != nil {
		return nil, err
	}
	for _, l := range loans {
		if slices.Contains(l.Jobs, job.ID) && l.State == cluster.LoanRequested {
			sentences = append(sentences, fmt.Sprintf("Loan %s asked %s for %d %s at %s, for this job among others; the answer is awaited.", l.ID, l.Provider, l.Units, l.Resource, l.Intended.Stamp()))
		}
	}
	coming, err := w.comingFor(job.ID)
	if err != nil {
		return nil, err
	}
	sentences = append(sentences, coming...)
	demand, err := w.Demand()
	for _, d := range demand {
		if !slices.Contains(d.Jobs, job.ID) {
			continue
		}
		if d.Resource == "" {
			sentences = append(sentences, fmt.Sprintf("The last session wants %d %s from %s for this job among others; a request follows.", d.Units, d.What(), d.Provider))
		} else {
			sentences = append(sentences, fmt.Sprintf("The last session wants %d %s from %s for this job among others; a loan follows.", d.Units, d.Resource, d.Provider))
		}
	}
	return sentences, err
}

// promised tells of a job's reservation, where the last session gave it one.
func promised(job int64, last *api.Session) []string {
	if last == nil {
		return nil
	}
	for _, r := range last.Reservations {
		if r.Job != job {
			continue
		}
		return []string{fmt.Sprintf("It has a reservation: it starts on %s at %s at the latest, if every running job keeps its time limit.", strings.Join(r.Hosts, ", "), r.At.Stamp())}
	}
	return nil
}

// keptFor tells what is kept for a job that waits for the rest of what it needs.
func keptFor(job int64, last *api.Session) (sentences []string) {
	if last == nil {
		return nil
	}
	for _, h := range last.Halves {
		if !slices.Contains(h.Jobs, job) {
			continue
		}
		what := fmt.Sprintf("%d %s", h.Units, h.Resource)
		if h.Host != "" {
			what = "host " + h.Host
		}
		sentences = append(sentences, fmt.Sprintf("Kept for it already, alone or with others: %s; awaited is %s.", what, strings.Join(h.Awaits, ", ")))
	}
	return sentences
}

func (w *work) explainLoan(id string) ([]string, error) {
	l, found, err := w.Loan(id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refuse(http.StatusNotFound, "there is no loan %q; `xce-elastic loans --all` lists them", id)
	}
	sentences := []string{fmt.Sprintf("Loan %s was intended at %s because %s.", l.ID, l.Intended.Stamp(), l.Reason)}
	switch l.State {
	case cluster.LoanRefused:
		return append(sentences, fmt.Sprintf("It was closed at %s with nothing granted: %s.", l.Closed.Stamp(), l.Why)), nil
	case cluster.LoanRequested:
		return append(sentences, fmt.Sprintf("%s was asked for %d %s and has not settled the request.", l.Provider, l.Units, l.Resource)), nil
	}
	sentences = append(sentences, fmt.Sprintf("%s granted %d of %d %s at %s.", l.Provider, l.Granted(), l.Units, l.Resource, l.Committed.Stamp()))
	left, err := w.whatLeft(l)
	if err != nil {
		return nil, err
	}
	sentences = append(sentences, left...)
	if l.State == cluster.LoanReturned {
		return append(sentences, fmt.Sprintf("All of it was back with %s at %s.", l.Provider, l.Closed.Stamp())), nil
	}
	if l.Fenced > 0 {
		sentences = append(sentences, fmt.Sprintf("%d units are out of the total and on their way back; the return is repeated until %s confirms it.", l.Fenced, l.Provider))
	}
	if l.Recalled > 0 {
		sentences = append(sentences, fmt.Sprintf("%s wants %d units back; they no longer count, and go back as soon as no job uses them.", l.Provider, l.Recalled))
	}
	if l.Borrowed == 0 {
		return sentences, nil
	}
	why, err := w.whyKept(l)
	return append(sentences, why...), err
}

// newest is how many records of the past an explanation tells.
const newest = 5

// whatLeft tells which units of a loan left the total, when and why.
func (w *work) whatLeft(l cluster.Loan) (sentences []string, err error) {
	changes, err := w.History(l.ID, []string{api.KindLoanWrite + "fence", api.KindLoanWrite + "recall"}, newest)
	for _, c := range changes {
		sentences = append(sentences, fmt.Sprintf("At %s %d %s left the total: %s.", c.At.Stamp(), c.TotalBefore-c.TotalAfter, c.Resource, c.Why))
	}
	return sentences, err
}

// whoOwned tells who changed the owned number or the configuration, and why.
func (w *work) whoOwned(name string) (sentences []string, err error) {
	changes, err := w.History(name, []string{api.KindResource}, newest)
	for _, c := range changes {
		if c.TotalBefore != c.TotalAfter {
			sentences = append(sentences, fmt.Sprintf("At %s %s changed the total from %d to %d: %s.", c.At.Stamp(), c.Actor, c.TotalBefore, c.TotalAfter, c.Why))
		}
	}
	return sentences, err
}

// whyKept explains why a loan's borrowed units are not returned yet, and when they will be.
func (w *work) whyKept(l cluster.Loan) ([]string, error) {
	r, err := w.resource(l.Resource)
	if err != nil {
		return nil, err
	}
	account, err := w.account(r)
	if err != nil {
		return nil, err
	}
	var sentences []string
	if w.now < l.HoldUntil {
		sentences = append(sentences, fmt.Sprintf("Its minimum hold of %s lasts until %s: before that nothing goes back.", l.HoldUntil.Sub(l.Committed), l.HoldUntil.Stamp()))
	}
	idle, idleTime := r.Idle.Units(), r.Resource.IdleTime()
	if idle == 0 {
		return append(sentences, fmt.Sprintf("Its %d units stay because none of the %d %s is idle: %d are in use%s, the rest is reserved for waiting jobs. They go back once idle for %s.",
			l.Borrowed, account.Total(), l.Resource, account.InUse, keptBack(r), idleTime)), nil
	}
	sentences = append(sentences, fmt.Sprintf("%d %s are idle, the first since %s; after %s of idleness they go back, the dearest and oldest loan first.",
		idle, l.Resource, r.Idle.Since().Stamp(), idleTime))
	return append(sentences, fmt.Sprintf("This loan asks next at %s.", l.AskAgain.Stamp())), nil
}

func keptBack(r store.Resource) string {
	if r.Resource.KeepBack == 0 {
		return ""
	}
	return fmt.Sprintf(", %d are kept back for others", r.Resource.KeepBack)
}

func (s *Service) explainResource(w *work, name string) ([]string, error) {
	r, err := w.resource(name)
	if err != nil {
		return nil, err
	}
	a, err := w.account(r)
	if err != nil {
		return nil, err
	}
	st := statusOf(r, a)
	sentences := []string{
		fmt.Sprintf("The total of %s is %d = %d owned + %d borrowed - %d lent.", name, st.Total, st.Owned, st.Borrowed, st.Lent),
		fmt.Sprintf("%d are in use by running jobs, %d are kept back, %d are idle%s.", st.InUse, st.KeepBack, st.Idle, since(st.IdleSince)),
	}
	sentences = append(sentences, s.counts(w, name)...)
	changed, err := w.whoOwned(name)
	if err != nil {
		return nil, err
	}
	sentences = append(sentences, changed...)
	if st.Overdraft > 0 {
		sentences = append(sentences, fmt.Sprintf("In use exceeds the total by %d: running jobs run on, new ones wait.", st.Overdraft))
	}
	if st.Elastic == nil {
		return append(sentences, "It is not elastic: nothing is borrowed."), nil
	}
	sentences = append(sentences, fmt.Sprintf("Up to %d may be borrowed; %d are requested, %d are on their way back.", st.Elastic.MaxBorrowed, st.Requested, st.Returning))
	offers, err := w.Offers()
	if err != nil {
		return nil, err
	}
	for _, lender := range st.Elastic.Lenders {
		sentences = append(sentences, explainLender(lender, name, offers, w.now))
	}
	for _, l := range a.Loans {
		sentences = append(sentences, explainRow(l))
	}
	return sentences, nil
}

func since(t cluster.Time) string {
	if t == 0 {
		return ""
	}
	return " since " + t.Stamp()
}

func explainLender(lender, resource string, offers []cluster.Offer, now cluster.Time) string {
	o, found := cluster.FindOffer(offers, lender, resource)
	if !found {
		return fmt.Sprintf("Lender %s has not published an offer.", lender)
	}
	if now < o.BackoffUntil {
		return fmt.Sprintf("Lender %s refused %d times in a row and is left alone until %s.", lender, o.Refusals, o.BackoffUntil.Stamp())
	}
	return fmt.Sprintf("Lender %s could lend %d at %s, for %s per unit and hour, held for at least %s.", lender, o.Headroom, o.Published.Stamp(), o.Price, o.MinimumHold)
}

func explainRow(l cluster.Loan) string {
	if l.State == cluster.LoanRequested {
		return fmt.Sprintf("Loan %s: %d requested since %s.", l.ID, l.Units, l.Intended.Stamp())
	}
	return fmt.Sprintf("Loan %s: %d borrowed, %d recalled, %d going back; asks next at %s.", l.ID, l.Borrowed, l.Recalled, l.Fenced, l.AskAgain.Stamp())
}

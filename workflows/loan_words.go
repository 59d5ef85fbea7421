package workflows

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/plain"
)

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
	env.Show(l.summary)
}

// summary puts into words how the loan stands.
func (l *Loan) summary() Summary {
	r, waitsFor, until := l.Row, l.WaitsFor, l.Until
	title := fmt.Sprintf("%s: %d %s from %s, %s", l.Request.ID, r.Held(), l.Request.Resource, l.Request.Provider, l.state())
	wait := "Waits for " + plain.Markdown(waitsFor)
	if until > 0 {
		wait += ", until " + until.Std().Format("2006-01-02 15:04:05 UTC")
	}
	details := []string{
		fmt.Sprintf("**%s**", plain.Markdown(title)), "",
		wait + ".", "",
		"| requested | borrowed | recalled | fenced | returned |",
		"|---|---|---|---|---|",
		fmt.Sprintf("| %d | %d | %d | %d | %d |", r.Units, r.Borrowed, r.Recalled, r.Fenced, r.Returned), "",
		fmt.Sprintf("Taken because %s.", plain.Markdown(l.Request.Reason)),
	}
	if r.Why != "" && r.Why != l.Request.Reason {
		details = append(details, "", "Last: "+plain.Markdown(r.Why)+".")
	}
	if l.Trouble != "" {
		details = append(details, "", fmt.Sprintf("Trouble after %d tries: %s", l.Tries, plain.Markdown(l.Trouble)))
	}
	return Summary{State: l.state(), Units: r.Held(), Waits: waitsFor, Title: title, Details: details}
}

package activities_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// ledger answers every write alike.
type ledger struct {
	activities.Catalog
	written api.Written
	err     error
}

func (l ledger) Intend(context.Context, api.IntendLoan) (api.Written, error) { return l.written, l.err }

func (l ledger) Commit(context.Context, api.CommitLoan) (api.Written, error) { return l.written, l.err }

func (l ledger) Refuse(context.Context, api.RefuseLoan) (api.Written, error) { return l.written, l.err }

func (l ledger) Fence(context.Context, api.FenceLoan) (api.Written, error) { return l.written, l.err }

func (l ledger) Recall(context.Context, api.RecallLoan) (api.Written, error) { return l.written, l.err }

func (l ledger) Confirm(context.Context, api.ConfirmLoan) (api.Written, error) {
	return l.written, l.err
}

func (l ledger) WriteHost(context.Context, api.WriteHost) (api.HostWritten, error) {
	return api.HostWritten{Refusal: l.written.Refusal}, l.err
}

func (l ledger) PublishCatalog(context.Context, string, api.Catalog) error { return l.err }

func (l ledger) ProviderView(_ context.Context, provider string, ask []string) (api.ProviderView, error) {
	return api.ProviderView{Closed: append([]string{provider}, ask...)}, l.err
}

func (l ledger) ReportStray(context.Context, api.Stray) error { return l.err }

// writes are the six kinds of writes to a loan's row.
func writes(c *activities.Controller) map[string]func() (api.Written, error) {
	ctx := context.Background()
	return map[string]func() (api.Written, error){
		"intend":  func() (api.Written, error) { return c.Intend(ctx, api.IntendLoan{}) },
		"commit":  func() (api.Written, error) { return c.Commit(ctx, api.CommitLoan{}) },
		"refuse":  func() (api.Written, error) { return c.Refuse(ctx, api.RefuseLoan{}) },
		"fence":   func() (api.Written, error) { return c.Fence(ctx, api.FenceLoan{}) },
		"recall":  func() (api.Written, error) { return c.Recall(ctx, api.RecallLoan{}) },
		"confirm": func() (api.Written, error) { return c.Confirm(ctx, api.ConfirmLoan{}) },
	}
}

func TestTheControllersFinalNoIsARefusalAndAllElseAnError(t *testing.T) {
	row := api.Written{Loan: cluster.Loan{Step: 3}}
	no := api.Written{Refusal: &api.Refusal{Code: "in-use", Text: "3 of 5 units are in use"}}
	for _, test := range []struct {
		name   string
		answer ledger
		want   api.Written
		fails  bool
	}{
		{"written", ledger{written: row}, row, false},
		{"refused by the ledger's rules", ledger{written: no}, no, false},
		{"a route that this controller does not have", ledger{err: &api.Error{Status: http.StatusNotFound, Foreign: true}}, api.Written{}, true},
		{"not found", ledger{err: &api.Error{Status: http.StatusNotFound, Detail: "there is no shared resource"}}, refusal("unknown", "there is no shared resource"), false},
		{"conflict", ledger{err: &api.Error{Status: http.StatusConflict, Detail: "it is another's"}}, refusal("unknown", "it is another's"), false},
		{
			"invalid",
			ledger{err: &api.Error{Status: http.StatusUnprocessableEntity, Detail: "refused", Faults: []string{"units: 0"}, Call: "loan-commit"}},
			refusal("invalid", "loan-commit: refused (HTTP 422)\n  units: 0"), false,
		},
		{"not allowed", ledger{err: &api.Error{Status: http.StatusForbidden}}, api.Written{}, true},
		{"broken", ledger{err: &api.Error{Status: http.StatusInternalServerError}}, api.Written{}, true},
		{"overloaded", ledger{err: &api.Error{Status: http.StatusServiceUnavailable}}, api.Written{}, true},
		{"not reached", ledger{err: errors.New("connection refused")}, api.Written{}, true},
		{"out of time", ledger{err: context.DeadlineExceeded}, api.Written{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			for kind, write := range writes(&activities.Controller{Ledger: test.answer}) {
				got, err := write()
				if (err != nil) != test.fails {
					t.Errorf("%s: error %v", kind, err)
				}
				same(t, kind, got, test.want)
			}
		})
	}
}

func refusal(code, text string) api.Written {
	return api.Written{Refusal: &api.Refusal{Code: code, Text: text}}
}

func TestWhatIsNoWriteFailsAsTheControllerDoes(t *testing.T) {
	broken := &api.Error{Status: http.StatusNotFound, Detail: "no such provider"}
	c := &activities.Controller{Catalog: ledger{err: broken}}
	view, viewErr := c.View(t.Context(), activities.View{Provider: "pool", Ask: []string{"a"}})
	for name, err := range map[string]error{
		"publish": c.Publish(t.Context(), "pool", api.Catalog{}), "view": viewErr, "stray": c.Stray(t.Context(), api.Stray{}),
	} {
		if !errors.Is(err, broken) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	same(t, "what the view was asked for", view.Closed, []string{"pool", "a"})
}

// loans starts loans, or fails to.
type loans struct {
	started []cluster.LoanRequest
	err     error
}

func (l *loans) StartLoan(_ context.Context, r cluster.LoanRequest) error {
	l.started = append(l.started, r)
	return l.err
}

func (l *loans) StartHost(context.Context, cluster.HostRequest) error { return l.err }

func TestALoanIsStartedAsItIsAskedFor(t *testing.T) {
	l := &loans{}
	want := cluster.LoanRequest{ID: request, Units: 3}
	if err := (&activities.Starter{Workflows: l}).StartLoan(t.Context(), want); err != nil {
		t.Error(err)
	}
	same(t, "started", l.started, []cluster.LoanRequest{want})
	l.err = errors.New("Temporal does not answer")
	if err := (&activities.Starter{Workflows: l}).StartLoan(t.Context(), want); !errors.Is(err, l.err) {
		t.Errorf("error %v", err)
	}
}

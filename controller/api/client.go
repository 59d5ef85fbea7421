package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling/snapshot"
)

// Client calls a controller.
type Client struct {
	base string
	http *http.Client
	// claim is the lease under which it makes changes; none by default.
	claim Claim
}

// reachWithin is how long a controller may take to answer at all; a call itself
// may take as long as its context says.
const reachWithin = 10 * time.Second

// NewClient answers a client of the controller at an address such as
// "https://127.0.0.1:7400". The TLS configuration carries the caller's certificate.
func NewClient(address string, config *tls.Config) *Client {
	return &Client{
		base: strings.TrimSuffix(address, "/"),
		http: &http.Client{Transport: &http.Transport{
			TLSClientConfig: config, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			DialContext: (&net.Dialer{Timeout: reachWithin}).DialContext, TLSHandshakeTimeout: reachWithin,
			// A controller that is gone without a word is noticed by its silence.
			HTTP2: &http.HTTP2Config{SendPingTimeout: reachWithin, PingTimeout: reachWithin},
		}},
	}
}

// Under answers a client over the same connections that makes changes under a lease.
func (c *Client) Under(claim Claim) *Client {
	under := *c
	under.claim = claim
	return &under
}

// Close closes connections that no call uses; the client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Error is an answer of the controller that is not success.
type Error struct {
	Status int
	Detail string
	Faults []string
	Call   string
	// Foreign tells that the controller's handlers never saw the call: it has no
	// such route, or something between answered.
	Foreign bool
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s (HTTP %d)", e.Call, e.Detail, e.Status)
	if len(e.Faults) > 0 {
		text += "\n  " + strings.Join(e.Faults, "\n  ")
	}
	return text
}

// Permanent tells whether the same call can never succeed: the controller
// understood it and said no. Everything else may be retried, if need be by
// whoever holds the lease now.
func Permanent(err error) bool {
	var e *Error
	return errors.As(err, &e) && !e.Foreign && e.Status >= 400 && e.Status < 500 &&
		e.Status != http.StatusRequestTimeout && e.Status != http.StatusTooManyRequests && !LeaseLost(err)
}

// LeaseLost tells whether the call was refused because the caller does not hold
// the lease that it acts under.
func LeaseLost(err error) bool {
	var e *Error
	return errors.As(err, &e) && !e.Foreign && e.Status == http.StatusPreconditionFailed
}

// call does one request; in and out may be nil.
func (c *Client) call(ctx context.Context, r Route, path string, query url.Values, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request %s: %w", r.ID, err)
		}
		body = bytes.NewReader(data)
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return fmt.Errorf("controller call %s: %w", r.ID, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.claim != (Claim{}) {
		req.Header.Set(LeaseHeader, c.claim.String())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("controller call %s: %w; is the controller running, and is controller.address right?", r.ID, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return readError(resp, r.ID)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("controller call %s: decode answer: %w", r.ID, err)
	}
	return nil
}

// readError reads an RFC 9457 problem document.
func readError(resp *http.Response, call string) error {
	var doc struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Errors []struct {
			Message  string `json:"message"`
			Location string `json:"location"`
		} `json:"errors"`
	}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	e := &Error{Status: resp.StatusCode, Call: call, Detail: strings.TrimSpace(string(data)), Foreign: true}
	if json.Unmarshal(data, &doc) == nil && (doc.Detail != "" || doc.Title != "") {
		e.Detail, e.Foreign = doc.Detail, false
		if e.Detail == "" {
			e.Detail = doc.Title
		}
		for _, f := range doc.Errors {
			if f.Location != "" {
				f.Message = f.Location + ": " + f.Message
			}
			e.Faults = append(e.Faults, f.Message)
		}
	}
	return e
}

// Status reads the cluster as it is now.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.call(ctx, GetStatus, GetStatus.Path, nil, nil, &s)
}

// Changes answers at most 500 changes after a revision. Where there are none
// it waits for the first one, for as long as `wait`.
func (c *Client) Changes(ctx context.Context, after int64, wait time.Duration) (Changes, error) {
	var ch Changes
	query := url.Values{"after": {strconv.FormatInt(after, 10)}, "wait_ms": {strconv.FormatInt(wait.Milliseconds(), 10)}}
	return ch, c.call(ctx, GetChanges, GetChanges.Path, query, nil, &ch)
}

// Jobs lists jobs: all, or those in one state.
func (c *Client) Jobs(ctx context.Context, state cluster.JobState) ([]cluster.Job, error) {
	var jobs []cluster.Job
	return jobs, c.call(ctx, GetJobs, GetJobs.Path, url.Values{"state": {string(state)}}, nil, &jobs)
}

// Loans lists loans: the open ones, or all.
func (c *Client) Loans(ctx context.Context, all bool) ([]cluster.Loan, error) {
	var loans []cluster.Loan
	return loans, c.call(ctx, GetLoans, GetLoans.Path, url.Values{"all": {strconv.FormatBool(all)}}, nil, &loans)
}

// Explain asks why: kind is job, loan or resource.
func (c *Client) Explain(ctx context.Context, kind, id string) (Explanation, error) {
	var e Explanation
	return e, c.call(ctx, GetExplanation, GetExplanation.Path, url.Values{"kind": {kind}, "id": {id}}, nil, &e)
}

// Session answers what the last session decided and found.
func (c *Client) Session(ctx context.Context) (Session, error) {
	var s Session
	return s, c.call(ctx, GetSession, GetSession.Path, nil, nil, &s)
}

// Snapshot answers the state that sessions judge; with hashes for the names of
// users and commands where hashed says so, which is for everyone who may read.
func (c *Client) Snapshot(ctx context.Context, hashed bool) (snapshot.Snapshot, error) {
	route := GetSnapshot
	if hashed {
		route = GetHashedSnapshot
	}
	var s snapshot.Snapshot
	return s, c.call(ctx, route, route.Path, nil, nil, &s)
}

// Submit submits a job.
func (c *Client) Submit(ctx context.Context, spec cluster.JobSpec) (cluster.Job, error) {
	var job cluster.Job
	return job, c.call(ctx, SubmitJob, SubmitJob.Path, nil, spec, &job)
}

// SetOwned changes how many units of a resource the cluster owns.
func (c *Client) SetOwned(ctx context.Context, resource string, owned Owned) error {
	return c.call(ctx, SetOwned, fill(SetOwned.Path, "{name}", resource), nil, owned, nil)
}

// Lend opens, resizes or closes a lending.
func (c *Client) Lend(ctx context.Context, id string, lend LendUnits) error {
	return c.call(ctx, PutLend, fill(PutLend.Path, "{id}", id), nil, lend, nil)
}

// PublishCatalog publishes what a provider offers.
func (c *Client) PublishCatalog(ctx context.Context, provider string, catalog Catalog) error {
	return c.call(ctx, PutCatalog, fill(PutCatalog.Path, "{provider}", provider), nil, catalog, nil)
}

// ProviderView reads what borrowing from a provider is decided upon; it also
// answers which of the loans `ask` are closed.
func (c *Client) ProviderView(ctx context.Context, provider string, ask []string) (ProviderView, error) {
	var v ProviderView
	return v, c.call(ctx, GetProviderView, fill(GetProviderView.Path, "{provider}", provider), url.Values{"ask": ask}, nil, &v)
}

// ReportStray records a stray.
func (c *Client) ReportStray(ctx context.Context, s Stray) error {
	return c.call(ctx, ReportStray, ReportStray.Path, nil, s, nil)
}

// Intend opens a loan's row.
func (c *Client) Intend(ctx context.Context, in IntendLoan) (Written, error) {
	return c.write(ctx, LoanIntend, in)
}

// Commit takes a grant into the total.
func (c *Client) Commit(ctx context.Context, in CommitLoan) (Written, error) {
	return c.write(ctx, LoanCommit, in)
}

// Refuse closes a loan that was not granted.
func (c *Client) Refuse(ctx context.Context, in RefuseLoan) (Written, error) {
	return c.write(ctx, LoanRefuse, in)
}

// Fence takes unused units out of the total.
func (c *Client) Fence(ctx context.Context, in FenceLoan) (Written, error) {
	return c.write(ctx, LoanFence, in)
}

// Recall takes recalled units out of the total.
func (c *Client) Recall(ctx context.Context, in RecallLoan) (Written, error) {
	return c.write(ctx, LoanRecall, in)
}

// Confirm records that fenced units are back.
func (c *Client) Confirm(ctx context.Context, in ConfirmLoan) (Written, error) {
	return c.write(ctx, LoanConfirm, in)
}

func (c *Client) write(ctx context.Context, r Route, in any) (Written, error) {
	var w Written
	return w, c.call(ctx, r, r.Path, nil, in, &w)
}

// WriteHost writes one change to a host's row.
func (c *Client) WriteHost(ctx context.Context, in WriteHost) (HostWritten, error) {
	var w HostWritten
	return w, c.call(ctx, HostWrite, HostWrite.Path, nil, in, &w)
}

// JoinToken makes the one-time token of an expected host.
func (c *Client) JoinToken(ctx context.Context, host string) (JoinToken, error) {
	var t JoinToken
	return t, c.call(ctx, PostJoinToken, PostJoinToken.Path, url.Values{"host": {host}}, nil, &t)
}

// Machines answers what a provider's inventory is compared with.
func (c *Client) Machines(ctx context.Context, provider string) ([]HostMachine, error) {
	var m []HostMachine
	return m, c.call(ctx, GetMachines, fill(GetMachines.Path, "{provider}", provider), nil, nil, &m)
}

// ElasticHosts lists elastic hosts: those that stand for something, or all.
func (c *Client) ElasticHosts(ctx context.Context, all bool) ([]cluster.ElasticHost, error) {
	var h []cluster.ElasticHost
	return h, c.call(ctx, GetHosts, GetHosts.Path, url.Values{"all": {strconv.FormatBool(all)}}, nil, &h)
}

// Catalog answers what providers can give now.
func (c *Client) Catalog(ctx context.Context) (CatalogView, error) {
	var v CatalogView
	return v, c.call(ctx, GetCatalog, GetCatalog.Path, nil, nil, &v)
}

// RetryProvider forgets a provider's refusals.
func (c *Client) RetryProvider(ctx context.Context, provider string) error {
	return c.call(ctx, PostRetry, fill(PostRetry.Path, "{provider}", provider), nil, nil, nil)
}

// TendLeases says that a provisioner is there, and answers what it holds.
func (c *Client) TendLeases(ctx context.Context, in TendLeases) (Tended, error) {
	var t Tended
	return t, c.call(ctx, PostTend, PostTend.Path, nil, in, &t)
}

// Leases answers who is there and who holds what.
func (c *Client) Leases(ctx context.Context) (Leases, error) {
	var l Leases
	return l, c.call(ctx, GetLeases, GetLeases.Path, nil, nil, &l)
}

// MoveLease has a provider's lease go to a provisioner.
func (c *Client) MoveLease(ctx context.Context, provider string, in MoveLease) error {
	return c.call(ctx, PostMove, fill(PostMove.Path, "{provider}", provider), nil, in, nil)
}

// JoinWithToken joins as an elastic host, for which no certificate is needed yet.
func (c *Client) JoinWithToken(ctx context.Context, in JoinRequest) (Joined, error) {
	var j Joined
	return j, c.call(ctx, PostJoin, PostJoin.Path, nil, in, &j)
}

// Join joins the cluster as a host.
func (c *Client) Join(ctx context.Context, host string, join JoinHost) error {
	return c.call(ctx, PutHost, fill(PutHost.Path, "{host}", host), nil, join, nil)
}

// Assignments answers the jobs that a host should run as soon as they differ
// from those at revision `after`, or after `wait`.
func (c *Client) Assignments(ctx context.Context, host string, after int64, wait time.Duration) (Assignments, error) {
	var a Assignments
	query := url.Values{"after": {strconv.FormatInt(after, 10)}, "wait_ms": {strconv.FormatInt(wait.Milliseconds(), 10)}}
	return a, c.call(ctx, GetAssignments, fill(GetAssignments.Path, "{host}", host), query, nil, &a)
}

// EndJob reports a job's end.
func (c *Client) EndJob(ctx context.Context, host string, job int64, end JobEnd) error {
	path := fill(fill(PostJobEnd.Path, "{host}", host), "{id}", strconv.FormatInt(job, 10))
	return c.call(ctx, PostJobEnd, path, nil, end, nil)
}

func fill(path, variable, value string) string {
	return strings.Replace(path, variable, url.PathEscape(value), 1)
}

package controller_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"xce.internal/elastic/controller/pki"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

// post sends a raw body as a peer of the role and answers status and text.
func post(t *testing.T, w *world, role api.Role, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+w.Address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := httpClient(w.TLS(role, "x")).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestBadInputIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	const job = `"command":["true"],"cpus":1,"memory_mb":0,"priority":0`
	for name, test := range map[string]struct {
		role               api.Role
		method, path, body string
		status             int
		place              string
	}{
		"an unknown field":           {api.Submitter, "POST", "/v1/jobs", `{` + job + `,"cpu":2}`, 422, "body.cpu"},
		"an unknown field, deep":     {api.Provisioner, "PUT", "/v1/catalog/pool", `{"observations":[],"offers":[{"hedroom":1}]}`, 422, "body.offers[0].hedroom"},
		"a wrong type":               {api.Submitter, "POST", "/v1/jobs", `{"command":["true"],"cpus":"1","memory_mb":0,"priority":0}`, 422, "body.cpus"},
		"a fraction":                 {api.Submitter, "POST", "/v1/jobs", `{"command":["true"],"cpus":1.5,"memory_mb":0,"priority":0}`, 422, "body.cpus"},
		"a wrong type in a map":      {api.Submitter, "POST", "/v1/jobs", `{` + job + `,"tokens":{"vcs":"two"}}`, 422, "body.tokens.vcs"},
		"a missing field":            {api.Submitter, "POST", "/v1/jobs", `{"command":["true"],"memory_mb":0,"priority":0}`, 422, "cpus"},
		"a duration without a unit":  {api.Submitter, "POST", "/v1/jobs", `{` + job + `,"time_limit":"90"}`, 422, "duration \\\"90\\\""},
		"a name that steers":         {api.Submitter, "POST", "/v1/jobs", `{` + job + `,"name":"a\u001b[31m"}`, 422, `"location":"name"`},
		"a name without an end":      {api.Submitter, "POST", "/v1/jobs", `{` + job + `,"name":"` + strings.Repeat("x", 257) + `"}`, 422, `"location":"name"`},
		"a NUL in a command":         {api.Submitter, "POST", "/v1/jobs", `{"command":["a\u0000"],"cpus":1,"memory_mb":0,"priority":0}`, 400, "body.command[0]"},
		"a key twice":                {api.Submitter, "POST", "/v1/jobs", `{` + job + `,"CPUS":2}`, 400, "body.CPUS"},
		"no JSON":                    {api.Submitter, "POST", "/v1/jobs", `command: true`, 400, "body"},
		"JSON cut short":             {api.Submitter, "POST", "/v1/jobs", `{` + job, 400, "body"},
		"no body":                    {api.Submitter, "POST", "/v1/jobs", ``, 400, "body"},
		"an unknown query parameter": {api.Viewer, "GET", "/v1/jobs?stat=done", ``, 422, "query.stat"},
		"an unknown state":           {api.Viewer, "GET", "/v1/jobs?state=dead", ``, 422, "query.state"},
		"a revision that is no one":  {api.Viewer, "GET", "/v1/changes?after=x", ``, 422, "query.after"},
		"a negative wait":            {api.Viewer, "GET", "/v1/changes?wait_ms=-1", ``, 422, "query.wait_ms"},
		"step 0":                     {api.Provisioner, "POST", "/v1/ledger/confirm", `{"loan":"l","resource":"vcs","step":0,"units":1}`, 422, "body.step"},
		"negative units":             {api.Provisioner, "POST", "/v1/ledger/confirm", `{"loan":"l","resource":"vcs","step":1,"units":-1}`, 422, "body.units"},
		"a number beyond 64 bits":    {api.Provisioner, "POST", "/v1/ledger/confirm", `{"loan":"l","resource":"vcs","step":1,"units":99999999999999999999}`, 422, "body"},
		"owned without a reason":     {api.Admin, "PUT", "/v1/resources/vcs/owned", `{"owned":3,"why":""}`, 422, "body.why"},
		"negative owned":             {api.Admin, "PUT", "/v1/resources/vcs/owned", `{"owned":-3,"why":"x"}`, 422, "body.owned"},
		"a lending to no one":        {api.Admin, "PUT", "/v1/lendings/l", `{"resource":"vcs","units":1,"to":""}`, 422, "body.to"},
		"a kind of no explanation":   {api.Viewer, "GET", "/v1/explain?kind=cat&id=1", ``, 422, "a job, a loan, a resource or a host"},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.Status().Revision
			status, text := post(t, w, test.role, test.method, test.path, test.body)
			if status != test.status || !strings.Contains(text, test.place) {
				t.Errorf("the answer is %d %s\nwant %d naming %s", status, text, test.status, test.place)
			}
			if after := w.Status().Revision; after != before {
				t.Errorf("the refused call wrote revision %d", after)
			}
		})
	}
}

func TestABodyOfMoreThanAMegabyteIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	large := `{"command":["` + strings.Repeat("x", 1<<20) + `"],"cpus":1,"memory_mb":0,"priority":0}`
	if status, text := post(t, w, api.Submitter, "POST", "/v1/jobs", large); status != http.StatusRequestEntityTooLarge {
		t.Errorf("the answer is %d %s, want 413", status, text)
	}
}

func TestAnInternalErrorIsNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	w.CloseStore()
	_, err := w.admin.Status(t.Context())
	w.wantStatus(http.StatusInternalServerError, err)
	if err != nil && strings.Contains(err.Error(), "sql") {
		t.Errorf("the error tells of the inside: %v", err)
	}
}

func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	empty := w.Config
	empty.Resources = nil
	bare := &world{Controller: controllertest.Open(t, ":memory:", empty), t: t}
	bare.Serve()
	w.join(4)
	for _, w := range []*world{w, bare} {
		for _, call := range []struct {
			role api.Role
			path string
		}{
			{api.Viewer, "/v1/status"},
			{api.Viewer, "/v1/jobs"},
			{api.Viewer, "/v1/loans"},
			{api.Viewer, "/v1/loans?all=true"},
			{api.Viewer, "/v1/changes?after=9999"},
			{api.Viewer, "/v1/session"},
			{api.Admin, "/v1/snapshot"},
			{api.Viewer, "/v1/snapshot/hashed"},
			{api.Provisioner, "/v1/providers/pool/view"},
			{api.HostRole, "/v1/hosts/x/jobs"},
		} {
			if call.role == api.HostRole {
				w.must(w.Service.Join(t.Context(), pki.Peer{Role: "host", Name: "x"}, api.JoinHost{CPUs: 1}))
			}
			status, text := post(t, w, call.role, http.MethodGet, call.path, "")
			if status != http.StatusOK || strings.Contains(text, "null") {
				t.Errorf("%s answers %d %s", call.path, status, text)
			}
		}
	}
}

func TestAnAnswerCarriesAllThatTheTypeHas(t *testing.T) {
	t.Parallel()
	w, _ := borrowed(t)
	_, text := post(t, w, api.Viewer, http.MethodGet, "/v1/loans", "")
	var raw []cluster.Loan
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	stored, err := w.Service.Loans(t.Context(), false)
	w.must(err)
	if len(raw) != 1 || raw[0].Borrowed != 4 || raw[0].HoldUntil != stored[0].HoldUntil || raw[0].Jobs[0] != 1 {
		t.Errorf("read %+v, the books have %+v", raw, stored)
	}
}

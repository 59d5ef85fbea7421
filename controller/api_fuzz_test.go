package controller_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the "sqlite" driver

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/limit"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/postgrestest"
)

// besieged is a controller with something of everything in it, of which each
// call's traces in the state file are looked for.
type besieged struct {
	*controllertest.Controller
	tb      *lasting
	handler http.Handler
	log     bytes.Buffer
	state   *sql.DB
	tables  []string
	before  map[string]string
}

// lasting is the life of a controller that several tests call: it ends when it is told to.
type lasting struct {
	testing.TB
	ends []func()
}

// Helper and the others are what a controller under test asks of a test.
func (l *lasting) Helper()                   {}
func (l *lasting) Cleanup(end func())        { l.ends = append(l.ends, end) }
func (l *lasting) Fatal(args ...any)         { panic(fmt.Sprintln(args...)) }
func (l *lasting) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (l *lasting) Error(args ...any)         { panic(fmt.Sprintln(args...)) }

func (l *lasting) end() {
	for _, end := range slices.Backward(l.ends) {
		end()
	}
}

var fuzzRoles = []api.Role{api.Admin, api.Provisioner, api.HostRole, api.Submitter, api.Viewer, "", "controller"}

func besiege() *besieged {
	tb := &lasting{}
	folder, err := os.MkdirTemp("", "xce-api-")
	if err != nil {
		panic(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(folder) })
	config := controllertest.Vcs(2, 10)
	config.Hosts = cluster.DefaultHostRules()
	if config.Authority, err = pki.OpenAuthority(folder); err != nil {
		panic(err)
	}
	b := &besieged{tb: tb, Controller: controllertest.Open(tb, filepath.Join(folder, "state.db"), config)}
	wide := limit.Defaults()
	wide.Rate, wide.Burst, wide.StrangerRate, wide.StrangerBurst = 1e6, 1e6, 1e6, 1e6
	b.handler = controller.NewServer(b.Service, slog.New(slog.NewTextHandler(&b.log, nil)), controller.WithLimits(wide)).Handler()
	if b.state, err = sql.Open("sqlite", "file:"+b.State+"?mode=ro"); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = b.state.Close() })
	if status, text := b.call(tb, api.Provisioner, http.MethodPost, api.PostTend.Path, tending); status >= 300 {
		tb.Fatalf("no lease: %d %s", status, text)
	}
	for _, c := range peace {
		if status, text := b.call(tb, c.role, c.method, c.target, c.body); status >= 300 {
			tb.Fatalf("%s %s answers %d %s", c.method, c.target, status, text)
		}
		if c.thenSession {
			b.Session()
		}
	}
	b.before = b.content(tb)
	return b
}

// tending is how the provisioner of these tests gets its lease.
const tending = `{"instance":"x-1","owns":["pool"]}`

// peace is what happened before: hosts, templates, offers, jobs, a loan in use, a host that comes.
var peace = []struct {
	role                 api.Role
	method, target, body string
	thenSession          bool
}{
	{role: api.HostRole, method: "PUT", target: "/v1/hosts/x", body: `{"cpus":4,"memory_mb":1000}`},
	{role: api.Provisioner, method: "PUT", target: "/v1/catalog/pool", body: text(api.Catalog{
		Observations: []cluster.Observation{{Provider: "pool", Resource: "vcs", InUse: 1}},
		Offers:       []cluster.Offer{{Provider: "pool", Resource: "vcs", Headroom: 9, Price: 1, MinimumHold: cluster.Minute, PartialReturn: true, MaxOpen: 4}},
		Templates:    []cluster.Template{{Provider: "pool", Name: "small", Capacity: cluster.Capacity{CPUs: 8, MemoryMB: 1000}, Headroom: 3, Price: 1, MinimumHold: cluster.Minute, PollInterval: cluster.Second}},
	})},
	{role: api.Submitter, method: "POST", target: "/v1/jobs", body: `{"command":["true"],"cpus":1,"memory_mb":0,"priority":0,"tokens":{"vcs":6}}`, thenSession: true},
	{role: api.Provisioner, method: "POST", target: "/v1/ledger/intend", body: text(api.IntendLoan{LedgerWrite: at("loan/vcs/pool-1", 1), Request: request(4)})},
	{role: api.Provisioner, method: "POST", target: "/v1/ledger/commit", body: `{"loan":"loan/vcs/pool-1","resource":"vcs","step":2,"granted":4}`, thenSession: true},
	{role: api.Submitter, method: "POST", target: "/v1/jobs", body: `{"name":"big","command":["true"],"cpus":6,"memory_mb":0,"priority":0}`, thenSession: true},
	{role: api.Provisioner, method: "POST", target: "/v1/ledger/host", body: `{"host":"host/small-1","step":1,"intend":{"id":"host/small-1","provider":"pool","template":"small","jobs":[2],"reason":"job 2 waits","poll_interval":"1s"}}`},
	{role: api.Admin, method: "PUT", target: "/v1/lendings/l1", body: `{"resource":"vcs","units":0,"to":"west"}`},
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // they are types of ours
	}
	return string(data)
}

// content answers a hash of each table of the state.
func (b *besieged) content(tb testing.TB) map[string]string {
	tb.Helper()
	if b.tables == nil {
		b.tables = column(tb, b.state, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
	}
	content := map[string]string{}
	for _, table := range b.tables {
		rows, err := b.state.Query("SELECT * FROM \"" + table + "\"") // names of our own tables
		if err != nil {
			tb.Fatal(err)
		}
		content[table] = hashRows(tb, rows)
	}
	return content
}

func column(tb testing.TB, db *sql.DB, query string) (names []string) {
	tb.Helper()
	rows, err := db.Query(query)
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			tb.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func hashRows(tb testing.TB, rows *sql.Rows) string {
	tb.Helper()
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		tb.Fatal(err)
	}
	sum := sha256.New()
	for rows.Next() {
		cells, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			places[i] = &cells[i]
		}
		if err := rows.Scan(places...); err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(sum, "%q\n", cells)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// call has the handler answer a call of a role; of no certificate, where it is empty.
func (b *besieged) call(tb testing.TB, role api.Role, method, target, body string, headers ...string) (int, string) {
	tb.Helper()
	at, err := url.ParseRequestURI(target)
	if err != nil {
		return http.StatusBadRequest, "no request line can say that"
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := (&http.Request{
		Method: method, URL: at, Host: "controller", RequestURI: target, Proto: "HTTP/2.0", ProtoMajor: 2, RemoteAddr: "192.0.2.1:7",
		Header: http.Header{"Content-Type": {"application/json"}, api.LeaseHeader: {"pool 1"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), TLS: &tls.ConnectionState{},
	}).WithContext(ctx)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if role != "" {
		certificate := &x509.Certificate{NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{{Scheme: "xce", Host: string(role), Path: "/x"}}}
		r.TLS.PeerCertificates, r.TLS.VerifiedChains = []*x509.Certificate{certificate}, [][]*x509.Certificate{{certificate}}
		if _, err := pki.PeerOf(r.TLS); err != nil {
			tb.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// FuzzAPI: whatever is sent to a route, by whom and with what, the controller
// answers with no fault of its own, and what it refuses has changed nothing.
func FuzzAPI(f *testing.F) {
	if postgrestest.OnPostgres() {
		f.Skip("it looks into the state file")
	}
	seed(f)
	b := besiege()
	f.Cleanup(func() { b.tb.end() })
	f.Fuzz(func(t *testing.T, route, role uint8, method, path, query, body, header, value string) {
		call := b.aim(route, method, path, query)
		status, text := b.call(t, fuzzRoles[int(role)%len(fuzzRoles)], call.method, call.target, body, headerOf(header, value)...)
		told := fmt.Sprintf("%s %s by %q with %q\nanswers %d %s\n%s", call.method, call.target, fuzzRoles[int(role)%len(fuzzRoles)], body, status, text, b.log.String())
		if status >= 500 && status != http.StatusServiceUnavailable {
			t.Fatal(told)
		}
		if strings.Contains(b.log.String(), "panic") {
			t.Fatal(told)
		}
		if strings.Contains(text, "\x00") || status < 300 && text != "" && !json.Valid([]byte(text)) {
			t.Fatal("the answer is no JSON: " + told)
		}
		after := b.content(t)
		changed := different(b.before, after)
		if len(changed) == 0 {
			return
		}
		// That a host was not let in is written down, and nothing else.
		audited := slices.Equal(changed, []string{"changes"}) && (strings.HasPrefix(call.target, "/v1/join") || strings.HasPrefix(call.target, "/v1/hosts/"))
		if status >= 300 && !audited {
			t.Fatalf("it was refused, and yet %q changed: %s", changed, told)
		}
		b.soundAfter(t, told)
		b.tb.end()
		b = besiege()
	})
}

// soundAfter looks whether the controller still works after a change.
func (b *besieged) soundAfter(t *testing.T, told string) {
	t.Helper()
	if err := b.Service.Session(context.Background()); err != nil {
		t.Fatalf("no session after that (%v): %s", err, told)
	}
	for _, path := range []string{"/v1/status", "/v1/jobs", "/v1/loans?all=true", "/v1/elastic-hosts?all=true", "/v1/catalog", "/v1/session", "/v1/snapshot/hashed", "/v1/changes", "/v1/explain?kind=resource&id=vcs"} {
		if status, text := b.call(t, api.Admin, "GET", path, ""); status >= 300 {
			t.Fatalf("%s answers %d %s after that: %s", path, status, text, told)
		}
	}
}

func different(before, after map[string]string) (changed []string) {
	for table, hash := range after {
		if before[table] != hash {
			changed = append(changed, table)
		}
	}
	slices.Sort(changed)
	return changed
}

type aimed struct{ method, target string }

// aim makes a request line: of a route, with something in place of what varies
// in its path, or of anything at all.
func (b *besieged) aim(route uint8, method, path, query string) aimed {
	a := aimed{method, path}
	if n := int(route) % (len(api.Routes) + 1); n < len(api.Routes) {
		r := api.Routes[n]
		a.target = r.Path
		for _, part := range strings.Split(r.Path, "/") {
			switch {
			case part == "{id}" && path == "x": // of a job on host x
				a.target = strings.Replace(a.target, part, "1", 1)
			case strings.HasPrefix(part, "{"):
				a.target = strings.Replace(a.target, part, strings.ReplaceAll(url.PathEscape(path), "/", "%2F"), 1)
			}
		}
		if method == "" {
			a.method = r.Method
		}
	}
	if strings.ContainsFunc(a.method, func(r rune) bool { return r <= ' ' || r > '~' }) || a.method == "" {
		a.method = "GET"
	}
	if query != "" {
		a.target += "?" + query
	}
	return a
}

// headerOf answers a header that a connection could bring.
func headerOf(name, value string) []string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) || strings.ContainsAny(value, "\r\n\x00") {
		return nil
	}
	return []string{name, value}
}

// seed adds for each route a call that it takes, and then some that are evil.
func seed(f *testing.F) {
	good := map[string]struct {
		role              uint8
		path, query, body string
	}{
		api.GetChanges.ID: {0, "", "after=1&wait_ms=0", ""}, api.GetJobs.ID: {0, "", "state=waiting", ""}, api.GetLoans.ID: {0, "", "all=true", ""},
		api.GetExplanation.ID: {0, "", "kind=job&id=2", ""}, api.GetHosts.ID: {0, "", "all=true", ""},
		api.SubmitJob.ID:       {3, "", "", peace[5].body},
		api.SetOwned.ID:        {0, "vcs", "", `{"owned":3,"why":"bought"}`},
		api.PutLend.ID:         {0, "l1", "", `{"resource":"vcs","units":0,"to":"west"}`},
		api.PutCatalog.ID:      {1, "pool", "", peace[1].body},
		api.GetProviderView.ID: {1, "pool", "ask=loan/vcs/pool-1", ""},
		api.ReportStray.ID:     {1, "", "", `{"provider":"pool","request":"r","resource":"vcs","units":1,"what":"seen"}`},
		api.LoanIntend.ID:      {1, "", "", peace[3].body}, api.LoanCommit.ID: {1, "", "", peace[4].body},
		api.LoanRefuse.ID:     {1, "", "", `{"loan":"loan/vcs/pool-1","resource":"vcs","step":3,"why":"no","retry_after":"1m"}`},
		api.LoanFence.ID:      {1, "", "", `{"loan":"loan/vcs/pool-1","resource":"vcs","step":3,"units":1,"why":"idle"}`},
		api.LoanRecall.ID:     {1, "", "", `{"loan":"loan/vcs/pool-1","resource":"vcs","step":3,"units":1,"why":"wanted"}`},
		api.LoanConfirm.ID:    {1, "", "", `{"loan":"loan/vcs/pool-1","resource":"vcs","step":3,"units":1}`},
		api.HostWrite.ID:      {1, "", "", `{"host":"host/small-1","step":2,"expect":{"instance":"i-1","name":"small-1"}}`},
		api.PostJoinToken.ID:  {1, "", "host=host/small-1", ""},
		api.GetMachines.ID:    {1, "pool", "", ""},
		api.PostRetry.ID:      {0, "pool", "", ""},
		api.PostTend.ID:       {1, "", "", tending},
		api.GetLeases.ID:      {4, "", "", ""},
		api.PostMove.ID:       {0, "pool", "", `{"to":"x"}`},
		api.PostJoin.ID:       {5, "", "", `{"host":"host/small-1","token":"x","request":"-----BEGIN CERTIFICATE REQUEST-----","cpus":1,"memory_mb":1}`},
		api.PutHost.ID:        {2, "x", "", `{"cpus":4,"memory_mb":1000,"countables":{"gpus":1},"features":["a"],"attributes":{"k":"v"}}`},
		api.GetAssignments.ID: {2, "x", "after=0&wait_ms=0", ""},
		api.PostJobEnd.ID:     {2, "x", "", `{"state":"done","exit_code":0,"why":"ended"}`},
	}
	for i, r := range api.Routes {
		c := good[r.ID]
		f.Add(uint8(i), c.role, "", c.path, c.query, c.body, "", "")
	}
	for _, body := range []string{
		`{"command":["a\u0000b"],"cpus":1,"memory_mb":0,"priority":0}`, "{\"command\":[\"\xff\"],\"cpus\":1,\"memory_mb\":0,\"priority\":0}", strings.Repeat("[", 100),
		`{"command":["true"],"cpus":1e999,"memory_mb":0,"priority":0}`, `{"command":["true"],"cpus":1,"CPUS":2,"memory_mb":0,"priority":0}`,
		`{"command":["true"],"cpus":9223372036854775807,"memory_mb":9223372036854775807,"priority":-9223372036854775808}`, `{"command":["\ud800"],"cpus":1,"memory_mb":0,"priority":0}`,
		`{"command":["true"],"cpus":1,"memory_mb":0,"priority":0,"after":[1],"not_before":"9999-12-31T23:59:59Z","time_limit":"2562047h"}`, `null`, `[]`, `{}`,
	} {
		f.Add(uint8(8), uint8(3), "", "", "", body, "", "")
	}
	f.Add(uint8(200), uint8(0), "TRACE", "/v1/../v1//jobs/%00", "a=%ff&b=%00", "", "Content-Type", "text/plain")
}

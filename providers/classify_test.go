package providers

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClassifyRequest(t *testing.T) {
	in := RequestIn{RequestID: "loan/vcs/pool-1", Resource: "vcs", Units: 3}
	tests := []struct {
		name    string
		stdout  string
		exit    int
		err     error
		status  Status
		granted int64
		reason  Reason
		message string // a part of it
	}{
		{name: "granted", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3}`, status: StatusOK, granted: 3},
		{name: "unknown field", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3,"colour":2.5}`, status: StatusOK, granted: 3},
		{name: "blanks around", stdout: "\n {\"request_id\":\"loan/vcs/pool-1\",\"status\":\"ok\",\"granted\":3}\n\n", status: StatusOK, granted: 3},
		{name: "more than asked", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":9}`, status: StatusOK, granted: 9},
		{name: "partial with all", stdout: `{"request_id":"loan/vcs/pool-1","status":"partial","granted":3}`, status: StatusOK, granted: 3},
		{name: "ok with less", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":2}`, status: StatusPartial, granted: 2},
		{name: "partial", stdout: `{"request_id":"loan/vcs/pool-1","status":"partial","granted":2}`, status: StatusPartial, granted: 2},
		{name: "pending", stdout: `{"request_id":"loan/vcs/pool-1","status":"pending","retry_after_s":5}`, status: StatusPending},
		{name: "refused", stdout: `{"request_id":"loan/vcs/pool-1","status":"refused","reason":"quota","message":"enough"}`, status: StatusRefused, reason: ReasonQuota, message: "enough"},
		{name: "refused without id", stdout: `{"status":"refused","reason":"invalid"}`, status: StatusRefused, reason: ReasonInvalid},
		{name: "the script cannot tell", stdout: `{"status":"unknown","message":"server down"}`, status: StatusUnknown, message: "server down"},
		{name: "exit status counts nothing", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3}`, exit: 1, status: StatusOK, granted: 3, message: "exit status 1"},
		{name: "ended by a signal", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3}`, exit: -1, status: StatusOK, granted: 3, message: "signal"},

		{name: "nothing", stdout: "", status: StatusUnknown, message: "nothing"},
		{name: "nothing, exit 0", stdout: " \n", status: StatusUnknown, message: "nothing"},
		{name: "noise", stdout: "Segmentation fault", exit: 139, status: StatusUnknown, message: "exit status 139"},
		{name: "noise before", stdout: "hello\n" + `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3}`, status: StatusUnknown, message: "logs go to stderr"},
		{name: "noise after", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3} bye`, status: StatusUnknown, message: "text after"},
		{name: "two documents", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3}{"request_id":"loan/vcs/pool-1","status":"ok","granted":3}`, status: StatusUnknown, message: "more than one"},
		{name: "half", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","gran`, status: StatusUnknown, message: "not one JSON object"},
		{name: "array", stdout: `[{"status":"ok"}]`, status: StatusUnknown, message: "not an object"},
		{name: "null", stdout: `null`, status: StatusUnknown, message: "not an object"},
		{name: "python", stdout: `{'status': 'ok'}`, status: StatusUnknown},
		{name: "other id", stdout: `{"request_id":"loan/vcs/pool-2","status":"ok","granted":3}`, status: StatusUnknown, message: "another request"},
		{name: "other id refused", stdout: `{"request_id":"loan/vcs/pool-2","status":"refused","reason":"quota"}`, status: StatusUnknown, message: "another request"},
		{name: "no id", stdout: `{"status":"ok","granted":3}`, status: StatusUnknown, message: "request_id"},
		{name: "negative", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":-3}`, status: StatusUnknown, message: "at /granted"},
		{name: "ok with 0", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":0}`, status: StatusUnknown, message: "at /granted"},
		{name: "ok with none", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok"}`, status: StatusUnknown, message: "granted"},
		{name: "partial with 0", stdout: `{"request_id":"loan/vcs/pool-1","status":"partial","granted":0}`, status: StatusUnknown},
		{name: "pending with units", stdout: `{"request_id":"loan/vcs/pool-1","status":"pending","granted":2}`, status: StatusUnknown},
		{name: "refused with units", stdout: `{"request_id":"loan/vcs/pool-1","status":"refused","reason":"quota","granted":2}`, status: StatusUnknown},
		{name: "refused without reason", stdout: `{"request_id":"loan/vcs/pool-1","status":"refused"}`, status: StatusUnknown, message: "reason"},
		{name: "made-up reason", stdout: `{"status":"refused","reason":"monday"}`, status: StatusUnknown, message: "at /reason"},
		{name: "made-up status", stdout: `{"request_id":"loan/vcs/pool-1","status":"complete","granted":3}`, status: StatusUnknown, message: "at /status"},
		{name: "units as text", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":"3"}`, status: StatusUnknown, message: "at /granted"},
		{name: "fraction", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":2.5}`, status: StatusUnknown, message: "at /granted"},
		{name: "2.0 is no plain integer", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":2.0}`, status: StatusUnknown},
		{name: "exponent", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":1e0}`, status: StatusUnknown},
		{name: "nearly one", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":0.99999999999999999999}`, status: StatusUnknown},
		{name: "NaN", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":NaN}`, status: StatusUnknown},
		{name: "huge", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":99999999999999999999}`, status: StatusUnknown},
		{name: "huge exponent", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3,"x":1e999999999}`, status: StatusUnknown},
		{name: "a key twice", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3,"granted":1}`, status: StatusUnknown, message: "twice"},
		{name: "a key twice, other case", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3,"Granted":1}`, status: StatusUnknown, message: "twice"},
		{name: "a key twice, deep", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3,"x":[{"y":1,"y":2}]}`, status: StatusUnknown, message: "/x/*/y"},
		{name: "deep", stdout: strings.Repeat("[", 1<<20), status: StatusUnknown},
		{name: "time limit, whatever it printed", stdout: `{"request_id":"loan/vcs/pool-1","status":"ok","granted":3}`, exit: -1, err: errTimeLimit, status: StatusUnknown, message: "time limit"},
		{name: "never asked", exit: -1, err: &MalformedError{errors.New("at /units")}, status: StatusRefused, reason: ReasonInvalid, message: "not asked"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, outcome := ClassifyRequest(in, Execution{Stdout: []byte(test.stdout), Exit: test.exit, Err: test.err})
			if outcome.Status != test.status || out.Granted != test.granted || outcome.Reason != test.reason {
				t.Errorf("got %s, granted %d, reason %q (%s); want %s, %d, %q",
					outcome.Status, out.Granted, outcome.Reason, outcome.Message, test.status, test.granted, test.reason)
			}
			if !strings.Contains(outcome.Message, test.message) {
				t.Errorf("message %q lacks %q", outcome.Message, test.message)
			}
			if out.Status != outcome.Status || out.RequestID != in.RequestID {
				t.Errorf("answer %+v does not say the same as outcome %+v", out, outcome)
			}
			checkText(t, outcome, test.stdout)
		})
	}
}

func TestClassifyRequestForHosts(t *testing.T) {
	in := RequestIn{RequestID: "host/small-1", Template: "small", Units: 2}
	const head = `{"request_id":"host/small-1","status":"ok","granted":`
	tests := []struct {
		name, stdout string
		status       Status
		message      string
	}{
		{"both", head + `2,"instances":[{"id":"i-1","name":"node-1"},{"id":"i-2"}]}`, StatusOK, ""},
		{"one of two", head + `1,"instances":[{"id":"i-1"}]}`, StatusPartial, ""},
		{"pending", `{"request_id":"host/small-1","status":"pending"}`, StatusPending, ""},
		{"no instances", head + `2}`, StatusUnknown, "at /instances"},
		{"an instance is missing", head + `2,"instances":[{"id":"i-1"}]}`, StatusUnknown, "1 of 2 hosts"},
		{"an instance too many", head + `1,"instances":[{"id":"i-1"},{"id":"i-2"}]}`, StatusUnknown, "at /instances"},
		{"an instance twice", head + `2,"instances":[{"id":"i-1"},{"id":"i-1"}]}`, StatusUnknown, "at /instances/1"},
		{"an instance without id", head + `1,"instances":[{"name":"node-1"}]}`, StatusUnknown, "id"},
		{"an empty id", head + `1,"instances":[{"id":""}]}`, StatusUnknown, "at /instances/0/id"},
		{"a long id", head + `1,"instances":[{"id":"` + strings.Repeat("x", 201) + `"}]}`, StatusUnknown, "at /instances/0/id"},
		{"an address", head + `1,"instances":[{"id":"i-1","address":"fe80::1"}]}`, StatusPartial, ""},
		{"a name for an address", head + `1,"instances":[{"id":"i-1","address":"a-1.example.com"}]}`, StatusPartial, ""},
		{"no address", head + `1,"instances":[{"id":"i-1","address":"a b"}]}`, StatusUnknown, "at /instances/0/address"},
		{"an address that is options", head + `1,"instances":[{"id":"i-1","address":"-x=1"}]}`, StatusUnknown, "at /instances/0/address"},
		{"a control character", head + `1,"instances":[{"id":"a\nb"}]}`, StatusUnknown, "at /instances/0/id"},
		{"pending with an instance", `{"request_id":"host/small-1","status":"pending","instances":[{"id":"i-1"}]}`, StatusUnknown, "at /instances"},
		{"refused with an instance", `{"status":"refused","reason":"quota","instances":[{"id":"i-1"}]}`, StatusUnknown, "at /instances"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, outcome := ClassifyRequest(in, Execution{Stdout: []byte(test.stdout)})
			if outcome.Status != test.status || !strings.Contains(outcome.Message, test.message) {
				t.Errorf("got %+v, want %s with %q", outcome, test.status, test.message)
			}
			if int64(len(out.Instances)) != out.Granted {
				t.Errorf("%d granted with %d instances", out.Granted, len(out.Instances))
			}
		})
	}
	tokens := RequestIn{RequestID: "host/small-1", Resource: "vcs", Units: 1}
	if _, outcome := ClassifyRequest(tokens, Execution{Stdout: []byte(head + `1,"instances":[{"id":"i-1"}]}`)}); outcome.Status != StatusUnknown {
		t.Errorf("instances for tokens: got %+v", outcome)
	}
}

// checkText: the exact output is kept whenever somebody will want to see it.
func checkText(t *testing.T, outcome Outcome, stdout string) {
	t.Helper()
	want := ""
	if outcome.Status == StatusRefused || outcome.Status == StatusUnknown {
		want = stdout[:min(len(stdout), textLimit)]
	}
	if outcome.Text != want {
		t.Errorf("text %.80q, want %.80q", outcome.Text, want)
	}
}

func TestClassifyReturn(t *testing.T) {
	in := ReturnIn{RequestID: "a", Units: 2, Remaining: 1}
	tests := []struct {
		name, stdout string
		status       Status
		remaining    int64
	}{
		{"done", `{"request_id":"a","status":"ok","remaining":1}`, StatusOK, 1},
		{"less is lent already", `{"request_id":"a","status":"ok","remaining":0}`, StatusOK, 0},
		{"ok but more is lent", `{"request_id":"a","status":"ok","remaining":3}`, StatusPartial, 3},
		{"partial but all is done", `{"request_id":"a","status":"partial","remaining":1}`, StatusOK, 1},
		{"pending", `{"request_id":"a","status":"pending","remaining":3}`, StatusPending, 3},
		{"refused", `{"request_id":"a","status":"refused","reason":"denied"}`, StatusRefused, 0},
		{"remaining missing", `{"request_id":"a","status":"ok"}`, StatusUnknown, 0},
		{"pending, remaining missing", `{"request_id":"a","status":"pending"}`, StatusUnknown, 0},
		{"negative", `{"request_id":"a","status":"ok","remaining":-1}`, StatusUnknown, 0},
		{"other id", `{"request_id":"b","status":"ok","remaining":1}`, StatusUnknown, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, outcome := ClassifyReturn(in, Execution{Stdout: []byte(test.stdout)})
			if outcome.Status != test.status || out.Status != test.status || out.Remaining != test.remaining {
				t.Errorf("got %+v and %+v, want %s with %d", out, outcome, test.status, test.remaining)
			}
		})
	}
}

func TestClassifyStatus(t *testing.T) {
	in := StatusIn{RequestIDs: []string{"a", "b"}}
	tests := []struct {
		name, stdout string
		status       Status
	}{
		{"both", `{"requests":[{"request_id":"b","status":"pending"},{"request_id":"a","status":"granted","granted":2}]}`, StatusOK},
		{"refused and unknown", `{"requests":[{"request_id":"a","status":"refused","reason":"quota"},{"request_id":"b","status":"unknown"}]}`, StatusOK},
		{"one missing", `{"requests":[{"request_id":"a","status":"pending"}]}`, StatusUnknown},
		{"one twice", `{"requests":[{"request_id":"a","status":"pending"},{"request_id":"a","status":"pending"}]}`, StatusUnknown},
		{"one never asked", `{"requests":[{"request_id":"a","status":"pending"},{"request_id":"c","status":"pending"}]}`, StatusUnknown},
		{"one too many", `{"requests":[{"request_id":"a","status":"pending"},{"request_id":"b","status":"pending"},{"request_id":"c","status":"pending"}]}`, StatusUnknown},
		{"granted without units", `{"requests":[{"request_id":"a","status":"granted"},{"request_id":"b","status":"pending"}]}`, StatusUnknown},
		{"unknown with units", `{"requests":[{"request_id":"a","status":"unknown","granted":1},{"request_id":"b","status":"pending"}]}`, StatusUnknown},
		{"refused without reason", `{"requests":[{"request_id":"a","status":"refused"},{"request_id":"b","status":"pending"}]}`, StatusUnknown},
		{"hosts", `{"requests":[{"request_id":"a","status":"granted","granted":1,"instances":[{"id":"i-1"}]},{"request_id":"b","status":"pending"}]}`, StatusOK},
		{"an instance is missing", `{"requests":[{"request_id":"a","status":"granted","granted":2,"instances":[{"id":"i-1"}]},{"request_id":"b","status":"pending"}]}`, StatusUnknown},
		{"pending with an instance", `{"requests":[{"request_id":"a","status":"pending","instances":[{"id":"i-1"}]},{"request_id":"b","status":"pending"}]}`, StatusUnknown},
		{"an instance in two requests", `{"requests":[{"request_id":"a","status":"granted","granted":1,"instances":[{"id":"i-1"}]},{"request_id":"b","status":"granted","granted":1,"instances":[{"id":"i-1"}]}]}`, StatusUnknown},
		{"not for status", `{"status":"refused","reason":"denied"}`, StatusRefused},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, outcome := ClassifyStatus(in, Execution{Stdout: []byte(test.stdout)})
			if outcome.Status != test.status {
				t.Errorf("got %+v, want %s", outcome, test.status)
			}
			if (outcome.Status == StatusOK) != (len(out.Requests) == 2) {
				t.Errorf("%s with %d requests", outcome.Status, len(out.Requests))
			}
		})
	}
}

func TestClassifyTheRest(t *testing.T) {
	const head = `{"contract":1,"kinds":["tokens"],"idempotent":true,"partial_return":true,"concurrent":false,"poll_interval_s":5`
	const offer = `{"resource":"vcs","headroom":2,"price":1,"minimum_hold_s":0,"billing_step_s":0}`
	describe := func(run Execution) Outcome { _, outcome := ClassifyDescribe(run); return outcome }
	list := func(run Execution) Outcome { _, outcome := ClassifyList(run); return outcome }
	observe := func(run Execution) Outcome { _, outcome := ClassifyObserve(run); return outcome }
	tests := []struct {
		name     string
		classify func(Execution) Outcome
		stdout   string
		status   Status
	}{
		{"describe", describe, head + `,"offers":[` + offer + `]}`, StatusOK},
		{"describe, no headroom at all", describe, head + `,"offers":[]}`, StatusOK},
		{"describe, tokens without offers", describe, head + `}`, StatusUnknown},
		{"describe, the same offer twice", describe, head + `,"offers":[` + offer + `,` + offer + `]}`, StatusUnknown},
		{"describe, other contract", describe, strings.Replace(head, `:1`, `:2`, 1) + `,"offers":[]}`, StatusUnknown},
		{"describe, poll interval 0", describe, strings.Replace(head, `_s":5`, `_s":0`, 1) + `,"offers":[]}`, StatusUnknown},
		{"describe, price missing", describe, head + `,"offers":[{"resource":"vcs","headroom":2,"minimum_hold_s":0,"billing_step_s":0}]}`, StatusUnknown},
		{"describe, recalls", describe, head + `,"offers":[],"recalls":[{"request_id":"a","units":1}]}`, StatusOK},
		{"describe, recall of nothing", describe, head + `,"offers":[],"recalls":[{"request_id":"a","units":0}]}`, StatusUnknown},
		{"describe, recall twice", describe, head + `,"offers":[],"recalls":[{"request_id":"a","units":1},{"request_id":"a","units":1}]}`, StatusUnknown},
		{"list", list, `{"grants":[{"request_id":"odd id","resource":"vcs","units":1,"since":"2026-03-01T08:00:00+01:00"}]}`, StatusOK},
		{"list, empty", list, `{"grants":[]}`, StatusOK},
		{"list, nothing", list, `{}`, StatusUnknown},
		{"list, null", list, `{"grants":null}`, StatusUnknown},
		{"list, a grant twice", list, `{"grants":[{"request_id":"a","resource":"vcs","units":1},{"request_id":"a","resource":"vcs","units":1}]}`, StatusUnknown},
		{"list, 0 units", list, `{"grants":[{"request_id":"a","resource":"vcs","units":0}]}`, StatusUnknown},
		{"list, no such time", list, `{"grants":[{"request_id":"a","resource":"vcs","units":1,"since":"yesterday"}]}`, StatusUnknown},
		{"list, hosts", list, `{"grants":[{"request_id":"a","template":"small","units":1,"instances":[{"id":"i-1"}]},{"request_id":"b","resource":"vcs","units":1}]}`, StatusOK},
		{"list, hosts without instances", list, `{"grants":[{"request_id":"a","template":"small","units":1}]}`, StatusUnknown},
		{"list, an instance is missing", list, `{"grants":[{"request_id":"a","template":"small","units":2,"instances":[{"id":"i-1"}]}]}`, StatusUnknown},
		{"list, an instance in two grants", list, `{"grants":[{"request_id":"a","template":"small","units":1,"instances":[{"id":"i-1"}]},{"request_id":"b","template":"small","units":1,"instances":[{"id":"i-1"}]}]}`, StatusUnknown},
		{"list, neither resource nor template", list, `{"grants":[{"request_id":"a","units":1}]}`, StatusUnknown},
		{"list, resource and template", list, `{"grants":[{"request_id":"a","resource":"vcs","template":"small","units":1,"instances":[{"id":"i-1"}]}]}`, StatusUnknown},
		{"list, tokens with instances", list, `{"grants":[{"request_id":"a","resource":"vcs","units":1,"instances":[{"id":"i-1"}]}]}`, StatusUnknown},
		{"list refused", list, `{"status":"refused","reason":"denied","retry_after_s":9}`, StatusRefused},
		{"observe", observe, `{"observations":[{"resource":"vcs","in_use":0,"at":"2026-03-01T08:00:00Z"}]}`, StatusOK},
		{"observe without time", observe, `{"observations":[{"resource":"vcs","in_use":0}]}`, StatusUnknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			outcome := test.classify(Execution{Stdout: []byte(test.stdout)})
			if outcome.Status != test.status {
				t.Errorf("got %+v, want %s", outcome, test.status)
			}
		})
	}
}

func TestClassifyDescribeOfHosts(t *testing.T) {
	const small = `"template":"small","cpus":2,"memory_mb":4096,"headroom":3,"price":250000,"minimum_hold_s":60,"billing_step_s":0`
	const quota = `{"name":"all","counts":"cpus","limit":8,"used":2}`
	templates := func(list string) string { return `,"templates":[` + list + `]` }
	tests := []struct{ name, rest, message string }{
		{"one", templates(`{` + small + `}`), ""},
		{"all that can be said", `,"quotas":[` + quota + `],"recalls":[{"request_id":"a","units":1,"grace_s":30}]` + templates(`{`+small+`,"countables":{"gpus":2},"features":["avx512"],"attributes":{"site":"z1"},"quotas":["all"],"latency_s":90,"preference":1}`), ""},
		{"none at all", templates(``), ""},
		{"no templates", ``, "templates"},
		{"the same twice", templates(`{` + small + `},{` + small + `}`), "at /templates/1"},
		{"a name with a blank", templates(`{` + strings.Replace(small, `"small"`, `"sm all"`, 1) + `}`), "at /templates/0/template"},
		{"a long name", templates(`{` + strings.Replace(small, `small`, strings.Repeat("x", 64), 1) + `}`), "at /templates/0/template"},
		{"no cpus", templates(`{` + strings.Replace(small, `"cpus":2,`, ``, 1) + `}`), "cpus"},
		{"negative headroom", templates(`{` + strings.Replace(small, `"headroom":3`, `"headroom":-3`, 1) + `}`), "at /templates/0/headroom"},
		{"a quota that is not there", templates(`{` + small + `,"quotas":["all"]}`), `at /templates/0/quotas/0: there is no quota "all"`},
		{"a quota twice", `,"quotas":[` + quota + `,` + quota + `]` + templates(``), "at /quotas/1"},
		{"a quota without limit", `,"quotas":[{"name":"all","counts":"cpus","used":2}]` + templates(``), "limit"},
		{"a countable called cpus", templates(`{` + small + `,"countables":{"cpus":2}}`), "at /templates/0/countables.cpus"},
		{"a countable called hosts", templates(`{` + small + `,"countables":{"hosts":2}}`), "at /templates/0/countables.hosts"},
		{"a negative countable", templates(`{` + small + `,"countables":{"gpus":-2}}`), "at /templates/0/countables/gpus"},
		{"a feature with a blank", templates(`{` + small + `,"features":["avx 512"]}`), "at /templates/0/features[0]"},
		{"negative grace", `,"recalls":[{"request_id":"a","units":1,"grace_s":-1}]` + templates(``), "at /recalls/0/grace_s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := `{"contract":1,"kinds":["hosts"],"idempotent":true,"partial_return":true,"concurrent":false,"poll_interval_s":5` + test.rest + `}`
			_, outcome := ClassifyDescribe(Execution{Stdout: []byte(text)})
			if (outcome.Status == StatusOK) != (test.message == "") || !strings.Contains(outcome.Message, test.message) {
				t.Errorf("got %+v, want %q", outcome, test.message)
			}
		})
	}
}

func TestClipKeepsWholeCharacters(t *testing.T) {
	for shift := range 4 {
		clipped := clip(strings.Repeat("x", shift) + strings.Repeat("\U0001F600", textLimit))
		if !utf8.ValidString(clipped) || len(clipped) > textLimit || len(clipped) < textLimit-utf8.UTFMax {
			t.Errorf("shift %d: %d bytes, valid %t", shift, len(clipped), utf8.ValidString(clipped))
		}
	}
}

// FuzzClassify: whatever a script prints, no verb panics, and nothing but a clear answer counts as one.
func FuzzClassify(f *testing.F) {
	seeds := []string{
		``, `{}`, `null`, `{"status":"refused","reason":"quota"}`, `{"status":"unknown"}`, `{"grants":[]}`,
		`{"request_id":"a","status":"ok","granted":2}`, `{"request_id":"a","status":"ok","granted":2.0}`,
		`{"request_id":"a","status":"partial","granted":1}`, `{"request_id":"a","status":"pending"}`,
		`{"request_id":"a","status":"ok","remaining":1}`, `{"requests":[{"request_id":"a","status":"granted","granted":1}]}`,
		`{"grants":[{"request_id":"a","resource":"vcs","units":1}]}`, `{"request_id":"a","status":"ok","granted":1}{}`,
		`{"grants":[{"request_id":"a","template":"small","units":1,"instances":[{"id":"i-1"}]}]}`,
		`{"request_id":"a","status":"ok","granted":2,"instances":[{"id":"i-1"},{"id":"i-2","name":"node-2"}]}`,
		`{"contract":1,"kinds":["hosts"],"idempotent":true,"partial_return":true,"concurrent":false,"poll_interval_s":5,"templates":[{"template":"small","cpus":2,"memory_mb":4096,"headroom":3,"price":1,"minimum_hold_s":0,"billing_step_s":0}]}`,
		`{"contract":1,"kinds":["tokens"],"idempotent":true,"partial_return":true,"concurrent":false,"poll_interval_s":5,"offers":[]}`,
		`{"observations":[{"resource":"vcs","in_use":0,"at":"2026-03-01T08:00:00Z"}]}`, "\xff\xfe{", `{"a":1e999}`,
		`{"request_id":"a","status":"ok","granted":1,"\u0047ranted":2}`,
	}
	for _, seed := range seeds {
		f.Add([]byte(seed), 0)
	}
	f.Fuzz(func(t *testing.T, stdout []byte, exit int) {
		run := Execution{Stdout: stdout, Exit: exit}
		request, outcome := ClassifyRequest(RequestIn{RequestID: "a", Resource: "vcs", Units: 2}, run)
		checkOutcome(t, outcome, stdout)
		gives := outcome.Status == StatusOK || outcome.Status == StatusPartial
		if gives != (request.Granted > 0) || (outcome.Status == StatusOK) != (request.Granted >= 2) {
			t.Fatalf("%+v with %+v", outcome, request)
		}
		hosts, outcome := ClassifyRequest(RequestIn{RequestID: "a", Template: "small", Units: 2}, run)
		checkOutcome(t, outcome, stdout)
		if int64(len(hosts.Instances)) != hosts.Granted {
			t.Fatalf("%+v with %+v", outcome, hosts)
		}
		back, outcome := ClassifyReturn(ReturnIn{RequestID: "a", Units: 1, Remaining: 1}, run)
		checkOutcome(t, outcome, stdout)
		if back.Remaining < 0 || outcome.Status == StatusOK && back.Remaining > 1 {
			t.Fatalf("%+v with %+v", outcome, back)
		}
		_, outcome = ClassifyStatus(StatusIn{RequestIDs: []string{"a"}}, run)
		checkOutcome(t, outcome, stdout)
		_, outcome = ClassifyDescribe(run)
		checkOutcome(t, outcome, stdout)
		_, outcome = ClassifyList(run)
		checkOutcome(t, outcome, stdout)
		_, outcome = ClassifyObserve(run)
		checkOutcome(t, outcome, stdout)
	})
}

func checkOutcome(t *testing.T, outcome Outcome, stdout []byte) {
	t.Helper()
	switch outcome.Status {
	case StatusOK, StatusPartial, StatusPending:
		if !json.Valid(stdout) {
			t.Fatalf("%s for what is no JSON document", outcome.Status)
		}
	case StatusRefused, StatusUnknown:
		if (outcome.Text == "") != (len(stdout) == 0) {
			t.Fatalf("%s without the text", outcome.Status)
		}
	default:
		t.Fatalf("status %q", outcome.Status)
	}
	if (outcome.Reason != "") != (outcome.Status == StatusRefused) && outcome.Status != StatusUnknown {
		t.Fatalf("%s with reason %q", outcome.Status, outcome.Reason)
	}
	if _, err := json.Marshal(outcome); err != nil {
		t.Fatal(err)
	}
}

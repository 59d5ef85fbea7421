package codec_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"xce.internal/elastic/starter/codec"
)

const (
	ui    = "http://127.0.0.1:8233"
	token = "s3cret"
)

// asked is a request to the endpoint.
type asked struct {
	method, path, origin, token string
	payload                     *common.Payload
}

func (a asked) of(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	body, err := protojson.Marshal(&common.Payloads{Payloads: []*common.Payload{a.payload}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(a.method, a.path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Namespace", namespace)
	if a.origin != "" {
		r.Header.Set("Origin", a.origin)
	}
	if a.token != "" {
		r.Header.Set("Authorization", a.token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOnlyWhoMayHasPayloadsDecrypted(t *testing.T) {
	t.Parallel()
	c := newKeyring(t).open()
	h := codec.Handler(c, codec.Access{Origins: []string{ui}, Token: token})
	p := seal(t, c, "hunter2")
	for name, test := range map[string]struct {
		asked
		status int
	}{
		"the UI":                      {asked{"POST", "/decode", ui, "Bearer " + token, p}, 200},
		"a program":                   {asked{"POST", "/decode", "", "Bearer " + token, p}, 200},
		"the UI asking first":         {asked{"OPTIONS", "/decode", ui, "", p}, 204},
		"without the token":           {asked{"POST", "/decode", ui, "", p}, 401},
		"with another token":          {asked{"POST", "/decode", ui, "Bearer x", p}, 401},
		"a page of another origin":    {asked{"POST", "/decode", "http://evil.example", "Bearer " + token, p}, 403},
		"the same host, other port":   {asked{"POST", "/decode", "http://127.0.0.1:8234", "Bearer " + token, p}, 403},
		"a page without an origin":    {asked{"POST", "/decode", "null", "Bearer " + token, p}, 403},
		"another origin asking first": {asked{"OPTIONS", "/decode", "http://evil.example", "", p}, 403},
		"to encrypt":                  {asked{"POST", "/encode", ui, "Bearer " + token, p}, 404},
		"below another path":          {asked{"POST", "/x/decode", ui, "Bearer " + token, p}, 404},
		"to read":                     {asked{"GET", "/decode", ui, "Bearer " + token, p}, 405},
	} {
		w := test.of(t, h)
		if w.Code != test.status {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, test.status)
		}
		if got, want := w.Header().Get("Access-Control-Allow-Origin"), test.origin; test.status != 403 && test.status != 404 && got != want || (test.status == 403 && got != "") {
			t.Errorf("%s: pages of %q may read the answer", name, got)
		}
		if (test.status == 200) != strings.Contains(w.Body.String(), "Imh1bnRlcjIi") { // "hunter2" in base64
			t.Errorf("%s: the answer is %s", name, w.Body)
		}
	}
}

func TestWithoutATokenWhoeverReachesTheEndpointMay(t *testing.T) {
	t.Parallel()
	c := newKeyring(t).open()
	h := codec.Handler(c, codec.Access{Origins: []string{ui}})
	p := seal(t, c, "hunter2")
	if w := (asked{"POST", "/decode", ui, "", p}).of(t, h); w.Code != http.StatusOK {
		t.Errorf("the UI gets %d %s", w.Code, w.Body)
	}
	if w := (asked{"POST", "/decode", "http://evil.example", "", p}).of(t, h); w.Code != http.StatusForbidden {
		t.Errorf("another page gets %d %s", w.Code, w.Body)
	}
	p.Data[20] ^= 1
	if w := (asked{"POST", "/decode", ui, "", p}).of(t, h); w.Code != http.StatusBadRequest {
		t.Errorf("a payload that was changed gets %d %s", w.Code, w.Body)
	}
}

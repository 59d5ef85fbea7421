package controller_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/controller"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
)

// path fills a route's variables; a host is always the caller itself.
func path(route api.Route, caller string) string {
	return strings.NewReplacer("{host}", caller, "{id}", "1", "{name}", "vcs", "{provider}", "pool").Replace(route.Path)
}

// send sends a request with an empty JSON object and answers the status.
func send(t *testing.T, client *http.Client, method, url string) int {
	t.Helper()
	var body *strings.Reader
	if body = strings.NewReader("{}"); method == http.MethodGet {
		body = strings.NewReader("")
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestAHostSpeaksForItselfOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	client := httpClient(w.TLS(api.HostRole, "h2"))
	for _, route := range api.Routes {
		if !strings.Contains(route.Path, "{host}") {
			continue
		}
		for _, other := range []string{"h1", "H2", "h2%2Fx"} {
			if got := send(t, client, route.Method, "https://"+w.Address+path(route, other)); got != http.StatusForbidden {
				t.Errorf("host h2 gets %d from %s of host %s, want 403", got, route.ID, other)
			}
		}
		if got := send(t, client, route.Method, "https://"+w.Address+path(route, "h2")); got == http.StatusForbidden {
			t.Errorf("host h2 may not call %s of itself", route.ID)
		}
	}
}

func TestTheRegisteredOperationsAreExactlyThoseOfTheTable(t *testing.T) {
	document, err := controller.NewServer(nil, slog.New(slog.DiscardHandler)).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var openAPI struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Summary     string `json:"summary"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(document, &openAPI); err != nil {
		t.Fatal(err)
	}
	var registered, table []string
	for path, operations := range openAPI.Paths {
		for method, o := range operations {
			registered = append(registered, strings.Join([]string{o.OperationID, strings.ToUpper(method), path, o.Summary}, " "))
		}
	}
	for _, r := range api.Routes {
		table = append(table, strings.Join([]string{r.ID, r.Method, r.Path, r.Summary}, " "))
	}
	slices.Sort(registered)
	slices.Sort(table)
	if !slices.Equal(registered, table) {
		t.Errorf("registered are\n%s\nthe table has\n%s", strings.Join(registered, "\n"), strings.Join(table, "\n"))
	}
}

func TestWhatIsNotInTheTableIsThereForNoOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Vcs(2, 10))
	client := httpClient(w.TLS(api.Admin, "root"))
	for _, path := range []string{"/", "/openapi.json", "/openapi.yaml", "/openapi-3.0.json", "/docs", "/schemas/Status.json", "/metrics", "/debug/pprof/", "/v1"} {
		if got := send(t, client, http.MethodGet, "https://"+w.Address+path); got != http.StatusNotFound {
			t.Errorf("%s answers %d, want 404", path, got)
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const taskQueue = "greetings"

var (
	xceKind  = temporal.NewSearchAttributeKeyKeyword("XceKind")
	xceUnits = temporal.NewSearchAttributeKeyInt64("XceUnits")
	xceState = temporal.NewSearchAttributeKeyKeyword("XceState")
)

// greet is the trivial workflow. It also sets a search attribute, which only
// works where the history service knows it.
func greet(ctx workflow.Context, name string) (string, error) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, xceState.ValueSet("greeting")); err != nil {
		return "", err
	}
	return "hello " + name, workflow.Sleep(ctx, 10*time.Millisecond)
}

func TestKilledServerKeepsItsWorkflows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state with space?.db")
	args := []string{"--port", "0", "--db", file, "--search-attribute", "XceKind=Keyword", "--search-attribute", "XceUnits=Int"}

	first := launch(t, args...)
	before := first.dial(t)
	for n := range 20 {
		startGreeting(t, before, fmt.Sprintf("greeting-%d", n))
	}
	first.kill(t) // every start was acknowledged

	// The second start finds the file as the kill left it, on other ports,
	// and is asked for one attribute more.
	second := launch(t, append(args, "--search-attribute", "XceState=Keyword")...)
	c := second.dial(t)
	work(t, c)
	for n := range 20 {
		wantGreeted(t, c, fmt.Sprintf("greeting-%d", n))
	}
	wantListed(t, c, "XceKind = 'greeting' AND XceUnits = 3 AND XceState = 'greeting'", 20)
	second.terminate(t, syscall.SIGTERM)

	// A third start with the same flags finds nothing to do.
	third := launch(t, append(args, "--search-attribute", "XceState=Keyword")...)
	wantListed(t, third.dial(t), "XceKind = 'greeting'", 20)
	third.terminate(t, syscall.SIGINT)

	message := refused(t, exitFailed, "--port", "0", "--db", file, "--search-attribute", "XceUnits=Keyword")
	wantAll(t, message, "XceUnits", "Int", "Keyword", "--search-attribute")
}

// startGreeting starts the workflow; no worker is needed for that.
func startGreeting(t *testing.T, c client.Client, id string) {
	t.Helper()
	_, err := c.ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{
		ID:                    id,
		TaskQueue:             taskQueue,
		TypedSearchAttributes: temporal.NewSearchAttributes(xceKind.ValueSet("greeting"), xceUnits.ValueSet(3)),
	}, "greet", "world")
	if err != nil {
		t.Fatal(err)
	}
}

func wantGreeted(t *testing.T, c client.Client, id string) {
	t.Helper()
	ctx := testContext(t)
	var answer string
	if err := c.GetWorkflow(ctx, id, "").Get(ctx, &answer); err != nil || answer != "hello world" {
		t.Errorf("%s: got %q, %v", id, answer, err)
	}
}

func work(t *testing.T, c client.Client) {
	t.Helper()
	w := worker.New(c, taskQueue, worker.Options{WorkflowPanicPolicy: worker.FailWorkflow})
	w.RegisterWorkflowWithOptions(greet, workflow.RegisterOptions{Name: "greet"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

// wantListed waits until the query finds that many workflows; visibility is a
// little behind.
func wantListed(t *testing.T, c client.Client, query string, want int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		found, err := c.ListWorkflow(testContext(t), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if len(found.Executions) == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s finds %d workflows, want %d", query, len(found.Executions), want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestTwoServersSideBySide(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	one := launch(t, "--port", "0", "--db", file)
	two := launch(t, "--port", "0", "--namespace", "other")

	if two.Namespace != "other" || two.Address == one.Address {
		t.Errorf("got %+v and %+v", one.readiness, two.readiness)
	}
	startGreetingWithoutAttributes(t, one.dial(t))
	startGreetingWithoutAttributes(t, two.dial(t))

	message := refused(t, exitFailed, "--port", "0", "--db", file)
	wantAll(t, message, file, "in use", fmt.Sprintf("pid %d", one.PID), "--db")

	two.terminate(t, syscall.SIGTERM)
	one.terminate(t, syscall.SIGTERM)
}

func startGreetingWithoutAttributes(t *testing.T, c client.Client) {
	t.Helper()
	options := client.StartWorkflowOptions{ID: "greeting", TaskQueue: taskQueue}
	if _, err := c.ExecuteWorkflow(testContext(t), options, "greet", "world"); err != nil {
		t.Error(err)
	}
}

func TestUIAnswersAndReadinessIsAnnouncedTwice(t *testing.T) {
	p := launch(t, "--port", "0")
	for path, part := range map[string]string{"/": "<html", "/api/v1/settings": `"xce"`, "/api/v1/namespaces/xce": "259200s"} {
		status, body := get(t, p.UI+path)
		if status != http.StatusOK {
			t.Errorf("GET %s: %d", path, status)
		}
		wantAll(t, body, part)
	}
	if p.PID != p.cmd.Process.Pid || p.Namespace != "xce" {
		t.Errorf("got %+v", p.readiness)
	}
	fromFile, err := os.ReadFile(p.readyFile)
	if err != nil {
		t.Fatal(err)
	}
	p.terminate(t, syscall.SIGTERM)
	if p.stdout.String() != string(fromFile) {
		t.Errorf("stdout says %q, the ready file %q", p.stdout.String(), fromFile)
	}
	if _, err := os.Stat(p.readyFile); !os.IsNotExist(err) {
		t.Errorf("the ready file is still there: %v", err)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestWithoutUI(t *testing.T) {
	p := launch(t, "--port", "0", "--ui-port", "-1", "--retention", "24h")
	if p.UI != "" {
		t.Errorf("the UI is at %q", p.UI)
	}
	p.terminate(t, syscall.SIGTERM)
	if !json.Valid(p.stdout.Bytes()) {
		t.Errorf("stdout is no JSON: %q", p.stdout.String())
	}
}

func TestRetentionFollowsTheFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	for _, hours := range []int{72, 24} {
		p := launch(t, "--port", "0", "--db", file, "--retention", fmt.Sprintf("%dh", hours))
		_, body := get(t, p.UI+"/api/v1/namespaces/xce")
		wantAll(t, body, fmt.Sprintf(`"%ds"`, hours*3600))
		p.terminate(t, syscall.SIGTERM)
	}
}

func TestStopWhileStarting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	for _, wait := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond} {
		p := begin(t, "--port", "0", "--db", file)
		for time.Sleep(wait); !p.hears(t, syscall.SIGTERM); time.Sleep(wait) {
			if wait *= 2; wait > 10*time.Second { // a busy machine needs some time to come so far
				t.Fatal("it never listens for signals")
			}
			p = begin(t, "--port", "0", "--db", file)
		}
	}
	launch(t, "--port", "0", "--db", file).terminate(t, syscall.SIGTERM)
}

func TestTakenPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)

	message := refused(t, exitFailed, "--port", taken)
	wantAll(t, message, "port "+taken, "front-end gRPC", "in use", "--port 0")
	message = refused(t, exitFailed, "--port", "0", "--ui-port", taken)
	wantAll(t, message, "port "+taken, "web UI", "in use", "--ui-port 0")
}

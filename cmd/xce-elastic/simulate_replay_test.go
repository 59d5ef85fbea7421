package main

import (
	"compress/gzip"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// archive stands for Temporal with the histories of some stories.
type archive struct {
	client.Client
	stories map[string]*history.History // by run
	query   string
}

func (a *archive) Close() {}

// ListWorkflow lists the stories, one on a page, and one that is gone when it is asked for.
func (a *archive) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	a.query = r.GetQuery()
	runs := []string{"gone"}
	for run := range a.stories {
		runs = append(runs, run)
	}
	slices.Sort(runs)
	page := len(r.GetNextPageToken())
	answer := &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflow.WorkflowExecutionInfo{{
		Execution: &common.WorkflowExecution{WorkflowId: "host/small-" + runs[page], RunId: runs[page]},
	}}}
	if page+1 < len(runs) {
		answer.NextPageToken = make([]byte, page+1)
	}
	return answer, nil
}

func (a *archive) GetWorkflowHistory(_ context.Context, _, run string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
	h, there := a.stories[run]
	return &pages{events: h.GetEvents(), gone: !there}
}

type pages struct {
	events []*history.HistoryEvent
	gone   bool
}

func (p *pages) HasNext() bool { return p.gone || len(p.events) > 0 }

func (p *pages) Next() (*history.HistoryEvent, error) {
	if p.gone {
		return nil, serviceerror.NewNotFound("the history is no more")
	}
	next := p.events[0]
	p.events = p.events[1:]
	return next, nil
}

// newArchive has the program reach an archive of two stories.
func newArchive(t *testing.T) *archive {
	t.Helper()
	a, dial := &archive{stories: map[string]*history.History{}}, dialTemporal
	for _, name := range []string{"host", "loan-operator"} {
		file, err := os.Open(filepath.Join("..", "..", "workflows", "testdata", "histories", name+".json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		text, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		if a.stories[name], err = client.HistoryFromJSON(text, client.HistoryJSONOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	dialTemporal = func(context.Context, client.Options) (client.Client, error) { return a, nil }
	t.Cleanup(func() { dialTemporal = dial })
	return a
}

func TestHistoriesAreDownloadedAndReplayed(t *testing.T) {
	a, folder := newArchive(t), t.TempDir()
	t.Setenv("XCE_CONFIG", fileOf(t, "farm.yaml", simulatedFarm))
	_, told, err := typed(t, "", "simulate", "record-histories", "--out", folder)
	if err != nil || told != "2 histories are in "+folder+"\n" {
		t.Fatalf("told is %q, the error is %v", told, err)
	}
	if a.query != "WorkflowType IN ('provider', 'loan', 'host')" {
		t.Errorf("asked for are %s", a.query)
	}
	prints(t, []string{"simulate", "--replay", folder}, `stories +2 +2 +0 +0\n`, `steps of stories +\d\d +\d\d +0 +0\n`, `Every decision of the record is the one that this program makes\.`)
	prints(t, []string{"simulate", "--replay", folder, "-o", "json"}, `"name": "stories",\s+"replayed": 2,\s+"same": 2`, `"differences": \[\]`)
	refuses(t, []string{"simulate", "record-histories", "--out", folder}, `--out: .*histories is there already; name another folder, or remove it`)
}

func TestHistoriesThatAreEncryptedAreReplayedWithTheirKeys(t *testing.T) {
	a, folder := newArchive(t), t.TempDir()
	keys := filepath.Join(folder, "codec.keys")
	output(t, "codec keygen --file "+keys)
	c, err := payloadCodec(keys, defaultNamespace, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range a.stories {
		err := proxy.VisitPayloads(t.Context(), h, proxy.VisitPayloadsOptions{
			SkipSearchAttributes: true,
			Visitor: func(_ *proxy.VisitPayloadsContext, ps []*common.Payload) ([]*common.Payload, error) {
				return c.Encode(ps)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	alone(t)
	t.Setenv("XCE_CONFIG", fileOf(t, "farm.yaml", simulatedFarm))
	output(t, "simulate record-histories --quiet --out "+folder)
	prints(t, []string{"simulate", "--replay", folder, "--codec-keys", keys}, `stories +2 +2 +0 +0\n`)
	refuses(t, []string{"simulate", "--replay", folder}, `no keys are given; name their file, .*name the file of the keys with --codec-keys`)
}

func TestADifferenceIsShownAndIsAnError(t *testing.T) {
	a, folder := newArchive(t), t.TempDir()
	t.Setenv("XCE_CONFIG", fileOf(t, "farm.yaml", simulatedFarm))
	for _, e := range a.stories["host"].GetEvents() {
		if timer := e.GetTimerStartedEventAttributes(); timer != nil {
			timer.StartToFireTimeout.Seconds += 60
			break
		}
	}
	if _, _, err := typed(t, "", "simulate", "record-histories", "--out", folder); err != nil {
		t.Fatal(err)
	}
	out, _, err := typed(t, "", "simulate", "--replay", folder)
	if err == nil || err.Error() != "1 decision would be made otherwise now" {
		t.Errorf("the error is %v", err)
	}
	for _, p := range []string{`stories +2 +1 +0 +1\n`, `DIFFERENT NOW, AT FIRST\nhost/[\w-]+ \(run [\w-]+\), event \d+\n  what the story asks for\n    live: timer of 1m\d+\.\d+s\n    now: timer of \d+\.\d+s`} {
		if !regexp.MustCompile(p).MatchString(out) {
			t.Errorf("it prints\n%s\nwant %s", out, p)
		}
	}
}

func TestAReplayNeedsNothingButARecord(t *testing.T) {
	empty := t.TempDir()
	refuses(t, []string{"simulate", "--replay", empty}, `--replay: .* has no record: name the folder in controller.record, or that of .xce-elastic simulate record-histories --out.`)
	refuses(t, []string{"simulate", "--replay", ""}, `--replay: name the folder of the record`)
	refuses(t, []string{"simulate", "--replay", empty, "--jobs", "x.swf"}, `--replay takes all that it needs from the record; leave --jobs out`)
	refuses(t, []string{"simulate", "record-histories"}, `name the folder to write to with --out`)
}

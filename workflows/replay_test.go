package workflows_test

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/workflows"
)

// recorded reads the recorded histories, by name.
func recorded(t *testing.T) map[string]*history.History {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "histories", "*.json.gz"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d histories, error %v; see testdata/README.md", len(paths), err)
	}
	histories := map[string]*history.History{}
	for _, path := range paths {
		histories[strings.TrimSuffix(filepath.Base(path), ".json.gz")] = unpack(t, path)
	}
	return histories
}

func unpack(t *testing.T, path string) *history.History {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	h, err := client.HistoryFromJSON(text, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return h
}

// replayer replays with the given workflows of loans and hosts.
func replayer(t *testing.T, loan, host any) worker.WorkflowReplayer {
	t.Helper()
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(loan, workflow.RegisterOptions{Name: workflows.LoanName})
	r.RegisterWorkflowWithOptions(host, workflow.RegisterOptions{Name: workflows.HostName})
	r.RegisterWorkflowWithOptions(workflows.ProviderWorkflow, workflow.RegisterOptions{Name: workflows.ProviderName})
	return r
}

func TestRecordedStoriesAreToldAlike(t *testing.T) {
	for name, h := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			if err := replayer(t, workflows.LoanWorkflow, workflows.HostWorkflow).ReplayWorkflowHistory(nil, h); err != nil {
				t.Errorf("%v\nStories that run would break likewise. Put what changed behind workflow.GetVersion; "+
					"where none can run any more, record anew as testdata/README.md says.", err)
			}
		})
	}
}

// oneMore runs an activity that no story has there.
func oneMore(ctx workflow.Context) {
	hasty := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: workflows.QueueController, StartToCloseTimeout: 1})
	_ = workflow.ExecuteActivity(hasty, activities.ControllerView, nil).Get(ctx, nil)
}

func TestAChangedStoryIsNoticed(t *testing.T) {
	changedLoan := func(ctx workflow.Context, l workflows.Loan) error {
		oneMore(ctx)
		return workflows.LoanWorkflow(ctx, l)
	}
	changedHost := func(ctx workflow.Context, h workflows.Host) error {
		oneMore(ctx)
		return workflows.HostWorkflow(ctx, h)
	}
	for name, h := range recorded(t) {
		if strings.HasPrefix(name, "provider") {
			continue
		}
		if err := replayer(t, changedLoan, changedHost).ReplayWorkflowHistory(nil, h); err == nil {
			t.Errorf("%s: one activity more was not noticed", name)
		}
	}
}

//go:build e2e

package dev

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"

	"xce.internal/elastic/workflows"
)

// runStory runs the example as a user does, and answers what it printed.
func runStory(t *testing.T, environment ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(programs(t), "xce-elastic"), "dev", "--once")
	cmd.Env = append(os.Environ(), environment...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func expect(t *testing.T, out string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(out) {
			t.Errorf("%q is not in\n%s", p, out)
		}
	}
}

func TestTheStoryIsToldToItsEnd(t *testing.T) {
	t.Parallel()
	out := runStory(t)
	expect(
		t, out,
		`Temporal UI: http://127\.0\.0\.1:\d+/namespaces/xce/workflows`,
		// How many loans bring the units is a matter of how fast the jobs arrive.
		`vcs +4 +\d+ +loan/vcs/pool-a-1 +pool-a granted \d of \d`,
		`vcs +\d +1[0-2] +loan/vcs/pool-a-\d +pool-a granted \d of \d`,
		`loan/vcs/pool-a-\d +\d units idle for 5s`,
		`vcs +\d+ +4 +loan/vcs/pool-a-\d`, // the last fall of the total
		` 0 held, 0 lost; 12 jobs done, 0 failed`,
	)
}

func TestTheStoryUsesAServerThatRuns(t *testing.T) {
	t.Parallel()
	f := startFarm(t, brisk)
	out := runStory(t, "TEMPORAL_ADDRESS="+f.temporal)
	expect(t, out, `namespace xce-example \(it ran already\)`, ` 0 held, 0 lost; 12 jobs done`)
	c := f.connectTo(t, "xce-example")
	provider, err := c.DescribeWorkflow(t.Context(), workflows.ProviderID(poolName), "")
	if err != nil || provider.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Errorf("the example's provider is left behind: %v %v", provider, err)
	}
	if strings.Contains(out, "Temporal UI:") {
		t.Error("a server was started though one was named")
	}
}

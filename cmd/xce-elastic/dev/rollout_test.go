//go:build e2e

package dev

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"xce.internal/elastic/workflows"
)

// A new build of the workflows runs beside the old one, gets a part of the
// workflows and then all, while loans come and go; then the old one is stopped.
func TestANewBuildTakesOverRunningWorkflows(t *testing.T) {
	t.Parallel()
	next := filepath.Join(t.TempDir(), "xce-elastic")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.version=next", "-o", next, "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	e := brisk
	e.Cluster = strings.Replace(e.Cluster, "  namespace:", "  versioning: true\n  namespace:", 1)
	f := startFarm(t, e)
	f.certify(t, deputy)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	submitted := 0
	load.Go(func() { submitted = f.submitBursts(ctx, t, rand.New(rand.NewPCG(seed(t), 1))) })
	_, err := f.run(deputy, next, []string{"worker", "--config", configName}, f.as(deputy)...)
	must(t, err)
	eventually(t, time.Minute, func() error {
		if _, stderr, ok := f.cli(t, "rollout", "next", "--percent", "30"); !ok {
			return errors.New(stderr)
		}
		return nil
	})
	f.does(t, "rollout", `(?m)^next .* 30 %`, `70 %`)
	f.refuses(t, "rollout nowhere", `no provisioner runs build "nowhere"`)
	time.Sleep(3 * time.Second)
	f.does(t, "rollout next", `100 % of the workflows go to build next`)
	c := f.connect(t)
	eventually(t, time.Minute, func() error { return runsBuild(t.Context(), c, workflows.ProviderID(poolName), "next") })
	must(t, f.part("worker").stop())
	time.Sleep(5 * time.Second)
	cancel()
	load.Wait()
	eventually(t, 2*time.Minute, func() error { return f.settled(t.Context()) })
	f.checkTruth(t, submitted)
	f.checkHolders(t)
}

// runsBuild answers an error unless a workflow runs on a build.
func runsBuild(ctx context.Context, c client.Client, id, build string) error {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return err
	}
	if on := d.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId(); on != build {
		return fmt.Errorf("%s runs on build %q", id, on)
	}
	return nil
}

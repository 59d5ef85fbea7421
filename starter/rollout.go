package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// Deployment is the name under which Temporal knows the builds of the workflows.
const Deployment = "xce-elastic"

// Build is one build of the workflows, as Temporal knows it.
type Build struct {
	ID   string    `json:"build"`
	Seen time.Time `json:"seen"` // when a provisioner first ran it
	// Percent is what part of the workflows' steps go to it.
	Percent float32 `json:"percent"`
	// Drained tells that no workflow is left on it.
	Drained bool `json:"drained"`
}

// Builds lists the builds, the newest first. There are none where no provisioner
// runs with temporal.versioning.
func (c *Client) Builds(ctx context.Context) ([]Build, error) {
	out, err := c.temporal.WorkerDeploymentClient().GetHandle(Deployment).Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return []Build{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the builds of the workflows: %w", err)
	}
	routing := out.Info.RoutingConfig
	builds := []Build{}
	for _, v := range out.Info.VersionSummaries {
		b := Build{ID: v.Version.BuildID, Seen: v.CreateTime, Drained: v.DrainageStatus == client.WorkerDeploymentVersionDrainageStatusDrained}
		if current := routing.CurrentVersion; current != nil && current.BuildID == b.ID {
			b.Percent = 100 - routing.RampingVersionPercentage
		}
		if ramping := routing.RampingVersion; ramping != nil && ramping.BuildID == b.ID {
			b.Percent = routing.RampingVersionPercentage
		}
		builds = append(builds, b)
	}
	slices.SortFunc(builds, func(a, b Build) int { return b.Seen.Compare(a.Seen) })
	return builds, nil
}

// Rollout has a build take so many percent of the workflows, or all.
func (c *Client) Rollout(ctx context.Context, build string, percent float32, who string) error {
	handle := c.temporal.WorkerDeploymentClient().GetHandle(Deployment)
	var err error
	if percent >= 100 {
		_, err = handle.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build, Identity: who})
	} else {
		_, err = handle.SetRampingVersion(ctx, client.WorkerDeploymentSetRampingVersionOptions{BuildID: build, Percentage: percent, Identity: who})
	}
	if err != nil {
		return fmt.Errorf("roll build %s out: %w", build, err)
	}
	return nil
}

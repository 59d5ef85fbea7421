package worker

import (
	"context"
	"time"

	"xce.internal/elastic/starter"
)

// firstBuild has this build take the workflows where none does yet: Temporal would
// keep them waiting. All later ones are for an operator to roll out.
type firstBuild struct {
	stories *starter.Client
	options Options
}

// run tries until some build takes the workflows. Temporal hears of this one only
// once its worker polls.
func (f firstBuild) run(ctx context.Context) {
	for ctx.Err() == nil && !f.taken(ctx) {
		if err := f.stories.Rollout(ctx, f.options.Build, 100, "provisioner"); err != nil {
			f.options.Log.Debug("the build takes no workflows yet", "build", f.options.Build, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

func (f firstBuild) taken(ctx context.Context) bool {
	builds, err := f.stories.Builds(ctx)
	if err != nil {
		f.options.Log.Debug("builds are not listed", "error", err)
	}
	for _, b := range builds {
		if b.Percent > 0 {
			return true
		}
	}
	return false
}

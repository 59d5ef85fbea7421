package worker

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/workflows"
)

// providerPost polls the task queues of one provider: that of its scripts, and
// that of the changes which the controller is told of.
type providerPost struct{ workers []sdkworker.Worker }

// manProvider begins to act for a provider under a lease.
func manProvider(options Options, temporal client.Client, p Provider, lease *held, fatal fatal) (post, error) {
	controller := options.Controller.Under(lease.Claim)
	hosts := joins{controller: controller, address: options.Address, authority: string(options.AuthorityPEM)}

	scripts := sdkworker.New(temporal, workflows.QueueProvider(p.Name), leasedOptions(lease, fatal))
	RegisterProvider(scripts, &activities.Provider{Script: p.Script, Hosts: hosts})
	updates := sdkworker.New(temporal, workflows.QueueUpdates(p.Name), leasedOptions(lease, fatal))
	RegisterUpdates(updates, &activities.Controller{Ledger: controller, Catalog: controller})

	post := providerPost{[]sdkworker.Worker{scripts, updates}}
	for i, w := range post.workers {
		if err := w.Start(); err != nil {
			for _, started := range post.workers[:i] {
				started.Stop()
			}
			return nil, fmt.Errorf("start worker: %w", err)
		}
	}
	return post, nil
}

// Leave implements post.
func (p providerPost) Leave() {
	for _, w := range p.workers {
		w.Stop()
	}
}

func leasedOptions(lease *held, fatal fatal) sdkworker.Options {
	options := workerOptions(fatal)
	options.DisableWorkflowWorker = true
	options.BackgroundActivityContext = lease.over
	options.Interceptors = []interceptor.WorkerInterceptor{&underLease{lease: lease}}
	return options
}

// underLease begins no activity after the lease, and takes a change that was
// refused for it as the lease's end.
type underLease struct {
	interceptor.WorkerInterceptorBase
	lease *held
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (u *underLease) InterceptActivity(ctx context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &leasedActivity{lease: u.lease}
	a.Next = next
	return a
}

type leasedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	lease *held
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *leasedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if !a.lease.Valid() {
		return nil, errLeaseOver
	}
	a.lease.running.Add(1)
	defer a.lease.running.Done()
	out, err := a.Next.ExecuteActivity(ctx, in)
	if api.LeaseLost(err) {
		a.lease.lose()
	}
	return out, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/config"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

// createNamespace puts the namespace, with its search attributes, into the
// database before the server starts, so that every service knows it from the
// beginning. An existing namespace is left alone.
func createNamespace(cfg *config.SQL, opts options) error {
	row, err := sqliteschema.NewNamespaceConfig(clusterName, opts.namespace, false, opts.attributes)
	if err != nil {
		return fmt.Errorf("namespace %s: too many search attributes, drop some --search-attribute: %w", opts.namespace, err)
	}
	row.Detail.Config.Retention = durationpb.New(opts.retention)
	if err := sqliteschema.CreateNamespaces(cfg, row); err != nil {
		return fmt.Errorf("namespace %s cannot be made: %w", opts.namespace, err)
	}
	return nil
}

// waitUsable waits until the front end, the history shard and the visibility
// store answer for the namespace.
func waitUsable(ctx context.Context, c client.Client, name string) error {
	err := waitFor(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if _, err := c.CheckHealth(ctx, nil); err != nil {
			return err
		}
		var notFound *serviceerror.NotFound
		_, err := c.DescribeWorkflowExecution(ctx, "no-such-workflow", "")
		if err != nil && !errors.As(err, &notFound) {
			return err
		}
		_, err = c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: name})
		return err
	})
	if err != nil {
		return fmt.Errorf("the Temporal server has started but does not answer (try --log-level info): %w", err)
	}
	return nil
}

// setRetention brings an existing namespace to the retention asked for.
func setRetention(ctx context.Context, c client.Client, opts options) error {
	found, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: opts.namespace})
	if err != nil {
		return fmt.Errorf("namespace %s cannot be read: %w", opts.namespace, err)
	}
	if found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() == opts.retention {
		return nil
	}
	_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: opts.namespace,
		Config:    &namespace.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(opts.retention)},
	})
	if err != nil {
		return fmt.Errorf("namespace %s: its retention cannot be set to %s: %w", opts.namespace, opts.retention, err)
	}
	return nil
}

// addAttributes adds the search attributes that an existing namespace lacks
// and waits until every service knows them.
func addAttributes(ctx context.Context, c client.Client, opts options) error {
	missing, err := missingAttributes(ctx, c, opts)
	if err != nil || len(missing) == 0 {
		return err
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace:        opts.namespace,
		SearchAttributes: missing,
	})
	if err != nil {
		return fmt.Errorf("namespace %s: search attributes cannot be added, drop some --search-attribute or use a new --db: %w", opts.namespace, err)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(namespaceRefresh + namespaceRefresh/2):
		return nil
	}
}

// missingAttributes returns what is asked for and absent. An attribute that
// exists as another type is refused: its stored values would be wrong.
func missingAttributes(ctx context.Context, c client.Client, opts options) (attributes, error) {
	found, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: opts.namespace})
	if err != nil {
		return nil, fmt.Errorf("namespace %s: its search attributes cannot be read: %w", opts.namespace, err)
	}
	missing := attributes{}
	for name, kind := range opts.attributes {
		switch have, ok := found.GetCustomAttributes()[name]; {
		case !ok:
			missing[name] = kind
		case have != kind:
			return nil, fmt.Errorf("namespace %s has search attribute %s as %s, not %s: keep its type in --search-attribute, or use a new --db", opts.namespace, name, have, kind)
		}
	}
	return missing, nil
}

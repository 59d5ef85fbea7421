package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"xce.internal/elastic/workflows"
)

// retention is how long closed workflows are kept in a namespace made here.
const retention = 72 * time.Hour

// Prepare makes sure that the namespace and its search attributes are there.
// A server that does not let us, which is for its administrator to say, is
// reported with what is to be done there.
func Prepare(ctx context.Context, c client.Client, namespace string) error {
	_, err := c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("make Temporal namespace %s: %w; have it made on the server", namespace, err)
	}
	if err := addAttributes(ctx, c, namespace); err != nil {
		return fmt.Errorf("add search attributes to Temporal namespace %s: %w; have these added on the server: %s",
			namespace, err, strings.Join(workflows.SearchAttributes, ", "))
	}
	return nil
}

func addAttributes(ctx context.Context, c client.Client, namespace string) error {
	present, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return err
	}
	missing := map[string]enums.IndexedValueType{}
	for _, line := range workflows.SearchAttributes {
		name, kind, _ := strings.Cut(line, "=")
		if _, there := present.GetCustomAttributes()[name]; there {
			continue
		}
		if missing[name], err = enums.IndexedValueTypeFromString(kind); err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing})
	return err
}

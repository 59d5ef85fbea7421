package worker

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"go.temporal.io/sdk/activity"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/workflows"
)

// names collects what is registered.
type names struct {
	sdkworker.WorkflowRegistry
	sdkworker.ActivityRegistry
	of []string
}

func (n *names) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	n.of = append(n.of, o.Name)
}

func (n *names) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	n.of = append(n.of, o.Name)
}

// constants are the values of the string constants in a file.
func constants(t *testing.T, path string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return true
		}
		if literal, is := spec.Values[0].(*ast.BasicLit); is && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	return values
}

func TestEveryActivityIsRegisteredUnderItsName(t *testing.T) {
	var registered names
	RegisterController(&registered, &activities.Controller{}, &activities.Starter{})
	RegisterUpdates(&registered, &activities.Controller{})
	RegisterProvider(&registered, &activities.Provider{})
	want := constants(t, "../activities/doc.go")
	slices.Sort(registered.of)
	slices.Sort(want)
	if !slices.Equal(registered.of, want) || len(want) == 0 {
		t.Errorf("registered: %v\nnames: %v", registered.of, want)
	}
}

func TestEveryWorkflowIsRegisteredUnderItsName(t *testing.T) {
	var registered names
	RegisterWorkflows(&registered)
	slices.Sort(registered.of)
	if want := []string{workflows.HostName, workflows.LoanName, workflows.ProviderName}; !slices.Equal(registered.of, want) {
		t.Errorf("registered: %v, want %v", registered.of, want)
	}
}

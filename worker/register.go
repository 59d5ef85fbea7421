package worker

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/workflows"
)

// RegisterWorkflows registers the workflows under their names.
func RegisterWorkflows(w worker.WorkflowRegistry) {
	w.RegisterWorkflowWithOptions(workflows.LoanWorkflow, workflow.RegisterOptions{Name: workflows.LoanName})
	w.RegisterWorkflowWithOptions(workflows.HostWorkflow, workflow.RegisterOptions{Name: workflows.HostName})
	w.RegisterWorkflowWithOptions(workflows.ProviderWorkflow, workflow.RegisterOptions{Name: workflows.ProviderName})
}

// RegisterController registers the activities that ask the controller and start
// loans and hosts. They need no lease.
func RegisterController(w worker.ActivityRegistry, c *activities.Controller, s *activities.Starter) {
	register(w, map[string]any{
		activities.ControllerView: c.View, activities.StarterLoan: s.StartLoan, activities.StarterHosts: s.StartHosts,
	})
}

// RegisterUpdates registers the changes that the controller is told of for one provider.
func RegisterUpdates(w worker.ActivityRegistry, c *activities.Controller) {
	register(w, map[string]any{
		activities.LedgerIntend: c.Intend, activities.LedgerCommit: c.Commit, activities.LedgerRefuse: c.Refuse,
		activities.LedgerFence: c.Fence, activities.LedgerRecall: c.Recall, activities.LedgerConfirm: c.Confirm,
		activities.LedgerHost:        c.WriteHost,
		activities.ControllerPublish: c.Publish, activities.ControllerStray: c.Stray,
	})
}

// RegisterProvider registers the activities of one provider.
func RegisterProvider(w worker.ActivityRegistry, p *activities.Provider) {
	register(w, map[string]any{
		activities.ProviderSurvey: p.Survey, activities.ProviderRequest: p.Request, activities.ProviderStatus: p.Status,
		activities.ProviderHolding: p.Holding, activities.ProviderReturn: p.Return,
	})
}

func register(w worker.ActivityRegistry, named map[string]any) {
	for name, fn := range named {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

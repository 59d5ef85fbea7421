//go:build e2e

package chaos

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/workflows"
)

// heal makes sure that all runs and is reached. What has ended by itself is started, and told.
func (f *farm) heal() error {
	if err := f.database.raise(); err != nil {
		return err
	}
	for _, w := range f.wires {
		w.Heal()
	}
	for _, name := range append([]string{"temporal"}, f.order...) {
		p := f.processes[name]
		p.signal(syscall.SIGCONT)
		if p.lives() {
			continue
		}
		f.t.Logf("%s has ended by itself and is started again", name)
		if err := p.start(); err != nil {
			return err
		}
	}
	for _, p := range f.providers {
		if err := f.control(p, "", 0); err != nil {
			return err
		}
	}
	return nil
}

// admin answers a client of a controller, once all is healed.
func (f *farm) admin() *api.Client { return f.controllers[0].client }

// settled tells whether nothing goes on any more: no job, no loan, no host, no workflow.
func (f *farm) settled(ctx context.Context) error {
	if err := f.heal(); err != nil {
		return err
	}
	f.believe(ctx)
	st, err := f.admin().Status(ctx)
	if err != nil {
		return err
	}
	loans, err := f.admin().Loans(ctx, false)
	if err != nil {
		return err
	}
	hosts, err := f.admin().ElasticHosts(ctx, false)
	if err != nil {
		return err
	}
	if n := st.Jobs.Waiting + st.Jobs.Running; n+int64(len(loans)+len(hosts)) > 0 {
		return fmt.Errorf("%d jobs wait, %d run, %d loans and %d hosts are open: %s", st.Jobs.Waiting, st.Jobs.Running, len(loans), len(hosts), first(loans, hosts))
	}
	return f.allBack()
}

func first(loans []cluster.Loan, hosts []cluster.ElasticHost) string {
	switch {
	case len(loans) > 0:
		return fmt.Sprintf("%s is %s, %s", loans[0].ID, loans[0].State, loans[0].Why)
	case len(hosts) > 0:
		return fmt.Sprintf("%s is %s, %s", hosts[0].ID, hosts[0].State, hosts[0].Why)
	}
	return "jobs alone"
}

// allBack tells whether lenders and makers have everything back, by their own files, and every workflow is closed.
func (f *farm) allBack() error {
	e, err := f.outside()
	if err != nil {
		return err
	}
	for _, l := range e.Lenders {
		if len(l.Open) > 0 {
			return fmt.Errorf("%s still lends %+v", l.Name, l.Open)
		}
	}
	for _, m := range e.Makers {
		if len(m.Open)+len(m.Left) > 0 {
			return fmt.Errorf("%s still has %v %v", m.Name, m.Open, m.Left)
		}
	}
	stories, err := f.listStories(f.t.Context())
	if err != nil {
		return err
	}
	for _, s := range stories {
		if s.Status == "Running" {
			return fmt.Errorf("%s is running", s.ID)
		}
	}
	return nil
}

// believe does what an operator does who knows that machines are gone which all at once are not listed any more.
func (f *farm) believe(ctx context.Context) {
	stories := starter.New(f.client)
	for _, p := range f.providers {
		if p.pool {
			continue
		}
		if view, err := stories.Provider(ctx, p.Name); err == nil && view.Hosts.Doubt != "" && !view.Hosts.Believe {
			f.t.Logf("%s is taken at its word: %s", p.Name, view.Hosts.Doubt)
			_ = stories.Believe(ctx, p.Name)
		}
	}
}

// endStories ends the stories of the providers, which no one runs any more.
func (f *farm) endStories() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, p := range f.providers {
		if err := f.client.TerminateWorkflow(ctx, workflows.ProviderID(p.Name), "", "the run is over"); err != nil && !strings.Contains(err.Error(), "not found") {
			f.t.Log(err)
		}
	}
}

// own tells whether a workflow is one of this seed's.
func (f *farm) own(id string) bool {
	for _, p := range f.providers {
		if strings.Contains(id, "/"+p.Name+"-") {
			return true
		}
	}
	return strings.Contains(id, fmt.Sprintf("/small%d-", f.seed)) || strings.Contains(id, fmt.Sprintf("/large%d-", f.seed))
}

// listStories lists the workflows of this seed's loans and hosts.
func (f *farm) listStories(ctx context.Context) (all []story, err error) {
	for _, kind := range []string{workflows.LoanName, workflows.HostName} {
		request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowType = %q", kind), PageSize: 1000}
		for {
			page, err := f.client.ListWorkflow(ctx, request)
			if err != nil {
				return nil, err
			}
			for _, e := range page.GetExecutions() {
				if id := e.GetExecution().GetWorkflowId(); f.own(id) {
					all = append(all, story{ID: id, Kind: kind, Status: statusName(e.GetStatus())})
				}
			}
			if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
				break
			}
		}
	}
	return all, nil
}

func statusName(s enums.WorkflowExecutionStatus) string { return s.String() }

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/workflows"
)

// stories stands for Temporal with the stories of hosts: it keeps what they are
// asked, and answers what it is told to.
type stories struct {
	client.Client
	client.WorkflowUpdateHandle
	asked string
	err   error
}

// newStories has the program reach it.
func newStories(t *testing.T) *stories {
	s, dial := &stories{}, dialTemporal
	dialTemporal = func(context.Context, client.Options) (client.Client, error) { return s, nil }
	t.Cleanup(func() { dialTemporal = dial })
	return s
}

func (s *stories) Close() {}

func (s *stories) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	order := o.Args[0].(workflows.HostOrder)
	s.asked = fmt.Sprintf("%s %s why=%q within=%s requeue=%t", o.UpdateName, o.WorkflowID, order.Why, order.Within, order.Requeue)
	if order.By != whoami() || o.UpdateID == "" {
		s.asked += fmt.Sprintf(", by %s under %q", order.By, o.UpdateID)
	}
	return s, nil
}

func (s *stories) Get(_ context.Context, answer any) error {
	*answer.(*workflows.HostAnswer) = workflows.HostAnswer{State: "draining"}
	return s.err
}

func TestWishesForHostsReachTheirStories(t *testing.T) {
	f := newFarm(t, 3)
	f.here(1)
	f.expect(2)
	f.intend(3)
	s := newStories(t)
	for _, test := range []struct{ line, asked, printed string }{
		{"drain m1", `drain host/small-1 why="" within=0s requeue=false`, `^host host/small-1 gets no new jobs; it is draining\n$`},
		{"drain host/small-1 --deadline 10m --requeue --why repair", `drain host/small-1 why="repair" within=10m0s requeue=true`, `gets no new jobs`},
		{"drain m2 --requeue", `drain host/small-2 why="" within=0s requeue=true`, `gets no new jobs`},
		{"drain small-3", `drain host/small-3 why="" within=0s requeue=false`, `gets no new jobs`},
		{"drain small-1", `drain host/small-1 why="" within=0s requeue=false`, `gets no new jobs`},
		{"undrain m1", `undrain host/small-1 why="" within=0s requeue=false`, `gets jobs again`},
		{"hold m1 --why crash", `hold host/small-1 why="crash" within=0s requeue=false`, "is kept until `xce-elastic host release`"},
		{"release m1", `release host/small-1 why="" within=0s requeue=false`, `is not kept any more`},
		{"gone m1 --yes", `gone host/small-1 why="" within=0s requeue=false`, `is closed, and its jobs wait again`},
		{"undrain m1 --json", `undrain host/small-1 why="" within=0s requeue=false`, `"host": "host/small-1",\n +"state": "draining"`},
	} {
		s.asked = ""
		prints(t, append([]string{"host"}, strings.Fields(test.line)...), test.printed)
		if s.asked != test.asked {
			t.Errorf("%s asks %s, want %s", test.line, s.asked, test.asked)
		}
	}
	s.err = temporal.NewNonRetryableApplicationError("host host/small-1 is kept by ann (a crash); release it first", workflows.HostRefused, nil)
	refuses(t, []string{"host", "drain", "m1"}, `^host host/small-1 is kept by ann \(a crash\); release it first$`)
	s.err = serviceerror.NewNotFound("no such workflow")
	refuses(t, []string{"host", "drain", "m1"}, `^there is no open host "host/small-1"; .xce-elastic hosts. lists them$`)
}

func TestWishesThatCannotBeAreRefused(t *testing.T) {
	f := newFarm(t, 1)
	f.intend(1)
	f.write(1, api.WriteHost{Refuse: &api.RefuseHost{Why: "no"}})
	s := newStories(t)
	for line, want := range map[string]string{
		"drain h1":                 `^host h1 is owned by the cluster: no provider made it or takes it back; stop the agent on it, and it gets no new jobs$`,
		"gone h1 --yes":            `^host h1 is owned by the cluster`,
		"hold h1 --why x":          `^host h1 is owned by the cluster`,
		"drain m9":                 `^there is no open host "m9"; .xce-elastic hosts. lists them$`,
		"drain host/small-1":       `^there is no open host "host/small-1"`,
		"drain":                    "^write `xce-elastic host drain HOST`, as in `xce-elastic host drain small-3`$",
		"drian m1":                 `^unknown command "drian" for "xce-elastic host"; did you mean drain`,
		"drain m1 --deadline soon": `^--deadline: duration "soon" is not .*; write a length of time such as 10m$`,
		"drain m1 --deadline -1m":  `^--deadline -1m: it is negative`,
		"hold m1":                  `"why" not set`,
		"hold m1 --why=":           `^--why is empty; say why`,
		"gone m1":                  `^jobs on the host will wait again, and run twice if its machine still lives; say --yes`,
	} {
		refuses(t, append([]string{"host"}, strings.Fields(line)...), want)
	}
	if s.asked != "" {
		t.Errorf("asked is %s", s.asked)
	}
}

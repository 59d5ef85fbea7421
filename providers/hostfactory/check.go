package hostfactory

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/check"
)

// slowCall is when a call is long enough that operators will feel it.
const slowCall = 10 * time.Second

// Check exercises a plug-in and prints one line per check as it goes: it asks for one machine, of the
// cheapest template, and gives it back. It waits for the machine, and for its end, each at most as long as
// patience. Folders that the spec leaves out are made for the run and removed afterwards; the records that
// the check itself keeps always are. The error says that the plug-in could not be checked to the end.
func Check(ctx context.Context, spec Spec, patience time.Duration, out io.Writer) (check.Report, error) {
	return runCheck(ctx, spec, patience, out, func(*Adapter) {})
}

func runCheck(ctx context.Context, spec Spec, patience time.Duration, out io.Writer, prepare func(*Adapter)) (check.Report, error) {
	report := check.Report{Provider: spec.Name, Script: spec.Scripts, Rows: []check.Row{}}
	folder, err := os.MkdirTemp("", "xce-hostfactory-")
	if err != nil {
		return report, fmt.Errorf("folder for the check: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	c := &checking{out: out, report: report, patience: patience, id: "check/" + rand.Text()[:12], fresh: true}
	if spec.Work != "" {
		used, err := usedBefore(spec.Work)
		if err != nil {
			return report, err
		}
		c.fresh = used == ""
	}
	if err := c.open(spec, folder); err != nil {
		return report, err
	}
	prepare(c.a)
	c.watch()
	for _, step := range checks {
		switch {
		case step.always:
			c.do(context.WithoutCancel(ctx), step)
		case ctx.Err() == nil:
			c.do(ctx, step)
		}
	}
	return c.report, context.Cause(ctx)
}

// open makes an adapter with records of its own.
func (c *checking) open(spec Spec, folder string) error {
	spec.State = filepath.Join(folder, "state.json")
	for name, path := range map[string]*string{"work": &spec.Work, "logs": &spec.Logs, "conf": &spec.Conf} {
		if *path != "" {
			continue
		}
		*path = filepath.Join(folder, name)
		if err := os.Mkdir(*path, 0o700); err != nil {
			return err
		}
	}
	if err := newState(spec.Name).save(spec.State); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(c.out, &slog.HandlerOptions{ReplaceAttr: onlyWords}))
	a, err := New(spec, log)
	c.a = a
	return err
}

// onlyWords leaves of a log line which script it is of, and what it wrote or did.
func onlyWords(_ []string, attribute slog.Attr) slog.Attr {
	switch attribute.Key {
	case slog.TimeKey, slog.LevelKey, slog.MessageKey, "provider":
		return slog.Attr{}
	}
	return attribute
}

// watch notes what each call comes to and how long it takes.
func (c *checking) watch() {
	execute := c.a.execute
	c.a.execute = func(ctx context.Context, script string, input []byte) providers.Execution {
		run := execute(ctx, script, input)
		c.slowest, c.last = max(c.slowest, run.Elapsed), run
		return run
	}
}

// checking is one run of all checks.
type checking struct {
	a        *Adapter
	out      io.Writer
	report   check.Report
	patience time.Duration
	id       string // of our request
	fresh    bool   // the plug-in has no machines but ours
	template string // what is asked for
	machine  *machineInput
	stuck    bool // what was asked for did not come or go as it should
	slowest  time.Duration
	last     providers.Execution
}

type checkStep struct {
	name   string
	check  func(*checking, context.Context) check.Row
	always bool // also when cancelled, so that nothing is left behind
}

var checks = []checkStep{
	{"getAvailableTemplates", (*checking).templates, false},
	{"getRequestStatus of an unknown request", (*checking).unknownStatus, false},
	{"getReturnRequests with no machine", (*checking).nothingWanted, false},
	{"requestMachines", (*checking).request, false},
	{"the machine comes", (*checking).comes, false},
	{"getRequestStatus of a known and an unknown one", (*checking).bothStatus, false},
	{"getReturnRequests with the machine", (*checking).notWanted, false},
	{"requestReturnMachines, and the machine is gone", (*checking).goes, true},
	{"requestReturnMachines once more", (*checking).twice, false},
}

func (c *checking) do(ctx context.Context, step checkStep) {
	c.slowest = 0
	row := step.check(c, ctx)
	row.Check, row.Elapsed = step.name, c.slowest.Milliseconds()
	if row.Verdict == check.OK && c.slowest > slowCall {
		row = check.Row{
			Check: row.Check, Elapsed: row.Elapsed, Verdict: check.Warning, Expected: "an answer within " + slowCall.String(),
			Mend: "answer with a request id at once; calls of a plug-in take turns, so a slow one delays every other",
		}
	}
	c.report.Rows = append(c.report.Rows, row)
	row.Print(c.out)
}

// said is one answer, as a row is made of it.
type said struct{ reply }

func (s said) row(verdict check.Verdict, expected, found, mend string) check.Row {
	return check.Row{Verdict: verdict, Expected: expected, Found: found, Answer: clip(string(s.run.Stdout)), Mend: mend}
}

// form judges how an answer is written; nil where it is as it should be.
func (s said) form(script string) *check.Row {
	const expected = "one JSON object on stdout, and nothing else"
	var row check.Row
	switch whole := map[string]any{}; {
	case s.run.Err != nil:
		row = s.row(check.Wrong, expected, s.run.Err.Error(), "end in time, and print one JSON object")
	case len(s.docs) == 0:
		row = s.row(check.Wrong, expected, s.why(script), "print a JSON object, also when something is wrong: {\"message\": \"...\"}")
	case json.Unmarshal(s.run.Stdout, &whole) != nil:
		row = s.row(check.Warning, expected, "text that can be read with some patience",
			"print with a JSON library, and logs to a file: noise, Python literals and several documents are understood here, but not everywhere")
	case s.run.Exit != 0:
		row = s.row(check.Warning, "exit status 0 with an answer", fmt.Sprintf("exit status %d", s.run.Exit), "end with 0 where the answer is good")
	default:
		return nil
	}
	return &row
}

func (c *checking) call(ctx context.Context, script string, input any) said {
	if err := c.a.sweep(); err != nil {
		return said{reply{run: providers.Execution{Exit: -1, Err: err}}}
	}
	return said{c.a.call(ctx, script, input)}
}

// orForm answers good, unless the answer is written oddly.
func (s said) orForm(script string) check.Row {
	if row := s.form(script); row != nil {
		return *row
	}
	return check.Row{Verdict: check.OK}
}

func skipped(why string) check.Row { return check.Row{Verdict: check.Skipped, Found: why} }

func (c *checking) templates(ctx context.Context) check.Row {
	const expected = "templates, each with templateId, maxNumber and attributes for its size"
	s := c.call(ctx, getTemplates, struct{}{})
	listed, answered := readTemplates(s.docs)
	if !answered {
		if row := s.form(getTemplates); row != nil && row.Verdict == check.Wrong {
			return *row
		}
		return s.row(check.Wrong, expected, "no templates", "answer {\"templates\": [...]}")
	}
	var problems []string
	t := &turn{c.a, newState(c.a.spec.Name)}
	price := int64(-1)
	for _, entry := range listed {
		template, problem := t.template(entry, 0)
		if !entry.limited && problem == "" {
			problem = "it has no maxNumber"
		}
		if problem != "" {
			problems = append(problems, entry.id+": "+problem)
		} else if template.Headroom > 0 && (price < 0 || template.Price < price) {
			c.template, price = template.Template, template.Price
		}
	}
	if len(problems) > 0 {
		return s.row(check.Warning, expected, strings.Join(problems, "; "), "such templates are left out, or only so many hosts are made of them as the configuration allows")
	}
	if c.template == "" {
		return s.row(check.Warning, expected, "none of which a machine could be made", "raise maxNumber, to make one for this check")
	}
	return s.orForm(getTemplates)
}

const noSuch = "xce-check-no-such-request"

func (c *checking) unknownStatus(ctx context.Context) check.Row {
	const expected = "the request, with the status complete_with_error"
	s := c.call(ctx, getStatus, askFor([]string{noSuch}))
	entries := readStatus(s.docs, []string{noSuch})
	switch {
	case len(entries) == 0:
		return s.row(check.Warning, expected, s.why(getStatus), "answer for an id that you do not have: without an answer it is asked for hours")
	case !entries[0].terminal():
		return s.row(check.Warning, expected, "status "+entries[0].status, "a request that you do not have has ended: with running it is asked for hours")
	}
	return s.orForm(getStatus)
}

func (c *checking) nothingWanted(ctx context.Context) check.Row {
	if !c.fresh {
		return skipped("the work folder is in use, and some plug-ins end every machine that is missing from the list: check with a folder of its own")
	}
	return c.noneWanted(ctx, []machineInput{}, check.Warning, "name only machines that you were told of")
}

// noneWanted checks that none of machines is wanted back; where one is, that is as bad as said.
func (c *checking) noneWanted(ctx context.Context, machines []machineInput, bad check.Verdict, hint string) check.Row {
	s := c.call(ctx, getReturnRequests, machinesInput{machines})
	all, answered := readReturnRequests(s.docs)
	if !answered {
		return s.row(check.Wrong, "a list of requests, here without any", s.why(getReturnRequests), "answer {\"status\": \"complete\", \"requests\": []}")
	}
	if len(all) > 0 {
		return s.row(bad, "no machine", fmt.Sprintf("%d machines", len(all)), hint)
	}
	return s.orForm(getReturnRequests)
}

func (c *checking) request(ctx context.Context) check.Row {
	if c.template == "" {
		return skipped("there is no template to ask for")
	}
	_, outcome := c.a.Request(ctx, providers.RequestIn{RequestID: c.id, Template: c.template, Units: 1})
	s := said{reply{docs: documents(c.last.Stdout), run: c.last}}
	const expected = "a requestId"
	switch {
	case outcome.Status == providers.StatusPending && len(requestIDs(s.docs)) > 1:
		return s.row(check.Warning, expected, "several: "+strings.Join(requestIDs(s.docs), ", "), "print one answer with one id")
	case outcome.Status == providers.StatusPending:
		return s.orForm(requestMachines)
	case outcome.Status == providers.StatusRefused:
		c.stuck = true
		return s.row(check.Warning, expected, "refused: "+outcome.Message, "say with maxNumber or availableNumber 0 that nothing can be had")
	}
	c.stuck = true
	return s.row(check.Wrong, expected, outcome.Message, "print a requestId as soon as anything may have been made, and a message with exit status 1 if nothing was; look for a machine of this check by hand")
}

// asked tells whether the plug-in has got our request.
func (c *checking) asked() bool { return c.template != "" && !c.stuck }

func (c *checking) pause(ctx context.Context) {
	select {
	case <-time.After(c.a.spec.PollInterval):
	case <-ctx.Done():
	}
}

func (c *checking) comes(ctx context.Context) check.Row {
	const expected = "complete, with one machine whose result is succeed"
	if !c.asked() {
		return skipped("nothing was got")
	}
	var state providers.RequestState
	for end := time.Now().Add(c.patience); ; c.pause(ctx) {
		out, _ := c.a.Status(ctx, providers.StatusIn{RequestIDs: []string{c.id}})
		if len(out.Requests) == 1 {
			state = out.Requests[0]
		}
		if state.Status == providers.StateGranted || state.Status == providers.StateRefused || time.Now().After(end) || ctx.Err() != nil {
			break
		}
	}
	id := c.theirs()
	s := c.call(ctx, getStatus, askFor([]string{id}))
	if state.Status != providers.StateGranted {
		return s.row(check.Wrong, expected, fmt.Sprintf("%s after %s: %s", state.Status, c.patience, state.Message),
			"answer each machine with machineId, name and result; succeed once it can be used")
	}
	c.machine = &machineInput{Name: state.Instances[0].Name, ID: state.Instances[0].ID}
	return c.judgeMachine(s, id)
}

func (c *checking) judgeMachine(s said, id string) check.Row {
	const expected = "one machine with machineId, name, result and launchtime"
	entries := readStatus(s.docs, []string{id})
	i := slices.IndexFunc(entries, func(e requestEntry) bool { return e.id == id })
	if i < 0 {
		return s.row(check.Warning, expected, "no answer to a second question", "answer as long as the machine is there")
	}
	var missing []string
	for _, m := range entries[i].machines {
		for what, absent := range map[string]bool{"machineId": m.id == "", "name": m.name == "", "result": m.result == "", "launchtime": m.launched == 0} {
			if absent {
				missing = append(missing, what)
			}
		}
	}
	slices.Sort(missing)
	switch {
	case len(entries[i].machines) != 1:
		return s.row(check.Warning, expected, fmt.Sprintf("%d machines", len(entries[i].machines)), "make as many as were asked for; more go back at once")
	case len(missing) > 0:
		return s.row(check.Warning, expected, "without "+strings.Join(missing, ", "), "give all of them, launchtime as seconds since 1970")
	}
	return s.orForm(getStatus)
}

// theirs is the plug-in's id of our request.
func (c *checking) theirs() string {
	s, err := loadState(c.a.spec.State, c.a.spec.Name)
	if err != nil || s.Requests[c.id] == nil || len(s.Requests[c.id].Theirs) == 0 {
		return ""
	}
	return s.Requests[c.id].Theirs[0].ID
}

func (c *checking) bothStatus(ctx context.Context) check.Row {
	if c.machine == nil {
		return skipped("no machine was got")
	}
	ids := []string{noSuch, c.theirs()}
	s := c.call(ctx, getStatus, askFor(ids))
	if !slices.ContainsFunc(readStatus(s.docs, ids), func(e requestEntry) bool { return e.id == ids[1] && len(e.machines) > 0 }) {
		return s.row(check.Warning, "an answer for the known one in any case", "none", "let one bad id not void the others; else each is asked for alone, which is slow")
	}
	return s.orForm(getStatus)
}

func (c *checking) notWanted(ctx context.Context) check.Row {
	if c.machine == nil || !c.fresh {
		return skipped("no machine was got, or the work folder is in use")
	}
	return c.noneWanted(ctx, []machineInput{*c.machine}, check.Wrong, "name a machine only if it is gone or must go: its jobs are taken off it")
}

func (c *checking) goes(ctx context.Context) check.Row {
	const expected = "a requestId whose status says succeed for the machine, which is not shown any more afterwards"
	if !c.asked() {
		return skipped("nothing was got")
	}
	back := providers.ReturnOut{}
	for end := time.Now().Add(c.patience); ; c.pause(ctx) {
		back, _ = c.a.Return(ctx, providers.ReturnIn{RequestID: c.id, Units: 1})
		if back.Status == providers.StatusOK || time.Now().After(end) {
			break
		}
	}
	if back.Status != providers.StatusOK {
		c.stuck = true
		return check.Row{
			Verdict: check.Wrong, Expected: expected, Found: fmt.Sprintf("%s after %s: %s", back.Status, c.patience, back.Message),
			Mend: "end the machine by hand; then let its request show it as failed, or no longer",
		}
	}
	return check.Row{Verdict: check.OK}
}

func (c *checking) twice(ctx context.Context) check.Row {
	if c.machine == nil || c.stuck {
		return skipped("no machine was returned")
	}
	s := c.call(ctx, returnMachines, machinesInput{[]machineInput{*c.machine}})
	if s.run.Err != nil || len(s.docs) == 0 || s.run.Exit != 0 {
		return s.row(check.Warning, "success: what is gone is returned", s.why(returnMachines), "answer a second return of a machine like the first")
	}
	return s.orForm(returnMachines)
}

// CheckSpec is a spec as checks need it: brisk, and of a plug-in that nobody has configured yet.
func CheckSpec(scripts string, flavour Flavour) Spec {
	return Spec{
		Name: "check", Scripts: scripts, Flavour: flavour,
		PollInterval: 5 * time.Second, Settle: time.Minute, Terms: Terms{Most: 1},
	}
}

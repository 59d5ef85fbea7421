package dev

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	tea "charm.land/bubbletea/v2"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/plain"
)

// screen shows the cluster while the story runs.
type screen interface {
	draw(snapshot)
	close() error
}

func (f *farm) newScreen(ctx context.Context) screen {
	if !f.Live {
		return &lines{out: f.Out}
	}
	s := &live{done: make(chan error, 1)}
	s.program = tea.NewProgram(model{}, tea.WithContext(ctx), tea.WithOutput(f.Out), tea.WithInput(nil), tea.WithoutSignalHandler())
	go func() {
		_, err := s.program.Run()
		s.done <- err
	}()
	return s
}

// live redraws one picture in place.
type live struct {
	program *tea.Program
	done    chan error
}

func (l *live) draw(s snapshot) { l.program.Send(s) }

func (l *live) close() error {
	l.program.Quit()
	if err := <-l.done; err != nil {
		return fmt.Errorf("live view: %w", err)
	}
	return nil
}

// model holds the picture for bubbletea, and the terminal's size.
type model struct {
	last          snapshot
	width, height int
}

func (m model) Init() tea.Cmd { return nil }

func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case snapshot:
		m.last = msg
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	}
	return m, nil
}

func (m model) View() tea.View {
	if m.last.status.Now == 0 {
		return tea.NewView("")
	}
	return tea.NewView(fit(plain.Lines(picture(m.last)), m.width, m.height))
}

// fit cuts a picture to the terminal, and says where lines are left out.
func fit(picture string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(picture, "\n"), "\n")
	if most := height - 1; height > 0 && len(lines) > most {
		left := len(lines) - most + 1
		lines = append(lines[:most-1], fmt.Sprintf("… %d more lines", left))
	}
	for i, line := range lines {
		if width > 0 {
			lines[i] = clip(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

// lines prints a line whenever something worth one changed; for pipes and logs.
type lines struct {
	out  io.Writer
	last string
}

func (l *lines) draw(s snapshot) {
	var parts []string
	for _, r := range s.status.Resources {
		parts = append(parts, fmt.Sprintf("%s total %d = %d owned + %d borrowed, %d requested, %d in use, %d idle", r.Name, r.Total, r.Owned, r.Borrowed, r.Requested, r.InUse, r.Idle))
	}
	parts = append(parts, fmt.Sprintf("hosts %d up, %d coming, %d leaving", up(s), inState(s, cluster.HostRequested, cluster.HostExpected), inState(s, cluster.HostDraining, cluster.HostLeaving)))
	j := s.status.Jobs
	line := fmt.Sprintf("%s; jobs %d waiting, %d running, %d done", strings.Join(parts, "; "), j.Waiting, j.Running, j.Done)
	if line != l.last {
		fmt.Fprintf(l.out, "%s  %s\n", s.status.Now.Clock(), plain.Line(line))
		l.last = line
	}
}

func (l *lines) close() error { return nil }

// picture draws the cluster: resources, loans and jobs, each as a table.
func picture(s snapshot) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n\n", s.status.Now.Clock())
	fmt.Fprintln(w, "RESOURCE\tTOTAL\tOWNED\tBORROWED\tREQUESTED\tIN USE\tIDLE\tIDLE SINCE\t")
	for _, r := range s.status.Resources {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", r.Name, r.Total, r.Owned, r.Borrowed, r.Requested, r.InUse, r.Idle, r.IdleSince.Clock(), bar(r.InUse, r.Total))
	}
	fmt.Fprintln(w, "\nLOAN\tSTATE\tBORROWED\tGOING BACK\tNEXT STEP")
	for _, l := range s.loans {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\n", l.ID, l.State, l.Borrowed, l.Fenced, nextStep(l, s.status.Now))
	}
	fmt.Fprintln(w, "\nHOST\tSTATE\tCPUS\tJOBS\tNEXT STEP")
	for _, h := range s.status.Hosts {
		if h.Elastic == nil {
			fmt.Fprintf(w, "%s\towned\t%d\t%d\t\n", h.Name, h.CPUs, h.Jobs)
		}
	}
	for _, h := range s.hosts {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\n", h.ID, h.State, h.CPUs, jobsOn(s, h), hostStep(s, h))
	}
	_ = w.Flush()
	fmt.Fprintln(w, "\nJOB\tSTATE\tTOKENS\tSINCE\tWHY")
	for _, j := range s.jobs {
		if j.State.Ended() {
			continue
		}
		at := j.Submitted
		if j.State == cluster.JobRunning {
			at = j.Started
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\n", j.ID, j.State, j.Tokens[resource], at.Clock(), clip(j.Why, 80))
	}
	_ = w.Flush()
	c := s.status.Jobs
	fmt.Fprintf(&b, "\n%d waiting, %d running, %d done, %d failed\n", c.Waiting, c.Running, c.Done, c.Failed)
	return b.String()
}

// bar draws how many of a total are in use.
func bar(used, total int64) string {
	const most = 40
	if total > most || used > total {
		return ""
	}
	return strings.Repeat("█", int(used)) + strings.Repeat("░", int(total-used))
}

// nextStep says what a loan does next, and when.
func nextStep(l cluster.Loan, now cluster.Time) string {
	switch {
	case l.State == cluster.LoanRequested:
		return l.Provider + " answers"
	case l.Fenced > 0:
		return l.Provider + " confirms the return"
	case now < l.HoldUntil:
		return l.HoldUntil.Clock() + "  minimum hold is over"
	}
	return l.AskAgain.Clock() + "  asks for what lies idle"
}

// hostStep says what a host does next, and when.
func hostStep(s snapshot, h cluster.ElasticHost) string {
	switch {
	case h.State == cluster.HostRequested:
		return h.Provider + " answers"
	case h.State == cluster.HostExpected:
		return h.JoinBy.Clock() + "  must have joined"
	case h.State == cluster.HostLeaving:
		return h.Provider + " takes it back"
	case h.State == cluster.HostDraining:
		return "its last job ends"
	case s.status.Now < h.HoldUntil:
		return h.HoldUntil.Clock() + "  minimum hold is over"
	}
	for _, up := range s.status.Hosts {
		if up.ID == h.ID && up.IdleSince > 0 {
			return up.IdleSince.Add(h.IdleTime).Clock() + "  has been idle long enough"
		}
	}
	return ""
}

func jobsOn(s snapshot, h cluster.ElasticHost) (n int64) {
	for _, up := range s.status.Hosts {
		if up.ID == h.ID {
			n = up.Jobs
		}
	}
	return n
}

func up(s snapshot) (n int) {
	for _, h := range s.status.Hosts {
		if h.Up {
			n++
		}
	}
	return n
}

func inState(s snapshot, states ...cluster.HostState) (n int) {
	for _, h := range s.hosts {
		if slices.Contains(states, h.State) {
			n++
		}
	}
	return n
}

func clip(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

package report

import (
	"fmt"
	"regexp"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// story is one of the worst waits as the page tells it.
type story struct {
	Job, Waited, Facts string
	Lines              []storyLine
}

// storyLine is a line of it; Again says how often the like was so after it.
type storyLine struct{ At, After, Why, Again string }

// Limits of the stories on a page: of a long one the first and the last lines are told.
const (
	mostStories = 10
	firstLines  = 15
	lastLines   = 10
)

func stories(r *simulation.Result) []story {
	all, jobs := []story{}, jobsOf(r)
	for _, s := range r.Worst[:min(len(r.Worst), mostStories)] {
		if s.Job < 0 || s.Job >= len(jobs) {
			continue
		}
		j := &jobs[s.Job]
		all = append(all, story{Job: label(j), Waited: short(s.Waited), Facts: facts(j, &r.Outcomes[s.Job]), Lines: middleLeftOut(told(s.Lines, j.Submit))})
	}
	return all
}

// digits are what two reasons may differ in and still be alike.
var digits = regexp.MustCompile(`[0-9]+`)

// told puts lines together that follow each other and differ in numbers only.
func told(lines []simulation.StoryLine, submit cluster.Time) (all []storyLine) {
	for i := 0; i < len(lines); {
		kind, last := digits.ReplaceAllString(lines[i].Why, "0"), i
		for last+1 < len(lines) && digits.ReplaceAllString(lines[last+1].Why, "0") == kind {
			last++
		}
		line := storyLine{At: moment(lines[i].At), After: "+" + short(lines[i].At.Sub(submit)), Why: lines[i].Why}
		if last > i {
			line.Again = fmt.Sprintf("and %s like it with other numbers, until %s", plural(int64(last-i), "more reason"), moment(lines[last].At))
		}
		all = append(all, line)
		i = last + 1
	}
	return all
}

func middleLeftOut(lines []storyLine) []storyLine {
	out := len(lines) - firstLines - lastLines
	if out <= 1 {
		return lines
	}
	short := append([]storyLine{}, lines[:firstLines]...)
	short = append(short, storyLine{Again: fmt.Sprintf("%d more lines are left out here", out)})
	return append(short, lines[len(lines)-lastLines:]...)
}

// facts says whose the job is, what it asks for, and what became of it.
func facts(j *trace.Job, o *simulation.Outcome) string {
	parts := []string{}
	if s := j.Shape; s != nil {
		parts = append(parts, "queue "+named(s.Queue, noQueue), "user "+named(s.User, "(none)"), plural(procs(j), "processor"))
		for _, name := range s.TokenNames() {
			parts = append(parts, fmt.Sprintf("%d of %s", s.Tokens[name], name))
		}
	}
	parts = append(parts, "submitted "+moment(j.Submit))
	if started(o.State) {
		parts = append(parts, "started "+moment(o.Start))
	}
	if ended(o.State) {
		parts = append(parts, "ran "+short(o.End.Sub(o.Start)))
	}
	return strings.Join(append(parts, stateName(o.State)), ", ")
}

package simulation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// tale is a scenario as its file has it: a farm, and all that happens to it from outside.
type tale struct {
	// Shows says what the scenario is for.
	Shows string `json:"shows"`
	// Begins is when the first job is submitted; a Monday unless given.
	Begins cluster.Time `json:"begins,omitempty"`
	// SessionInterval is 1m unless given.
	SessionInterval cluster.Duration         `json:"session_interval,omitempty"`
	Resources       []cluster.SharedResource `json:"resources,omitempty"`
	Rules           taleRules                `json:"hosts,omitzero"`
	Policy          scheduling.Policy        `json:"policy,omitzero"`
	Thresholds      []scheduling.Threshold   `json:"thresholds,omitempty"`
	Providers       []taleProvider           `json:"providers,omitempty"`
	Simulation      simulation.Settings      `json:"simulation"`
	Jobs            []taleJob                `json:"jobs"`
	// Restarts are when the controller is started anew on its store.
	Restarts []cluster.Duration `json:"restarts,omitempty"`
	// Expect are all changes, to the second after the beginning.
	Expect []string `json:"expect"`
	// Waiting is how many jobs still wait when all is over.
	Waiting int `json:"waiting,omitempty"`
	// Apart are outcomes that the simulator alone can have: the builtin backend has no such jobs.
	Apart string `json:"apart,omitempty"`
}

// usually is when scenarios begin: on a Monday.
const usually = cluster.Time(1_767_571_200_000)

// taleRules are those for hosts, which are the default ones where they are not given.
type taleRules cluster.HostRules

func (r *taleRules) UnmarshalJSON(data []byte) error {
	rules := cluster.DefaultHostRules()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&rules)
	*r = taleRules(rules)
	return err
}

type taleProvider struct {
	Name        string           `json:"name"`
	SurveyEvery cluster.Duration `json:"survey_every,omitempty"` // 15m unless given
	OrphanGrace cluster.Duration `json:"orphan_grace,omitempty"` // 10m unless given
}

// taleJob is a job, or some that are alike and come together.
type taleJob struct {
	At    cluster.Duration `json:"at"`
	Count int64            `json:"count,omitempty"`
	cluster.JobSpec
	Run       cluster.Duration `json:"run"`
	TokensFor cluster.Duration `json:"tokens_for,omitempty"`
}

func readTale(t *testing.T, file string) tale {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := parseTale(data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return tl
}

func parseTale(data []byte) (tl tale, err error) {
	var plain any
	if err := yaml.Unmarshal(data, &plain); err != nil {
		return tl, err
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return tl, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&tl); err != nil {
		return tl, err
	}
	tl.complete()
	return tl, tl.check()
}

// complete fills in what is not given.
func (tl *tale) complete() {
	if tl.Begins == 0 {
		tl.Begins = usually
	}
	if tl.SessionInterval == 0 {
		tl.SessionInterval = cluster.Minute
	}
	if tl.Rules.IdleTime == 0 {
		tl.Rules = taleRules(cluster.DefaultHostRules())
	}
	for i := range tl.Providers {
		p := &tl.Providers[i]
		if p.SurveyEvery == 0 {
			p.SurveyEvery = 15 * cluster.Minute
		}
		if p.OrphanGrace == 0 {
			p.OrphanGrace = 10 * cluster.Minute
		}
	}
	if tl.Simulation.Steps == (simulation.Steps{}) {
		tl.Simulation.Steps = simulation.Steps{Controller: 20, News: 50, Stop: 2 * cluster.Second}
	}
	for i := range tl.Simulation.Providers {
		if answer := &tl.Simulation.Providers[i].Answer; answer.Typical() == 0 {
			answer.Fixed = 120
		}
	}
}

func (tl *tale) check() error {
	return tl.farm().Validate("simulation").Err()
}

func (tl *tale) farm() simulation.Farm {
	f := simulation.Farm{
		Name: "east", SessionInterval: tl.SessionInterval, Resources: tl.Resources, Rules: cluster.HostRules(tl.Rules), Policy: tl.Policy,
		Thresholds: tl.Thresholds, Settings: tl.Simulation,
	}
	for _, p := range tl.Providers {
		f.Providers = append(f.Providers, simulation.Provider(p))
	}
	return f
}

func (tl *tale) trace() *trace.Trace {
	tr := &trace.Trace{Source: "a scenario"}
	for i := range tl.Jobs {
		j := &tl.Jobs[i]
		spec := j.JobSpec
		spec.TimeLimit = 0
		shape := &trace.Shape{JobSpec: spec}
		for range max(j.Count, 1) {
			tr.Jobs = append(tr.Jobs, trace.Job{
				ID: int64(len(tr.Jobs)) + 1, Submit: tl.Begins.Add(j.At), Run: j.Run, Limit: j.TimeLimit, Waited: -1, TokensFor: j.TokensFor, Shape: shape,
			})
		}
	}
	tr.Sort()
	return tr
}

// tales are the scenarios by the names of their files.
func tales(t *testing.T) (names []string, all map[string]tale) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "identity", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scenarios: %v", err)
	}
	all = map[string]tale{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		names = append(names, name)
		all[name] = readTale(t, file)
	}
	return names, all
}

// changeLines are changes as they are compared: to the millisecond.
func changeLines(changes []simulation.Change) (lines []string) {
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%s %s %s > %s: %s", c.At, c.Subject, c.Before, c.After, c.Cause))
	}
	return lines
}

// shortLines are changes as scenarios expect them: to the second after the beginning.
func shortLines(began cluster.Time, changes []simulation.Change) (lines []string) {
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%s %s %s>%s", seconds(c.At.Sub(began).Std()), c.Subject, c.Before, c.After))
	}
	return lines
}

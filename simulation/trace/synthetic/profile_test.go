package synthetic

import (
	"regexp"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
)

const smallProfile = `jobs_per_day: 100
needs:
  - name: test
    weight: 3
    team: verification
    together: 30
    run: {median: 5m}
    asks:
      - {tokens: {vcs: 1}}
`

func TestWhatAProfileLeavesOutHasItsUsualValue(t *testing.T) {
	p, err := ReadProfile("p.yaml", []byte(smallProfile))
	if err != nil {
		t.Fatal(err)
	}
	n := p.Needs[0]
	if n.Users != 10 || n.MostTogether != 300 || n.Otherwise != 1 || n.WeekendPercent != 100 || n.Run.Spread != 2 || n.Asks[0].CPUs != 1 || n.Asks[0].Weight != 1 {
		t.Errorf("the need is %+v", n)
	}
	made := generate(t, Options{Kind: EDA, Profile: p, Span: 100 * dayLength})
	if len(made.Jobs) < 8000 || len(made.Jobs) > 12_000 {
		t.Errorf("%d jobs come in 100 days", len(made.Jobs))
	}
	if s := made.Jobs[0].Shape; s.Tokens["vcs"] != 1 || s.CPUs != 1 || !strings.HasPrefix(s.User, "verification") {
		t.Errorf("a job is %+v", s)
	}
}

func TestTheBuiltInProfileReadsAsAnOwnOneWould(t *testing.T) {
	p, err := ReadProfile("eda.yaml", EDAProfile())
	if err != nil || len(p.Needs) != 7 || p.Needs[0].Run.Median != 4*cluster.Minute || p.Needs[1].WeekendPercent != 10 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAWrongProfileIsRefusedWithFileLineKeyAndRemedy(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"weight: 3", "weight: 0", `^p.yaml:4: needs\[0\].weight: 0 is not possible; write a whole number from 1 to 1000000$`},
		{"weight: 3", "weight: many", `^p.yaml:4: "many" is of the wrong kind; write a whole number$`},
		{"weight: 3", "wait: 3", `^p.yaml:4: needs\[0\].wait: there is no such key; remove it; known here are name, weight, `},
		{"{median: 5m}", "{median: 5}", `^p.yaml:7: .*duration "5" is not a number with a unit`},
		{"{median: 5m}", "{spread: 2}", `^p.yaml:7: needs\[0\].run.median: 0s is not possible; write a length of time from 1s on`},
		{"{median: 5m}", "{median: 5m, spread: 0.5}", `^p.yaml:7: needs\[0\].run.spread: 0.5 is not possible`},
		{"{median: 5m}", "{median: 5m, shortest: 6m}", `^p.yaml:7: needs\[0\].run.shortest: 6m0s is not possible`},
		{"team: verification", "team: not one", `^p.yaml:5: needs\[0\].team: name "not one" is not valid`},
		{"team: verification", `hours: [{from: "9:00", to: "18:00", weight: 1}]`, `p.yaml:5: needs\[0\].hours\[0\].from: "9:00" is not a half hour of the day; write a time such as "09:30"`},
		{"team: verification", `hours: [{from: "09:00", to: "18:15", weight: 1}]`, `p.yaml:5: needs\[0\].hours\[0\].to: "18:15" is not`},
		{"together: 30", "together: 30\n    together: 40", `^p.yaml:7: mapping key "together" already defined at line 6`},
		{"{vcs: 1}", "{vcs: 0}", `^p.yaml:9: needs\[0\].asks\[0\].tokens.vcs: 0 is not possible`},
		{"{tokens: {vcs: 1}}", "{alternatives: [{}]}", `^p.yaml:9: needs\[0\].asks\[0\].alternatives\[0\]: it has no tokens`},
		{"{tokens: {vcs: 1}}", "{cpus: 0}", `^p.yaml:9: needs\[0\].asks\[0\].cpus: 0 is not possible`},
		{"{tokens: {vcs: 1}}", "{constraint: 'a &'}", `^p.yaml:9: needs\[0\].asks\[0\].constraint: `},
		{"      - {tokens: {vcs: 1}}\n", "", `^p.yaml:8: needs\[0\].asks: there are none; write at least one`},
		{"jobs_per_day: 100", "jobs_per_day: 1.5", `^p.yaml:1: jobs_per_day: 1.5 is not a whole number; write a whole number$`},
		{"jobs_per_day: 100", "---", `^p.yaml:2: jobs_per_day: 0 is not possible`},
		{"- name: test", "- &n\n    <<: *n\n    name: test", `contains itself`},
		{"needs:", "needs: {", `^p.yaml:\d+: did not find expected`},
		{smallProfile, "", `^p.yaml:1: there are no keys; begin with jobs_per_day and needs$`},
		{smallProfile, "- a", `^p.yaml:1: there are no keys`},
		{smallProfile, smallProfile + "---\na: 1\n", `^p.yaml:10: a second document begins; keep one$`},
		{smallProfile, strings.Replace(smallProfile, "needs:\n", "needs:\n  - {name: test, weight: 1, team: a, run: {median: 1m}, asks: [{}]}\n", 1), `^p.yaml:4: needs\[1\].name: there are two of name "test"`},
	} {
		text := strings.Replace(smallProfile, c.from, c.to, 1)
		if text == smallProfile {
			t.Fatalf("%q changes nothing", c.from)
		}
		if _, err := ReadProfile("p.yaml", []byte(text)); err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%q is answered by %v, want %s", c.to, err, c.want)
		}
	}
}

func TestHoursMayGoOverMidnight(t *testing.T) {
	n := Need{Hours: []Hours{{"22:00", "02:00", 1}}, WeekendPercent: 100}
	c := n.cycle()
	draw := seed(1).of(forGap, 1)
	for range 1000 {
		if hour := c.time(draw.uniform() * float64(weekLength)).Std().Hour(); hour >= 2 && hour < 22 {
			t.Fatalf("something comes at %d o'clock", hour)
		}
	}
}

func FuzzProfilesAreReadOrRefused(f *testing.F) {
	f.Add([]byte(smallProfile))
	f.Add(EDAProfile())
	f.Add([]byte("needs: &a [*a]"))
	f.Add([]byte("needs: [{<<: {name: x}, hours: {}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadProfile("p.yaml", data)
		if err != nil {
			return
		}
		if _, err := Generate(Options{Kind: EDA, Profile: p, Jobs: 50}); err != nil {
			t.Fatalf("a profile that was read is refused: %v", err)
		}
	})
}

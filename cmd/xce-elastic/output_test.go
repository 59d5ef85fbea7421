package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
)

func TestSentencesOfATableAreWholeWhereThereIsNoTerminal(t *testing.T) {
	table := newTable(0)
	table.sentence(wrapped, "LOAN", "WHY")
	table.sentence(wrapped, "l-1", strings.Repeat("word ", 60))
	table.sentence(cut, "l-22", "a\x00b")
	want := "LOAN  WHY\nl-1   " + strings.TrimSpace(strings.Repeat("word ", 60)) + "\nl-22  a·b\n"
	if got := table.text(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestSentencesOfATableFitTheTerminal(t *testing.T) {
	table := newTable(40)
	table.sentence(wrapped, "JOB", "NAME", "WHY")
	table.sentence(wrapped, 1, "ä", "needs 5 vcs; 2 free, 3 to be borrowed from pool")
	table.sentence(cut, 22, "bb", "needs 5 vcs; 2 free, 3 to be borrowed from pool")
	table.row("and 1 more")
	want := strings.Join([]string{
		"JOB  NAME  WHY",
		"1    ä     needs 5 vcs; 2 free, 3 to be",
		"           borrowed from pool",
		"22   bb    needs 5 vcs; 2 free, 3 to ...",
		"and 1 more\n",
	}, "\n")
	if got := table.text(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestASentenceForWhichThereIsNoRoomIsBeneathItsRow(t *testing.T) {
	table := newTable(30)
	table.sentence(cut, "JOB", "A LONG NAME", "WHY")
	table.sentence(cut, 1, "x", "needs 5 vcs; 2 free, 3 to be borrowed")
	table.sentence(wrapped, 2, "x", "needs 5 vcs; 2 free, 3 to be borrowed")
	table.sentence(cut, 3, "a long name that has no room either", "")
	want := strings.Join([]string{
		"JOB  A LONG NAME",
		"    WHY",
		"1    x",
		"    needs 5 vcs; 2 free, 3 ...",
		"2    x",
		"    needs 5 vcs; 2 free, 3 to",
		"    be borrowed",
		"3    a long name that has no room either\n",
	}, "\n")
	if got := table.text(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestParagraphsHaveEightyColumnsWhereThereIsNoTerminal(t *testing.T) {
	text := "needs " + strings.Repeat("12 ", 60) + strings.Repeat("x", 90)
	for terminal, most := range map[int]int{0: 80, 50: 50, 150: 150} {
		table := newTable(terminal)
		table.paragraph(2, text)
		got := table.text()
		if strings.Join(strings.Fields(got), " ") != text {
			t.Errorf("words are lost or broken:\n%s", got)
		}
		longest := 0
		for line := range strings.Lines(got) {
			if !strings.Contains(line, "xx") {
				longest = max(longest, len(line)-1)
			}
		}
		if longest > most || longest < most-4 || !strings.HasPrefix(got, "  needs") || !strings.Contains(got, "\n    12") {
			t.Errorf("with a terminal of %d, %d columns are used:\n%s", terminal, longest, got)
		}
	}
}

func TestTimesInTablesSayTheirZone(t *testing.T) {
	if got := []string{stamp(0), stamp(1_767_258_061_999)}; got[0] != "-" || got[1] != "Jan 1 09:01:01 UTC" {
		t.Errorf("got %q", got)
	}
}

func TestWhatIsNoTerminalHasNoWidth(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := []int{terminalWidth(file), terminalWidth(&strings.Builder{})}; got[0] != 0 || got[1] != 0 {
		t.Errorf("got %d", got)
	}
}

func TestQueuesAreListedWhereAJobHasOne(t *testing.T) {
	list := func(jobs ...cluster.Job) string {
		table := newTable(0)
		jobTable(table, jobs)
		return table.text()
	}
	plain, queued := cluster.Job{ID: 1, User: "ann"}, cluster.Job{ID: 2, User: "ann", JobSpec: cluster.JobSpec{Queue: "night"}}
	if got := list(plain); strings.Contains(got, "QUEUE") {
		t.Errorf("got\n%s", got)
	}
	if got := list(plain, queued); !strings.Contains(got, "USER  QUEUE  TOKENS") || !strings.Contains(got, "ann   -      -") || !strings.Contains(got, "ann   night  -") {
		t.Errorf("got\n%s", got)
	}
}

func TestReasonsOfAnotherSchedulerAreListedBesideOurs(t *testing.T) {
	table := newTable(0)
	jobTable(table, []cluster.Job{
		{ID: 3, User: "ann", Why: "needs 6 vcs", Told: &cluster.Told{Name: "3_[1-9]", Reason: "Licenses"}},
		{ID: 4, User: "ann", State: cluster.JobRunning, Told: &cluster.Told{}},
	})
	lines := strings.Split(table.text(), "\n")
	for i, want := range []string{`^JOB +NAME .*ENDED  REASON +WHY`, `^3_\[1-9\] .* Licenses  needs 6 vcs`, `^4 +- +running .* -$`} {
		if !regexp.MustCompile(want).MatchString(strings.TrimRight(lines[i], " ")) {
			t.Errorf("line %d is %q, want %s", i, lines[i], want)
		}
	}
}

func TestMisspeltCommandsAreRefusedWithThoseLikeThem(t *testing.T) {
	for want, line := range map[string]string{
		`^unknown command "sessoin" for "xce-elastic"; did you mean session\?$`:                            "sessoin",
		`^unknown command "isue" for "xce-elastic cert"; did you mean issue\?$`:                            "cert isue",
		`^unknown command "weather" for "xce-elastic"; .xce-elastic --help. lists`:                         "weather",
		"^write `xce-elastic explain job\\|loan\\|resource\\|host ID`, as in `xce-elastic explain job 17`": "explain job",
		"^write `xce-elastic return LOAN`, as in":                                                          "return",
		"^write `xce-elastic owned RESOURCE UNITS`, as in":                                                 "owned vcs --why x",
		"^write `xce-elastic provider check SCRIPT":                                                        "provider check",
		`^there is no command; write it behind --`:                                                         "submit",
		`^--state foo: there is no such state; write waiting, running, done, failed or timeout`:            "jobs --state foo",
		`^there is no flag -o here; use --out$`:                                                            "snapshot -o x",
		`^unknown flag: --bogus`:                                                                           "status --bogus",
		`^--policy: "lifo" is no order; write fcfs, easy or conservative`:                                  "dev --policy lifo",
	} {
		refuses(t, strings.Fields(line), want)
	}
}

package report

import (
	"fmt"
	"testing"

	"xce.internal/elastic/simulation"
)

func TestReasonsThatDifferInNumbersAreToldOnce(t *testing.T) {
	lines := []simulation.StoryLine{
		{At: epoch, Why: "at most 53248 MB left"},
		{At: epoch + 1000, Why: "at most 7 MB left"},
		{At: epoch + 2000, Why: "at most 8 MB left"},
		{At: epoch + 3000, Why: "2 of vcs are free"},
		{At: epoch + 4000, Why: "at most 9 MB left"},
	}
	got := told(lines, epoch-1000)
	want := []storyLine{
		{"2026-01-05 00:00:00", "+1s", "at most 53248 MB left", "and 2 more reasons like it with other numbers, until 2026-01-05 00:00:02"},
		{"2026-01-05 00:00:03", "+4s", "2 of vcs are free", ""},
		{"2026-01-05 00:00:04", "+5s", "at most 9 MB left", ""},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOfALongStoryTheBeginningAndTheEndAreTold(t *testing.T) {
	var lines []storyLine
	for i := range 100 {
		lines = append(lines, storyLine{Why: fmt.Sprint(i)})
	}
	got := middleLeftOut(lines)
	if len(got) != 26 || got[14].Why != "14" || got[15].Again != "75 more lines are left out here" || got[16].Why != "90" || got[25].Why != "99" {
		t.Errorf("%v", got)
	}
	if len(middleLeftOut(lines[:26])) != 26 || len(middleLeftOut(nil)) != 0 {
		t.Error("a short story is not told whole")
	}
}

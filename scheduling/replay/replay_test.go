package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/replay"
)

// of is a job that takes processors, in seconds.
func of(id, submit, run, estimate, procs int64) replay.Job {
	return replay.Job{
		ID: id, Submit: seconds(submit), Run: cluster.Duration(run * second), Estimate: cluster.Duration(estimate * second), Procs: procs,
	}
}

// starts are the seconds at which the jobs start, by place in the rows.
func starts(rows []replay.Row) string {
	var text []string
	for _, r := range rows {
		text = append(text, fmt.Sprintf("%d@%d", r.ID, int64(r.Start)/second))
	}
	return strings.Join(text, " ")
}

// Jobs 1 and 2 end at 10, long before their limits. Taken together they leave
// room for job 3; taken one by one, job 4 gets in between, since it would end
// before job 2 must.
func TestWhatEndsAtOneInstantEndsTogetherOrOneByOne(t *testing.T) {
	trace := replay.Trace{Jobs: []replay.Job{of(1, 0, 10, 30, 1), of(2, 0, 10, 30, 1), of(3, 1, 5, 5, 2), of(4, 2, 15, 15, 1)}}
	for mode, want := range map[replay.Mode]string{
		replay.Batch:      "1@0 2@0 3@10 4@15",
		replay.Sequential: "1@0 2@0 4@10 3@25",
	} {
		got := starts(replay.Run(trace, replay.OneHost(2), scheduling.Policy{Order: scheduling.EASY}, mode))
		if got != want {
			t.Errorf("%s: got %s, want %s", mode, got, want)
		}
	}
}

func TestJobsArriveInTheOrderOfTheirTimes(t *testing.T) {
	trace := replay.Trace{Jobs: []replay.Job{of(7, 5, 10, 10, 1), of(9, 0, 10, 10, 1), of(8, 5, 10, 10, 1)}}
	for _, mode := range modes {
		got := starts(replay.Run(trace, replay.OneHost(1), scheduling.Policy{}, mode))
		if want := "9@0 7@10 8@20"; got != want {
			t.Errorf("%s: got %s, want %s", mode, got, want)
		}
	}
}

func TestAJobThatRunsBeyondItsLimitKeepsItsPlace(t *testing.T) {
	trace := replay.Trace{Jobs: []replay.Job{of(1, 0, 20, 10, 1), of(2, 0, 5, 5, 1), of(3, 12, 0, 5, 1)}}
	for _, order := range orders {
		got := starts(replay.Run(trace, replay.OneHost(1), scheduling.Policy{Order: order}, replay.Batch))
		if want := "1@0 2@20 3@25"; got != want {
			t.Errorf("%s: got %s, want %s", order, got, want)
		}
	}
}

// Job 2 waits for job 1's token and lets job 3 pass. Job 4 is like job 2, but by
// then lacks cpus too; so job 5 must wait, as it would behind any that does.
func TestNobodyPassesTheSecondOfTwoLikeJobsWhereItLacksAHost(t *testing.T) {
	machine := replay.OneHost(5)
	machine.Resources = []scheduling.Resource{resource("vcs", 1)}
	trace := replay.Trace{Jobs: []replay.Job{of(1, 0, 10, 10, 1), of(2, 1, 10, 10, 3), of(3, 1, 20, 20, 2), of(4, 1, 10, 10, 3), of(5, 1, 10, 10, 1)}}
	for _, i := range []int{0, 1, 3} {
		trace.Jobs[i].Spec.Tokens = map[string]int64{"vcs": 1}
	}
	got := starts(replay.Run(trace, machine, scheduling.Policy{}, replay.Batch))
	if want := "1@0 3@1 2@10 4@20 5@21"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAJobThatNeverStartsHasNoRow(t *testing.T) {
	trace := replay.Trace{Jobs: []replay.Job{of(1, 0, 20, 20, 3), of(2, 0, 5, 5, 1)}}
	for _, order := range orders {
		for _, mode := range modes {
			got := starts(replay.Run(trace, replay.OneHost(2), scheduling.Policy{Order: order}, mode))
			if want := "2@0"; got != want {
				t.Errorf("%s %s: got %s, want %s", order, mode, got, want)
			}
		}
	}
}

func TestEveryElementOfAnArrayHasARow(t *testing.T) {
	array := of(1, 0, 10, 10, 1)
	array.Spec.Array = 3
	got := starts(replay.Run(replay.Trace{Jobs: []replay.Job{array}}, replay.OneHost(2), scheduling.Policy{}, replay.Batch))
	if want := "1@0 1@0 1@10"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRowsArePrintedByID(t *testing.T) {
	var out strings.Builder
	rows := []replay.Row{
		{ID: 12, Submit: seconds(5), Start: seconds(9), Run: cluster.Minute, Procs: 3, Estimate: cluster.Hour},
		{ID: 2, Submit: seconds(6), Start: seconds(7), Run: cluster.Second, Procs: 1, Estimate: cluster.Second},
	}
	if err := replay.Print(&out, rows); err != nil {
		t.Fatal(err)
	}
	if want := "2 6 7 1 1 1\n12 5 9 60 3 3600\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if rows[0].ID != 12 {
		t.Error("the rows of the caller were moved")
	}
}

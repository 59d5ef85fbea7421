package slurm

import (
	"slices"
	"strings"
	"testing"
)

// holds is a job that has so many units of foo.
func holds(units int64) Job {
	return aJob(func(j *Job) { j.State, j.Licences = "RUNNING", map[string]int64{"foo": units} })
}

func TestCountsThatAreNotWhatJobsAskForAreTold(t *testing.T) {
	two := []Job{holds(3), holds(2)}
	lost := []Job{holds(3), aJob(func(j *Job) { j.State = "RUNNING" })} // its row tells of no licence any more
	waits := append(slices.Clone(two), aJob(func(j *Job) { j.Licences = map[string]int64{"foo": 9} }))
	either := append(slices.Clone(two), aJob(func(j *Job) {
		j.State, j.Licences, j.AnyLicence = "RUNNING", map[string]int64{"foo": 1, "bar": 1}, true
	}))
	ending := []Job{holds(3), aJob(func(j *Job) { j.State, j.Licences = "COMPLETING", map[string]int64{"foo": 2} })}
	asleep := []Job{holds(3), aJob(func(j *Job) { j.State, j.Licences = "SUSPENDED", map[string]int64{"foo": 2} })}
	for name, c := range map[string]struct {
		jobs [2][]Job
		used [2]int64
		want string
	}{
		"as many":                                   {[2][]Job{two, two}, [2]int64{5, 5}, ""},
		"a reconfigure doubled what is used":        {[2][]Job{two, two}, [2]int64{10, 10}, "counts 10 tokens of licence foo as used, and the jobs that have hosts ask for 5: a job has lost its request, or is counted twice"},
		"a requeued job lost its request":           {[2][]Job{lost, lost}, [2]int64{5, 5}, "ask for 3: a job has lost its request"},
		"held tokens were forgotten":                {[2][]Job{two, two}, [2]int64{0, 0}, "it has forgotten some"},
		"a job started between two commands":        {[2][]Job{two, two}, [2]int64{8, 5}, ""},
		"and then another ended":                    {[2][]Job{two, two}, [2]int64{8, 3}, ""},
		"it is so for the first time":               {[2][]Job{two, two}, [2]int64{5, 10}, ""},
		"what waits holds nothing":                  {[2][]Job{waits, waits}, [2]int64{5, 5}, ""},
		"one that is ending, or suspended, holds":   {[2][]Job{ending, asleep}, [2]int64{5, 5}, ""},
		"which of two licences one has is unknown":  {[2][]Job{either, either}, [2]int64{6, 6}, ""},
		"the same with another number is still so":  {[2][]Job{two, two[:1]}, [2]int64{10, 5}, "counts 5 tokens of licence foo as used, and the jobs that have hosts ask for 3"},
		"more than jobs ask for where nothing runs": {[2][]Job{nil, nil}, [2]int64{2, 2}, "ask for 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var d drifts
			var said []string
			for i := range 2 {
				said = d.warnings([]string{"foo", "gone"}, c.jobs[i], map[string]Licence{"foo": {Total: 20, Used: c.used[i]}})
				if i == 0 && said != nil {
					t.Errorf("the first reading says %q", said)
				}
			}
			if text := strings.Join(said, " "); (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
}

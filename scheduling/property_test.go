package scheduling

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

// always checks that something holds for every session.
func always(t *testing.T, holds func(*rapid.T, Input, Result)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		holds(t, in, Run(in))
	})
}

func TestOrderOfTheInputMakesNoDifferenceToAByte(t *testing.T) {
	always(t, func(t *rapid.T, in Input, r Result) {
		shuffled := in
		shuffled.Hosts = rapid.Permutation(in.Hosts).Draw(t, "hosts")
		shuffled.Jobs = rapid.Permutation(in.Jobs).Draw(t, "jobs")
		shuffled.Offers = rapid.Permutation(in.Offers).Draw(t, "offers")
		shuffled.Resources = rapid.Permutation(in.Resources).Draw(t, "resources")
		for i := range shuffled.Resources {
			shuffled.Resources[i].Loans = rapid.Permutation(shuffled.Resources[i].Loans).Draw(t, "loans")
		}
		if want, got := encode(t, r), encode(t, Run(shuffled)); !bytes.Equal(want, got) {
			t.Fatalf("%s\nbecomes\n%s", want, got)
		}
	})
}

func TestTheInputIsLeftAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		before := encode(t, in)
		Run(in)
		if after := encode(t, in); !bytes.Equal(before, after) {
			t.Fatalf("%s\nbecomes\n%s", before, after)
		}
	})
}

func TestEveryJobStartsOrHasAReasonOnce(t *testing.T) {
	always(t, func(t *rapid.T, in Input, r Result) {
		seen := map[int64]int{}
		for _, s := range r.Starts {
			seen[s.Job]++
		}
		for _, u := range r.Unplaced {
			seen[u.Job]++
			if u.Code == "" || u.Why == "" {
				t.Fatalf("job %d waits without a reason", u.Job)
			}
		}
		for _, job := range in.Jobs {
			if seen[job.ID] != 1 {
				t.Fatalf("job %d appears %d times", job.ID, seen[job.ID])
			}
		}
		if len(seen) != len(in.Jobs) {
			t.Fatalf("%d jobs came of %d", len(seen), len(in.Jobs))
		}
	})
}

func TestStartsNeverExceedWhatIsThere(t *testing.T) {
	always(t, func(t *rapid.T, in Input, r Result) {
		after := started(in, r)
		for _, h := range after.Hosts {
			if h.CPUs < 0 || h.MemoryMB < 0 {
				t.Fatalf("%s is overfull: %+v", h.Name, h)
			}
		}
		for i, res := range after.Resources {
			taken := res.InUse > in.Resources[i].InUse
			if taken && res.InUse > res.Total-res.KeepBack {
				t.Fatalf("%d of %d %s are in use, %d are kept back", res.InUse, res.Total, res.Name, res.KeepBack)
			}
		}
	})
}

// A job that waits for tokens is never overtaken by one that needs them too.
func TestNobodyOvertakesForTokens(t *testing.T) {
	always(t, func(t *rapid.T, in Input, r Result) {
		placed := map[int64]bool{}
		for _, s := range r.Starts {
			placed[s.Job] = true
		}
		waited := map[string]int64{} // by resource, what earlier jobs lack beyond what is free
		for _, job := range newSession(in).queue {
			if placed[job.ID] {
				for name := range job.Tokens {
					if waited[name] > 0 {
						t.Fatalf("job %d overtakes one that lacks %d %s", job.ID, waited[name], name)
					}
				}
			}
			if i := slices.IndexFunc(r.Unplaced, func(u Unplaced) bool { return u.Job == job.ID }); i < 0 || r.Unplaced[i].Code == Never {
				continue
			}
			for name, units := range job.Tokens {
				i := slices.IndexFunc(in.Resources, func(r Resource) bool { return r.Name == name })
				res := started(in, r).Resources[i]
				if units > res.Total-res.InUse-res.KeepBack {
					waited[name] = units
				}
			}
		}
	})
}

func TestIdleIsWhatNobodyNeeds(t *testing.T) {
	always(t, func(t *rapid.T, in Input, r Result) {
		after := started(in, r)
		for _, res := range after.Resources {
			idle := r.Clocks[res.Name].Units()
			reserved := int64(0)
			for _, u := range r.Unplaced {
				if u.Code == WaitTokens || u.Code == WaitComing || u.Code == WaitBorrow {
					reserved += after.need(u.Job, res.Name)
				}
			}
			if idle > max(res.Total-res.InUse-res.KeepBack-reserved, 0) {
				t.Fatalf("%d %s idle, total %d, in use %d, kept back %d, reserved %d", idle, res.Name, res.Total, res.InUse, res.KeepBack, reserved)
			}
			i := slices.IndexFunc(r.Idle, func(s cluster.IdleSupply) bool { return s.Resource == res.Name })
			if (i >= 0) != (idle > 0) || i >= 0 && (r.Idle[i].Units != idle || r.Idle[i].Since != r.Clocks[res.Name].Since()) {
				t.Fatalf("clock %v of %s, idle supply %+v", r.Clocks[res.Name], res.Name, r.Idle)
			}
		}
	})
}

func encode(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (in Input) need(job int64, resource string) int64 {
	i := slices.IndexFunc(in.Jobs, func(j cluster.Job) bool { return j.ID == job })
	return in.Jobs[i].Tokens[resource]
}

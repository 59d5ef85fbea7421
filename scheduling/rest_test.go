package scheduling

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
)

func TestARestIsASessionWhereNobodyWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := everything.input(t)
		jobs := in.Jobs
		in.Jobs = nil
		rests, decides := New(in), New(in)
		both := func(do func(*Engine)) { do(rests); do(decides) }
		at := in.Now
		for range 4 {
			rests.Rest(at)
			decides.Decide(at)
			sameIdle(t, in, rests, decides)
			if rests.IdleChanges() != decides.IdleChanges() {
				t.Fatalf("%d changes of what lies idle, not %d", rests.IdleChanges(), decides.IdleChanges())
			}
			at = at.Add(30 * cluster.Second)
			both(drawChange(t, in))
		}
		both(func(e *Engine) {
			for _, job := range jobs {
				e.Submit(job)
			}
		})
		if rested, decided := encode(t, rests.Session(at)), encode(t, decides.Session(at)); !bytes.Equal(rested, decided) {
			t.Fatalf("%s\nbecomes after rests\n%s", decided, rested)
		}
	})
}

// drawChange draws something by which other things lie idle than before.
func drawChange(t *rapid.T, in Input) func(*Engine) {
	kind, n := rapid.IntRange(0, 4).Draw(t, "change"), rapid.IntRange(0, 3).Draw(t, "of")
	switch {
	case kind == 0 && n < len(in.Running):
		return func(e *Engine) { e.End(in.Running[n].ID, 0) }
	case kind == 1 && n < len(in.Hosts):
		return func(e *Engine) { e.Leave(in.Hosts[n].Name) }
	case kind == 2 && n < len(in.Hosts):
		return func(e *Engine) { e.Close(in.Hosts[n].Name, "drained") }
	case kind == 3 && n < len(in.Hosts):
		return func(e *Engine) { e.Join(in.Hosts[n]) }
	case kind == 4 && n < len(in.Resources):
		r := in.Resources[n]
		return func(e *Engine) { e.SetResource(r.Name, r.Total+int64(n)-1, r.Loans, r.Idle) }
	}
	return func(*Engine) {}
}

// sameIdle checks that two engines have found the same idle.
func sameIdle(t *rapid.T, in Input, a, b *Engine) {
	t.Helper()
	for _, r := range in.Resources {
		if x, y := encode(t, a.IdleClock(r.Name)), encode(t, b.IdleClock(r.Name)); !bytes.Equal(x, y) {
			t.Fatalf("%s lies idle as %s, not %s", r.Name, x, y)
		}
	}
	for _, h := range in.Hosts {
		if x, y := a.IdleSince(h.Name), b.IdleSince(h.Name); x != y {
			t.Fatalf("%s lies idle since %d, not %d", h.Name, x, y)
		}
	}
}

package snapshot

import (
	"reflect"
	"strings"
	"testing"
)

func hashed(t *testing.T, s Snapshot, salt string) Snapshot {
	t.Helper()
	h, err := Hash(s, strings.NewReader(salt))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const salt = "0123456789abcdef0123456789abcdef"

func TestAHashedSnapshotTellsNoNames(t *testing.T) {
	text := file(t, "full.json")
	h := written(t, hashed(t, taken(t, text), salt))
	for _, name := range []string{"ann", "bob", `"vcs",`, "-R", "seed", "mpi", "sweep", "regress", "chip", "home", "disk"} {
		if !strings.Contains(text, name) {
			t.Fatalf("%q is not in the snapshot, so that this shows nothing", name)
		}
		names := strings.ReplaceAll(h, `"provider": "cloud"`, "")
		names = strings.ReplaceAll(names, `"resource": "vcs",`, "")
		names = strings.ReplaceAll(names, `"name": "vcs",`, "")
		if strings.Contains(names, name) {
			t.Errorf("%q is told still:\n%s", name, h)
		}
	}
}

func TestAHashedSnapshotIsTheSameOtherwise(t *testing.T) {
	s := taken(t, file(t, "full.json"))
	before := written(t, s)
	h := taken(t, written(t, hashed(t, s, salt)))
	if after := written(t, s); after != before {
		t.Errorf("the snapshot itself was changed to\n%s", after)
	}
	a, b := s.State.Jobs[1], h.State.Jobs[1]
	if len(b.Command) != 2 || b.Why != "" || h.State.Resources[0].Loans[0].Reason+h.State.Resources[0].Loans[0].Why != "" || h.State.Hosts[3].Closed == "" {
		t.Errorf("got %+v", h)
	}
	if !reflect.DeepEqual(h.State.Templates, s.State.Templates) || !h.State.Running[2].Stopping || h.State.Running[2].Requeues != 1 {
		t.Errorf("got %+v and %+v", h.State.Templates, h.State.Running[2])
	}
	b.Command, b.User, b.Why = a.Command, a.User, a.Why
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%+v became\n%+v", a, b)
	}
}

func TestTheSameNameHasTheSameHashInOneFileOnly(t *testing.T) {
	s := taken(t, file(t, "full.json"))
	h := hashed(t, s, salt)
	jobs := append(h.State.Running, h.State.Jobs...)
	ann, bob := jobs[0].User, jobs[1].User
	if ann == bob || len(ann) != 17 || jobs[2].User != bob || jobs[4].User != ann || jobs[5].User != ann {
		t.Errorf("ann is %s, bob is %s: %+v", ann, bob, jobs)
	}
	if jobs[0].Command[0] != jobs[4].Command[0] || jobs[0].Command[1] == jobs[4].Command[1] || !reflect.DeepEqual(jobs[4].Command, jobs[5].Command) {
		t.Errorf("commands are %q, %q, %q", jobs[0].Command, jobs[4].Command, jobs[5].Command)
	}
	if jobs[1].Name != "" || jobs[1].Directory != "" {
		t.Errorf("what was empty is %q and %q", jobs[1].Name, jobs[1].Directory)
	}
	if again := hashed(t, s, salt); !reflect.DeepEqual(again, h) {
		t.Error("the same salt gives other hashes")
	}
	if other := hashed(t, s, strings.ToUpper(salt)); other.State.Running[0].User == ann {
		t.Error("another salt gives the same hash")
	}
	if text := written(t, h); strings.Contains(text, salt) {
		t.Error("the salt is in the file")
	}
}

func TestWithoutASaltNothingIsHashed(t *testing.T) {
	if _, err := Hash(taken(t, file(t, "small.json")), strings.NewReader("short")); err == nil {
		t.Error("a short salt is taken")
	}
}

package record

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// lists is a value with lists of objects.
type lists struct {
	A []map[string]int `json:"a,omitempty"`
	B []map[string]int `json:"b,omitempty"`
	C []int            `json:"c,omitempty"`
	N int              `json:"n,omitempty"`
}

func drawLists(t *rapid.T) lists {
	object := rapid.MapOfN(rapid.SampledFrom([]string{"x", "y"}), rapid.IntRange(0, 2), 1, 2)
	return lists{
		A: rapid.SliceOfN(object, 0, 8).Draw(t, "a"), B: rapid.SliceOfN(object, 0, 2).Draw(t, "b"),
		C: rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(t, "c"), N: rapid.IntRange(0, 1).Draw(t, "n"),
	}
}

func TestADocumentIsWhatItsChangesMakeOfTheOneBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, read := document{}, document{}
		for range rapid.IntRange(1, 6).Draw(t, "documents") {
			want := drawLists(t)
			now, err := documentOf(want)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(now.since(before))
			if err != nil {
				t.Fatal(err)
			}
			changes := map[string]json.RawMessage{}
			if err := json.Unmarshal(text, &changes); err != nil {
				t.Fatal(err)
			}
			if err := read.apply(changes); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			var got lists
			if err := read.into(&got); err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(want)
			if string(a) != string(b) {
				t.Fatalf("%s makes %s, want %s", text, a, b)
			}
			before = now
		}
	})
}

func TestAListThatIsNotChangedTakesNoRoom(t *testing.T) {
	d, err := documentOf(lists{A: []map[string]int{{"x": 1}, {"y": 2}}, N: 1})
	if err != nil {
		t.Fatal(err)
	}
	if changes := d.since(d); len(changes) != 0 {
		t.Errorf("the changes are %s", changes)
	}
	more, err := documentOf(lists{A: []map[string]int{{"x": 3}, {"x": 1}, {"y": 2}}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]json.RawMessage{"a": json.RawMessage(`[{"x":3},[0,2]]`), "n": json.RawMessage("null")}
	if changes := more.since(d); !reflect.DeepEqual(changes, want) {
		t.Errorf("the changes are %s, want %s", changes, want)
	}
}

package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

func file(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// taken demands that a text is taken.
func taken(t testing.TB, text string) Snapshot {
	t.Helper()
	s, err := Read("x.json", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refused answers the faults of a text, which must have some.
func refused(t testing.TB, text string) *Refused {
	t.Helper()
	_, err := Read("x.json", strings.NewReader(text))
	var r *Refused
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal of %.200s", err, text)
	}
	return r
}

func written(t testing.TB, s Snapshot) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatIsWrittenIsReadAsItWas(t *testing.T) {
	for _, name := range []string{"small.json", "full.json"} {
		s := taken(t, file(t, name))
		if again := taken(t, written(t, s)); !reflect.DeepEqual(s, again) {
			t.Errorf("%s\n%+v became\n%+v", name, s, again)
		}
	}
	if text := written(t, Of("east", scheduling.Input{Now: 1})); strings.Contains(text, "null") {
		t.Errorf("a list is null: %s", text)
	}
}

func TestASnapshotIsReadAsTheStandardLibraryReadsIt(t *testing.T) {
	for _, name := range []string{"small.json", "full.json"} {
		var want Snapshot
		if err := json.Unmarshal([]byte(file(t, name)), &want); err != nil {
			t.Fatal(err)
		}
		want.State.Offers = dropEmpty(want.State.Offers)
		for i := range want.State.Resources {
			r := &want.State.Resources[i]
			r.Idle = dropEmpty(r.Idle)
		}
		if got := taken(t, file(t, name)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is\n%+v, want\n%+v", name, got, want)
		}
	}
}

func dropEmpty[S ~[]T, T any](list S) S {
	if len(list) == 0 {
		return nil
	}
	return list
}

func TestTextsAreReadWithTheirEscapes(t *testing.T) {
	text := strings.Replace(file(t, "small.json"), `"command": ["simulate"], "cpus": 4`, `"comm\u0061nd": ["a\"b\\", "", "\u00e9\ud83d\ude00", "é"], "cpus": 4`, 1)
	got := taken(t, text).State.Running[0].Command
	if want := []string{`a"b\`, "", "é😀", "é"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFileThatIsNoSnapshotIsRefusedWithLineAndColumn(t *testing.T) {
	small := file(t, "small.json")
	tests := []struct{ name, text, want string }{
		{"nothing", "", "x.json:1:1: the file is empty; save a snapshot with `xce-elastic snapshot`"},
		{"blanks", " \n\n", "x.json:1:1: the file is empty"},
		{"no JSON", "cluster:\n  name: east\n", "x.json:1:1: invalid character 'c' looking for beginning of value; mend the JSON"},
		{"cut short", small[:len(small)-5], "unexpected end of JSON input; mend the JSON"},
		{"a comma too many", "{\n  \"format\": \"xce-snapshot\",\n}", "x.json:3:1: invalid character '}' looking for beginning of object key string"},
		{"more after it", small + "{}", "x.json:9:1: invalid character '{' after top-level value"},
		{"two letters that are one", "{\"é\": é}", "x.json:1:7: invalid character"},
		{"bytes that are no text", "{\"format\": \"\xff\"}", "x.json:1:13: the text is not UTF-8; mend the JSON"},
		{"another object", `{"name": "x"}`, "x.json:1:1: format: this is no snapshot; save one with `xce-elastic snapshot`: it has the format \"xce-snapshot\""},
		{"a list", `[]`, "x.json:1:1: format: this is no snapshot"},
		{"a word", ` "x"`, "x.json:1:2: format: this is no snapshot"},
		{"another format", "{\n \"format\": \"other\", \"version\": 1}", "x.json:2:12: format: this is no snapshot"},
		{"a later version", strings.Replace(small, `"version": 1`, `"version": 2`, 1), "x.json:1:39: version: version 2 is not known; use a program as new as the one that saved it"},
		{"a version as text", strings.Replace(small, `"version": 1`, `"version": "1"`, 1), "x.json:1:39: version: it is text; write 1"},
		{"no version", `{"format": "xce-snapshot"}`, "x.json:1:1: version: version (none) is not known"},
		{"nested without end", strings.Repeat("[", 20_000), "x.json:1:10001: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := refused(t, test.text)
			if len(r.Faults) != 1 || !strings.Contains(r.Faults[0], test.want) || !strings.HasPrefix(r.Faults[0], "x.json:") {
				t.Errorf("got %q, want %q", r.Faults, test.want)
			}
		})
	}
}

func TestAFileWithAByteOrderMarkIsReadAsWithout(t *testing.T) {
	if got, want := taken(t, "\ufeff"+file(t, "small.json")), taken(t, file(t, "small.json")); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if r := refused(t, "\ufeff{]"); !strings.HasPrefix(r.Faults[0], "x.json:1:2: ") {
		t.Errorf("got %q", r.Faults)
	}
}

func TestAFileThatIsTooLargeIsRefused(t *testing.T) {
	text := file(t, "small.json")
	if _, err := read("x.json", strings.NewReader(text), int64(len(text))); err != nil {
		t.Error(err)
	}
	if _, err := read("x.json", strings.NewReader(text), int64(len(text))-1); err == nil || !strings.Contains(err.Error(), "bytes; save a snapshot of fewer jobs") {
		t.Errorf("got %v", err)
	}
}

func TestValuesOfTheWrongKindAreRefusedWithLineColumnAndPath(t *testing.T) {
	// Each case puts a text in place of one of the full snapshot.
	tests := []struct{ name, old, instead, want string }{
		{"a misspelt key", `"cluster": "east"`, `"Cluster": "east"`, `x.json:4:3: Cluster: there is no such key; remove it; known here are cluster, format, state, taken, version`},
		{"an unknown key, deep", `"lenders": [`, `"lender": [`, `x.json:21:21: state.resources[0].elastic.lender: there is no such key; remove it; known here are idle_time, lenders, max_borrowed, minimum_hold`},
		{"a key twice", `"total": 6,`, `"total": 6, "total": 6,`, `x.json:22:21: state.resources[0].total: the key is there twice; give each key once`},
		{"a name twice in a map", `{"site": "z1"}`, `{"site": "z1", "site": "z2"}`, `x.json:10:146: state.hosts[0].attributes.site: the key is there twice`},
		{"a fraction", `"owned": 4`, `"owned": 4.5`, `x.json:20:33: state.resources[0].owned: 4.5 is not a whole number of 64 bits; write a whole number`},
		{"an exponent", `"owned": 4`, `"owned": 4e3`, `state.resources[0].owned: 4e3 is not a whole number of 64 bits`},
		{"beyond 64 bits", `"owned": 4`, `"owned": 9223372036854775808`, `state.resources[0].owned: 9223372036854775808 is not a whole number of 64 bits`},
		{"text for a number", `"owned": 4`, `"owned": "4"`, `state.resources[0].owned: it is text; write a whole number`},
		{"null for a number", `"owned": 4`, `"owned": null`, `state.resources[0].owned: it is null; write a whole number`},
		{"a number for text", `"cluster": "east"`, `"cluster": 7`, `x.json:4:14: cluster: it is a number; write text in quotes`},
		{"a list for text", `"cluster": "east"`, `"cluster": ["east"]`, `x.json:4:14: cluster: it is a list; write text in quotes`},
		{"text for a truth value", `"exclusive": true`, `"exclusive": "yes"`, `state.jobs[1].exclusive: it is text; write true or false`},
		{"a truth value for a list", `"quotas": ["all"]`, `"quotas": true`, `state.templates[1].quotas: it is a truth value; write a list`},
		{"a list for an object", `"policy": {"order": "conservative", "depth": 10}`, `"policy": []`, `x.json:8:15: state.policy: it is a list; write an object`},
		{"null for an object", `"policy": {"order": "conservative", "depth": 10}`, `"policy": null`, `x.json:8:15: state.policy: it is null; write an object`},
		{"a list for a map", `{"site": "z1"}`, `["site"]`, `state.hosts[0].attributes: it is a list; write an object`},
		{"text for a count in a map", `{"gpus": 2}`, `{"gpus": "two"}`, `state.hosts[0].countables.gpus: it is text; write a whole number`},
		{"a length of time without a unit", `"latency": "40s"`, `"latency": "40"`, `state.offers[0].latency: duration "40" is not a number with a unit (as in 90s, 30m, 4h); write text with a unit, as in "60m"`},
		{"a number for a length of time", `"latency": "40s"`, `"latency": 40`, `state.offers[0].latency: it is a number; write text with a unit, as in "60m"`},
		{"no time", `"requested": "2026-01-01T07:59:00.000Z"`, `"requested": "yesterday"`, `state.expected[0].requested: time "yesterday" is not RFC 3339 (as in 2026-01-31T08:00:00Z); write text such as "2026-01-31T08:00:00Z"`},
		{"a length of time that is too long", `"latency": "40s"`, `"latency": "9999999h"`, `state.offers[0].latency: duration "9999999h" is too long; write text`},
		{"no key", `{"gpus": 2}`, `{"": true}`, `state.hosts[0].countables."": it is a truth value`},
	}
	full := file(t, "full.json")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if strings.Count(full, test.old) == 0 {
				t.Fatalf("%q is not in the snapshot", test.old)
			}
			r := refused(t, strings.Replace(full, test.old, test.instead, 1))
			if len(r.Faults) != 1 || !strings.Contains(r.Faults[0], test.want) {
				t.Errorf("got\n%q, want\n%q", r.Faults, test.want)
			}
		})
	}
}

func TestAllFaultsAreToldInTheOrderOfTheFile(t *testing.T) {
	text := file(t, "full.json")
	text = strings.Replace(text, `"version": 1,`, `"version": 1, "verson": 2,`, 1)
	text = strings.Replace(text, `"wait": "0s"`, `"wait": 0`, 1)
	r := refused(t, text)
	if len(r.Faults) != 2 || !strings.HasPrefix(r.Faults[0], "x.json:3:17: verson: ") || !strings.Contains(r.Faults[1], ": state.thresholds[1].wait: ") {
		t.Errorf("got %q", r.Faults)
	}
	r = refused(t, strings.ReplaceAll(file(t, "small.json"), `"offers": []`, `"offers": [`+strings.Repeat(`{"x":1},`, 29)+`{"x":1}]`))
	if len(r.Faults) != mostShown || r.More != 10 || !strings.Contains(r.Error(), "and 10 more faults") {
		t.Errorf("got %d faults and %d more: %v", len(r.Faults), r.More, r)
	}
}

func TestAWriterThatFailsIsTold(t *testing.T) {
	if err := taken(t, file(t, "small.json")).Write(full{}); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("got %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestAReaderThatFailsIsTold(t *testing.T) {
	_, err := Read("x.json", broken{})
	var r *Refused
	if err == nil || errors.As(err, &r) || !strings.Contains(err.Error(), "x.json: no disk") {
		t.Errorf("got %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("no disk") }

func TestManyJobsAreReadInGoodTime(t *testing.T) {
	s := taken(t, file(t, "small.json"))
	for i := range int64(20_000) {
		job := s.State.Jobs[0]
		job.ID = 100 + i
		s.State.Jobs = append(s.State.Jobs, job)
	}
	if again := taken(t, written(t, s)); len(again.State.Jobs) != len(s.State.Jobs) || again.State.Now != cluster.Time(1767254400000) {
		t.Errorf("%d jobs are read", len(again.State.Jobs))
	}
}

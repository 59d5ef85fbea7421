// Package scenario plays scripted tests that read as documentation: a file has
// what is given as YAML, and under an arrow what comes of it. Where it goes on, a
// line of dashes follows, and of what is given next the keys that are not as they
// were. `go test -update` writes the answers.
package scenario

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the answers into the scenarios")

// arrow stands between what is given and the answer, nextStep between one answer
// and what is given next.
const (
	arrow    = "\n=>\n"
	nextStep = "\n---\n"
)

// Files answers the scenarios of a folder: the files that end in .txt and whose
// names do not begin with a capital.
func Files(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "[a-z]*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in %s: %v", folder, err)
	}
	return files
}

// Play plays every scenario of the folder, each as a sub-test: answer says what
// comes of a step.
func Play[Given any](t *testing.T, folder string, answer func(Given) string) {
	for _, file := range Files(t, folder) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file, answer) })
	}
}

func play[Given any](t *testing.T, file string, answer func(Given) string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]any{}
	var played []string
	for i, step := range strings.Split(string(data), nextStep) {
		given, want, found := strings.Cut(step, arrow)
		if !found && !*update {
			t.Fatalf("there is no arrow in step %d", i+1)
		}
		got := strings.TrimSuffix(answer(read[Given](t, given, state)), "\n")
		if want = strings.TrimSuffix(want, "\n"); got != want && !*update {
			t.Errorf("step %d answers\n%s\nand should answer\n%s", i+1, got, want)
		}
		played = append(played, strings.TrimRight(given, "\n")+"\n"+arrow+got)
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(played, nextStep)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// read takes YAML as if it were JSON, so that a misspelt key fails. What it does
// not name is as in the state, which it brings up to date.
func read[Given any](t *testing.T, text string, state map[string]any) (given Given) {
	t.Helper()
	var changes map[string]any
	if err := yaml.Unmarshal([]byte(text), &changes); err != nil {
		t.Fatal(err)
	}
	maps.Copy(state, changes)
	data, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		t.Fatal(err)
	}
	return given
}

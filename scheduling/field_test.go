package scheduling

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cluster/scenario"
)

// index names for every fault from the field the scenarios that show what is
// right, or says why a session or a policy has no part in it. Paths are from
// its folder, those of package policy as "policy/NAME".
const index = "testdata/field/INDEX.txt"

const policyScenarios = "../policy/testdata/"

var publicReport = regexp.MustCompile(`^[\w.-]+/[\w.-]+#\d+$`)

func TestEveryFaultFromTheFieldHasAScenarioOrAReason(t *testing.T) {
	listed := listedScenarios(t)
	for _, file := range append(scenario.Files(t, "testdata/field"), scenario.Files(t, policyScenarios)...) {
		if !slices.Contains(listed, filepath.ToSlash(file)) {
			t.Errorf("%s is in no line of %s", file, index)
		}
	}
	for _, file := range listed {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s lists what is not there: %v", index, err)
		}
	}
}

// listedScenarios reads the index: lines of a report and, after a colon, files,
// or a dash and a reason.
func listedScenarios(t *testing.T) (files []string) {
	t.Helper()
	data, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		report, rest, found := strings.Cut(line, ": ")
		switch {
		case !found || !publicReport.MatchString(report):
			t.Errorf("%s: %q names no report", index, line)
		case seen[report]:
			t.Errorf("%s: %s is there twice", index, report)
		}
		seen[report] = true
		if strings.HasPrefix(rest, "- ") {
			continue
		}
		for _, name := range strings.Split(rest, ", ") {
			files = append(files, scenarioPath(name))
		}
	}
	return files
}

func scenarioPath(name string) string {
	if of, found := strings.CutPrefix(name, "policy/"); found {
		return policyScenarios + of
	}
	return "testdata/field/" + name
}

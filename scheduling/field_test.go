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

// index names for every fault from the field the scenarios and tests that show
// what is right, or says why nothing here has a part in it. Paths are from its
// folder, those of package policy as "policy/NAME"; tests of whole lives of hosts
// are named as "simulation/TestNAME".
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
		if test, found := strings.CutPrefix(file, storyTests); found {
			if !storyTest(t, test) {
				t.Errorf("%s lists the test %s, which is not there", index, test)
			}
			continue
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s lists what is not there: %v", index, err)
		}
	}
}

// storyTests begins the entries of the index that are tests.
const storyTests = "simulation/"

// storyTest tells whether there is a test of the name among those of whole stories.
func storyTest(t *testing.T, name string) bool {
	t.Helper()
	files, err := filepath.Glob("../simulation/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		data, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(data), "\nfunc "+name+"(t *testing.T)")
	})
}

// listedScenarios reads the index: lines of a report and, after a colon, files and
// tests, or a dash and a reason.
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
	if strings.HasPrefix(name, storyTests) {
		return name
	}
	if of, found := strings.CutPrefix(name, "policy/"); found {
		return policyScenarios + of
	}
	return "testdata/field/" + name
}

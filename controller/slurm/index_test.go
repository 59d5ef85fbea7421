package slurm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// index, in testdata, names for every surprise that Slurm holds the tests that show what we do about it.
const index = "INDEX.txt"

// folders are where the tests are that the index names by the folder's word.
var folders = map[string]string{
	"": ".", "slurmtest": "slurmtest", "backend": "../backend", "controller": "..", "dev": "../../cmd/xce-elastic/dev",
	"command": "../../cmd/xce-elastic", "config": "../../cmd/xce-elastic/config", "slurmd": "../../providers/scripts/slurmd",
}

// tests are the tests of a folder, each with the texts of its file, where the names of its cases are.
type tests map[string]map[string]bool

func testsIn(t *testing.T, folder string) tests {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := tests{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]bool{}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					texts[text] = true
				}
			}
			return true
		})
		for _, d := range parsed.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				found[f.Name.Name] = texts
			}
		}
	}
	return found
}

// has tells whether there is a test, named as in TestX or TestX/a case of it.
func (all tests) has(name string) bool {
	test, of, isCase := strings.Cut(name, "/")
	texts, there := all[test]
	return there && (!isCase || texts[of])
}

// testOf cuts the name of a test in the index from the word for its folder.
func testOf(name string) (folder, test string) {
	if word, rest, found := strings.Cut(name, "/"); found && !strings.HasPrefix(word, "Test") {
		return word, rest
	}
	return "", name
}

func TestEveryTrapHasItsTest(t *testing.T) {
	known := map[string]tests{}
	for word, folder := range folders {
		known[word] = testsIn(t, folder)
	}
	seen := map[string]bool{}
	trap, covered := "", 1
	next := func(line string) {
		if covered == 0 {
			t.Errorf("%q has no test and no reason for having none", trap)
		}
		if seen[line] && line != "" {
			t.Errorf("%q is there twice", line)
		}
		trap, covered, seen[line] = line, 0, true
	}
	for line := range strings.Lines(recorded(t, index)) {
		line = strings.TrimSuffix(line, "\n")
		name, isTest := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !isTest:
			next(line)
		case strings.HasPrefix(name, "- "):
			covered++
		default:
			folder, test := testOf(name)
			if all, is := known[folder]; !is || !all.has(test) {
				t.Errorf("%q lists the test %s, which is not there", trap, name)
			}
			covered++
		}
	}
	next("")
	if len(seen) < 80 {
		t.Errorf("%d traps are listed, and more are known", len(seen)-1)
	}
	for _, wrong := range []string{"TestNoSuch", "TestPlan/no such case"} {
		if known[""].has(wrong) {
			t.Errorf("%s is found", wrong)
		}
	}
	inTraps(t, known["slurmtest"])
}

// inTraps demands that each case of the traps of a real Slurm is in the index.
func inTraps(t *testing.T, of tests) {
	t.Helper()
	listed := recorded(t, index)
	parsed, err := parser.ParseFile(token.NewFileSet(), "slurmtest/traps_test.go", nil, parser.SkipObjectResolution)
	if err != nil || !of.has("TestTraps") {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		c, is := n.(*ast.CompositeLit) // of a name, whether it is slow, and a test
		if !is || len(c.Elts) != 3 {
			return true
		}
		name, isName := c.Elts[0].(*ast.BasicLit)
		_, isTest := c.Elts[2].(*ast.FuncLit)
		if isName && isTest {
			text, _ := strconv.Unquote(name.Value)
			if !strings.Contains(listed, "/TestTraps/"+text+"\n") {
				t.Errorf("the trap %q is not in %s", text, index)
			}
		}
		return true
	})
}

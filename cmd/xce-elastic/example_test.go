//go:build e2e

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// guide is the page of which every command is run.
const guide = "../../docs/simulate.md"

func TestTheWorkedExampleOfTheGuideWorks(t *testing.T) {
	bin := os.Getenv("XCE_BIN")
	if bin == "" {
		t.Skip("XCE_BIN does not say where the built programs are")
	}
	folder := t.TempDir()
	farm, err := os.ReadFile("../../docs/example/farm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "farm.yaml"), farm, 0o600); err != nil {
		t.Fatal(err)
	}
	commands := commandsOf(t, guide)
	if len(commands) < 5 {
		t.Fatalf("the guide has only %d commands", len(commands))
	}
	said := ""
	for _, line := range commands {
		cmd := exec.Command("bash", "-ec", line)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		said += string(out)
	}
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	for _, figure := range []string{"6792", "8000", "Little's law holds", "baseline", "1659.2"} {
		if !strings.Contains(said, figure) {
			t.Errorf("the commands do not print %q:\n%s", figure, said)
		}
	}
	if !strings.Contains(string(text), "1,659 hours") {
		t.Error("the guide tells of other hours than the commands")
	}
	for _, page := range []string{"asked/report.html", "asked/jobs.csv", "varied/frontier.html"} {
		if info, err := os.Stat(filepath.Join(folder, page)); err != nil || info.Size() == 0 {
			t.Errorf("%s is missing or empty: %v", page, err)
		}
	}
}

// commandsOf answers the lines of the blocks of a page that are meant for a shell.
func commandsOf(t *testing.T, page string) (lines []string) {
	t.Helper()
	f, err := os.Open(page)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inside := false
	for scan := bufio.NewScanner(f); scan.Scan(); {
		switch line := scan.Text(); {
		case line == "```sh":
			inside = true
		case line == "```":
			inside = false
		case inside && line != "":
			lines = append(lines, line)
		}
	}
	return lines
}

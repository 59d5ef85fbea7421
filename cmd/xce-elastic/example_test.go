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
	for _, b := range blocksOf(t, page) {
		if b.kind == "sh" {
			lines = append(lines, b.lines...)
		}
	}
	return lines
}

// pageBlock is a fenced block of a page: what it is, as in sh, and its lines that are not empty.
type pageBlock struct {
	kind  string
	lines []string
}

func (b pageBlock) text() string { return strings.Join(b.lines, "\n") + "\n" }

// blocksOf answers the fenced blocks of a page that say what they are.
func blocksOf(t *testing.T, page string) (blocks []pageBlock) {
	t.Helper()
	f, err := os.Open(page)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var inside *pageBlock
	for scan := bufio.NewScanner(f); scan.Scan(); {
		kind, fence := strings.CutPrefix(scan.Text(), "```")
		switch line := scan.Text(); {
		case fence && inside == nil:
			inside = &pageBlock{kind: kind}
		case fence:
			blocks, inside = append(blocks, *inside), nil
		case inside != nil && line != "":
			inside.lines = append(inside.lines, line)
		}
	}
	return blocks
}

package agent_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xce.internal/elastic/controller/agent"
)

func TestAJoinFileThatOthersCanReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "join.json")
	text := `{"host":"host/small-1","controller":"https://x","ca":"c","token":"t","deadline":"2026-01-01T00:00:00Z"}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.ReadJoin(path); err != nil {
		t.Errorf("a private one is refused: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.ReadJoin(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v", err)
	}
}

func TestTheAgentsFolderIsItsOwnersAloneWhateverTheUmaskIs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "agent")
	old := syscall.Umask(0)
	_, err := agent.New(agent.Config{Host: "h", Folder: folder}, nil, nil)
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{folder: 0o700, filepath.Join(folder, "instance"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", path, got, want)
		}
	}
}

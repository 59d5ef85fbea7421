package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/providers/scripts/farm"
)

func TestAgentIsToldWhatItsHostHas(t *testing.T) {
	h := &farm.Host{Features: []string{"avx512", "site=z1"}, Countables: map[string]int64{"gpus": 2}}
	h.Size.CPUs, h.Size.MemoryMB = 2, 4096
	got := strings.Join(agent{program: "xce-elastic"}.Arguments("/h", h), " ")
	want := "xce-elastic agent --join /h/join.json --agent.folder /h/agent --agent.cpus 2 --agent.memory_mb 4096" +
		" --feature avx512 --feature site=z1 --countable gpus=2"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestNamesAreUsedAgain(t *testing.T) {
	var others []farm.Host
	for _, want := range []string{"node-1", "node-2", "node-3"} {
		h := farm.Host{}
		if err := (agent{named: true}).Place(&h, others); err != nil || h.Name != want {
			t.Errorf("%q, %v, want %s", h.Name, err, want)
		}
		others = append(others, h)
	}
	h := farm.Host{}
	if err := (agent{named: true}).Place(&h, slices.Delete(others, 1, 2)); err != nil || h.Name != "node-2" {
		t.Errorf("%q, %v, want node-2, which is gone", h.Name, err)
	}
	if err := (agent{}).Place(&h, nil); err != nil {
		t.Error(err)
	}
}

func TestSettingsOfTheAgent(t *testing.T) {
	for name, values := range map[string][2]string{
		"XCE_LOCAL_AGENT": {"/no/such/program", "0"}, "XCE_LOCAL_NAMES": {os.Args[0], "yes"},
	} {
		t.Setenv("XCE_LOCAL_AGENT", values[0])
		t.Setenv("XCE_LOCAL_NAMES", values[1])
		if _, err := agents(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want one that names %s", err, name)
		}
	}
	t.Setenv("XCE_LOCAL_AGENT", os.Args[0])
	t.Setenv("XCE_LOCAL_NAMES", "1")
	if hosts, err := agents(); err != nil || hosts != farm.Hosts(agent{os.Args[0], true}) {
		t.Errorf("%+v, %v", hosts, err)
	}
}

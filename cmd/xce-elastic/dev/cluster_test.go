package dev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/scheduling"
)

func TestTheConfigurationSaysThatItIsWrittenAnewAndHasThePolicyAskedFor(t *testing.T) {
	for policy, want := range map[string]scheduling.Order{"": scheduling.FCFS, "easy": scheduling.EASY} {
		folder := t.TempDir()
		for _, program := range []string{"pool", "local"} {
			if err := os.WriteFile(filepath.Join(folder, program), []byte("#!/bin/sh\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		f := &farm{example: theExample, temporal: "127.0.0.1:7233", Options: Options{Folder: folder, Program: filepath.Join(folder, "xce-elastic"), Policy: policy}}
		f.Temporal.Namespace = "xce"
		if err := f.writeConfig(t.Context()); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(f.path(configName))
		if err != nil || !strings.Contains(strings.SplitAfterN(string(data), "\ncluster:", 2)[0], "writes this file anew") {
			t.Errorf("%v\n%s", err, data)
		}
		c, err := config.Load(f.path(configName), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Policy.Order; got != want {
			t.Errorf("with %q, the order is %q", policy, got)
		}
	}
}

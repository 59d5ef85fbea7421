package slurm

import (
	"os"
	"strings"
	"testing"
)

func TestRecordedSettings(t *testing.T) {
	text, err := os.ReadFile("testdata/config.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSettings(text)
	if err != nil {
		t.Fatal(err)
	}
	if s.Version != "22.05.8" || s.Booted != 1796026130_000 || s.Cluster != "vcs" {
		t.Errorf("version %q, booted %d, cluster %q", s.Version, s.Booted, s.Cluster)
	}
	for key, want := range map[string]string{
		"selecttype": "select/cons_tres", "licenses": "foo:10,sim:4", "suspendexcnodes": "n[1-3]",
		"slurmctldparameters": "power_save_interval=1,power_save_min_interval=0",
	} {
		if s.Keys[key] != want {
			t.Errorf("%s is %q, want %q", key, s.Keys[key], want)
		}
	}
}

func TestSettingsThatSayNoStartAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"":                               "BOOT_TIME",
		"BOOT_TIME = 2026-01-01\n":       "BOOT_TIME",
		"BOOT_TIME = 1796026130\n":       "SLURM_VERSION",
		"BOOT_TIME=0\nSLURM_VERSION=2\n": "BOOT_TIME",
	} {
		if _, err := parseSettings([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one of %s", text, err, says)
		}
	}
}

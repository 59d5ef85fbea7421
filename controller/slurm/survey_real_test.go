package slurm

import (
	"os"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/controller/slurm/slurmtest"
)

// A real Slurm is surveyed, and what the check asks for mends what it finds.
func TestTheLinesOfTheCheckMendARealSlurm(t *testing.T) {
	r := startSlurm(t, slurmtest.Options{Nodes: 1, Licences: map[string]int64{"vcs": 4, "verdi": 2}})
	want := Wanted{Reservation: "xce-withheld", Resources: []WantedResource{{"vcs", "vcs", 4, 8}, {"verdi", "verdi", 2, 0}}}
	check := func() Report {
		t.Helper()
		s, err := r.commands.Survey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Nodes) != 1 || len(s.Partitions) != 1 || s.Programs["scontrol"] == "" || s.Me.UID == "" || s.Settings.Cluster == "" {
			t.Fatalf("surveyed is %+v", s)
		}
		return Check(s, want)
	}
	before := check()
	if before.Missing() != 1 {
		t.Fatalf("before: %+v", before)
	}
	var licences, command string
	for _, l := range before.Lines {
		switch {
		case strings.HasPrefix(l.Line, "Licenses="):
			licences = l.Line
		case strings.HasPrefix(l.Line, "scontrol reconfigure && scontrol "):
			command = strings.TrimPrefix(l.Line, "scontrol reconfigure && scontrol ")
		}
	}
	if licences != "Licenses=vcs:12,verdi:2" || command == "" {
		t.Fatalf("the lines are %+v", before.Lines)
	}
	text, err := os.ReadFile(r.Conf())
	if err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(r.Conf(), []byte(strings.Replace(string(text), "Licenses=vcs:4,verdi:2", licences, 1)), 0o644))
	r.scontrol("reconfigure")
	r.scontrol(strings.Fields(command)...)
	after := check()
	if after.Missing() != 0 || !slices.ContainsFunc(after.Findings, func(f Finding) bool { return f.Text == "xce-withheld.vcs keeps back 8 of vcs" }) {
		t.Errorf("after: %+v", after)
	}
	// A total below what is kept back: Slurm drops the reservation.
	must(t, os.WriteFile(r.Conf(), text, 0o644))
	r.scontrol("reconfigure")
	if all, err := r.commands.Reservations(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("there is %+v, %v", all, err)
	}
}

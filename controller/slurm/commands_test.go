package slurm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/controller/backend"
)

// standIn answers commands of which scontrol is a shell script, and the folder.
func standIn(t *testing.T, script string) (Commands, string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "scontrol"), []byte("#!/bin/sh\ncd "+folder+"\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Commands{Folder: folder, Conf: "/etc/x.conf", Limit: 20 * time.Second}, folder
}

// Every fault of Slurm's programs ends with 1: what they say tells whether a change was refused, or may have been made.
func TestFaultsAreToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		want Kind // "" for an outcome that is not known
	}{
		"slurmctld is down":                {"slurm_load_node: Unable to contact slurm controller (connect failure)", ""},
		"slurmctld hangs":                  {"slurm_update error: Socket timed out on send/recv operation", ""},
		"munged is down":                   {"scontrol: error: If munged is up, restart with --num-threads=10\nslurm_update error: Protocol authentication error", ""},
		"slurmctld ends in the middle":     {"slurm_update error: Zero Bytes were transmitted or received", ""},
		"jobs are on a node":               {"Requested nodes are busy", Busy},
		"a node is not there":              {"slurm_update error: Invalid node name specified", NoSuch},
		"resume of an idle node":           {"slurm_update error: Invalid node state specified", BadState},
		"an unprivileged user":             {"slurm_update error: Invalid user id", Forbidden},
		"an unprivileged user reserves":    {"Error creating the reservation: Access/permission denied", Forbidden},
		"jobs of a node that is not there": {"squeue: error: Invalid node name nosuch", NoSuch},
		"a reservation is not there":       {"slurm_update error: Requested reservation is invalid", NoSuch},
		"sacctmgr changes what is not":     {" Nothing modified", NoSuch},
		"sacctmgr adds what is there":      {" Nothing new added.", Exists},
		"slurmdbd is down":                 {"sacctmgr: error: slurm_persist_conn_open_without_init: failed to open persistent connection to host:localhost:6819: Connection refused", NoDaemon},
		"licences above the total":         {"slurm_update error: Invalid license specification", Other},
		"an option of another release":     {" Unknown option: allowed=100", Other},
		"what has never been seen is said": {"the moon is full", Other},
	} {
		t.Run(name, func(t *testing.T) {
			for _, to := range []string{"&2", "&1"} { // sacctmgr says it on its output
				commands, _ := standIn(t, "cat >"+to+" <<'END'\n"+c.says+"\nEND\nexit 1\n")
				_, err := commands.Run(t.Context(), "scontrol", "update")
				var unknown *backend.Unknown
				if errors.As(err, &unknown) != (c.want == "") || c.want != "" && !IsRefused(err, c.want) {
					t.Errorf("on %s: %v", to, err)
				}
				if last := c.says[strings.LastIndexByte(c.says, '\n')+1:]; !strings.Contains(err.Error(), strings.TrimSpace(last)) {
					t.Errorf("%v does not say what Slurm said", err)
				}
			}
		})
	}
}

// One that does not answer ends with all it has started, and nobody knows what became of it.
func TestACommandThatHangsIsEndedAndItsOutcomeUnknown(t *testing.T) {
	commands, folder := standIn(t, "sleep 600 &\necho $! >child.new\nmv child.new child\nwait\n")
	commands.Limit = 500 * time.Millisecond
	_, err := commands.Run(t.Context(), "scontrol", "ping")
	var unknown *backend.Unknown
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "no answer within 500ms") {
		t.Fatalf("%v; want an unknown outcome", err)
	}
	pid, err := os.ReadFile(filepath.Join(folder, "child"))
	if err != nil {
		t.Skipf("it was ended before it started anything: %v", err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("what it started goes on: %s", stat)
		}
	}
}

// Slurm's programs print by the environment: what they are told there is what is read.
func TestCommandsAreToldHowToPrint(t *testing.T) {
	t.Setenv("SLURM_TIME_FORMAT", "relative")
	t.Setenv("SQUEUE_STATES", "CA")
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	commands, _ := standIn(t, "env\n")
	out, err := commands.Run(t.Context(), "scontrol")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SLURM_CONF=/etc/x.conf\n", "SLURM_TIME_FORMAT=%s\n", "SLURM_BITSTR_LEN=0\n", "LC_ALL=C\n", "TZ=UTC\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q lacks %q", out, want)
		}
	}
	if strings.Contains(string(out), "SQUEUE_STATES") {
		t.Errorf("what is set for people is passed on: %q", out)
	}
}

func TestProgramsThatAreNotThereSayWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := (Commands{}).Run(t.Context(), "scontrol"); err == nil || !strings.Contains(err.Error(), "install Slurm's client commands") {
		t.Error(err)
	}
}

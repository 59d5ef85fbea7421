package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
)

// program puts a script in place of one of Slurm's programs, beside a slurm.conf, and answers the flags that name both.
func program(t *testing.T, name, script string) []string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(folder, "slurm.conf")
	if err := os.WriteFile(conf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--conf", conf, "--commands", folder}
}

// accounts answers a script that lists the jobs of a real Slurm 22.05: an array, a heterogeneous job, one that was
// cancelled, one that runs, and names with "|" and a line's end in them.
func accounts(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs("testdata/slurm.sacct")
	if err != nil {
		t.Fatal(err)
	}
	return "cat " + file + "\n"
}

func TestSlurmIsAskedForTheTimesInUTC(t *testing.T) {
	want := `[ "$*" = "--allusers --allocations --parsable2 --format=JobID,JobIDRaw,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,State,NNodes,NCPUS,ReqMem,ReqTRES,AllocTRES,Partition,QOS,Account,User,WCKey,NodeList,JobName ` +
		`--starttime=2026-07-01T06:00:00 --endtime=2026-07-07T22:00:00" ] && [ "$SLURM_TIME_FORMAT $TZ" = "%s UTC" ] || { echo "$*" >&2; exit 3; }` + "\n"
	flags := program(t, "sacct", want+accounts(t))
	out := prints(t, append([]string{"trace", "record", "--from-slurm", "--out", "-", "--since", "2026-07-01T08:00", "--until", "2026-07-08", "--zone", "Europe/Berlin"}, flags...),
		`^\{"xce_trace":1,"source":"Slurm's accounts \(sacct\)"`, `"rule":"hetero".*"count":2`,
		`"label":"2_1","submit_ms":1796026352000,"run_ms":2000,"limit_ms":300000,"waited_ms":1000,"user":"root","group":"root","queue":"main","cpus":1,"memory_mb":100,"tokens":\{"foo":1,"sim":2\}`,
		`\{"id":6,.*"countables":\{"gpu":1\}`, `\{"id":7,.*"tokens":\{"foo":10\}`)
	if strings.Count(out, "\n") != 11 {
		t.Errorf("recorded is\n%s", out)
	}
}

func TestSlurmsAccountsAreSimulatedAsTheyAre(t *testing.T) {
	out := filepath.Join(t.TempDir(), "jobs.sacct.gz")
	if _, said, err := typed(t, "", append([]string{"trace", "record", "--from-slurm", "--to", "sacct", "--out", out}, program(t, "sacct", accounts(t))...)...); err != nil || said != "" {
		t.Fatal(said, err)
	}
	farm := fileOf(t, "farm.yaml", "cluster: {name: x}\nresources: [{name: foo, owned: 10}, {name: sim, owned: 4}]\nsimulation: {hosts: [{name: n, count: 3, cpus: 4, memory_mb: 4000, countables: [gpu=2]}]}\n")
	prints(t, []string{"simulate", "--cluster", farm, "--jobs", out}, `cluster x: 10 jobs from`, `\n10 +10 +0 +0 +0 +0`)
}

func TestWhatIsMissingForARecordOfSlurmIsSaid(t *testing.T) {
	record := []string{"trace", "record", "--from-slurm", "--out", "-"}
	for script, want := range map[string]string{
		"echo Slurm accounting storage is disabled >&2; exit 1\n":                                    "^sacct: refused: Slurm accounting storage is disabled; this Slurm keeps no accounts of ended jobs: it needs slurmdbd, and AccountingStorageType=",
		"echo sacct: error: Problem talking to the database: Connection refused >&2; exit 1\n":       "^sacct: refused: .*; slurmdbd does not answer: start it",
		"echo sacct: error: You are not running a supported accounting_storage plugin >&2; exit 1\n": "^sacct: refused: sacct: error: You are not running",
	} {
		refuses(t, append(record, program(t, "sacct", script)...), want)
	}
	flags := program(t, "sacct", accounts(t))
	for want, more := range map[string][]string{
		"^--since 5m is not before --until 2020-01-01; write an earlier one":                {"--since", "5m", "--until", "2020-01-01"},
		"^--since last week: write a day such as 2026-01-31":                                {"--since", "last week"},
		"^--zone Nowhere: there is no such time zone":                                       {"--zone", "Nowhere"},
		"^find Slurm's configuration: stat /nowhere: .*; name it with --conf or SLURM_CONF": {"--conf", "/nowhere"},
		"^read mapping: open /nowhere.yaml":                                                 {"--mapping", "/nowhere.yaml"},
		"^--to csv: write jsonl or swf":                                                     {"--to", "csv"},
	} {
		refuses(t, append(append(record, flags...), more...), want)
	}
	refuses(t, append([]string{"trace", "record", "--from-slurm", "--to", "sacct"}, flags...), "^name the file to write with --out")
	refuses(t, []string{"trace", "record", "--to", "sacct", "--out", "-"}, "^--to sacct: write jsonl or swf")
}

func TestAccountsWithoutLicencesAreSaidToBe(t *testing.T) {
	flags := program(t, "sacct", strings.TrimSpace(accounts(t))+" | sed 's/,license[^,|]*//g'\n")
	_, said, err := typed(t, "", append([]string{"trace", "record", "--from-slurm", "--out", "-"}, flags...)...)
	if err != nil || !strings.Contains(said, "No job in it has tokens. Slurm accounts for licences only where AccountingStorageTRES in slurm.conf names them") {
		t.Errorf("it says %q, %v", said, err)
	}
	mapping := fileOf(t, "map.yaml", "rules:\n- match: {queue: main}\n  set: {tokens: {foo: 2}}\n")
	if out, said, err := typed(t, "", append([]string{"trace", "record", "--from-slurm", "--out", "-", "--mapping", mapping}, flags...)...); err != nil || strings.Contains(said, "tokens") || strings.Count(out, `"tokens":{"foo":2}`) != 10 {
		t.Errorf("with a mapping it says %q, %v:\n%s", said, err, out)
	}
}

func TestMomentsAreReadInTheirZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 7, 2, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-07-01": "2026-06-30T22:00:00Z", "2026-07-01T08:00": "2026-07-01T06:00:00Z", "2026-07-01T08:00:01": "2026-07-01T06:00:01Z",
		"2026-07-01T08:00:00Z": "2026-07-01T08:00:00Z", "36h": "2026-06-30T12:00:00Z", "0s": "2026-07-02T00:00:00Z",
	} {
		at, err := timeOf("since", text, berlin, now)
		if expected, _ := time.Parse(time.RFC3339, want); err != nil || at != cluster.TimeOf(expected) {
			t.Errorf("%s is %s, %v, want %s", text, at.Std(), err, want)
		}
	}
	if _, err := timeOf("since", "-1h", berlin, now); err == nil {
		t.Error("what is yet to come is taken")
	}
}

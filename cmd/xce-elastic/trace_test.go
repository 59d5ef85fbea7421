package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// fileOf writes a file for a test.
func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const smallLog = "; MaxProcs: 8\n1 0 0 600 4 -1 -1 4 900 -1 1 1 1 1 2 -1 -1 -1\n2 60 0 0 8 -1 -1 8 60 -1 1 2 1 1 1 -1 -1 -1\n"

func TestATraceIsCheckedWithWhatHadToBeMended(t *testing.T) {
	log := fileOf(t, "small.swf", smallLog)
	prints(t, []string{"trace", "check", log},
		`SOURCE +.*small.swf \(swf\)`, `JOBS +2`, `ARRIVALS +0s to 1m0s after the log began`, `PROCESSORS +at most 8 for one job`,
		`USERS +2; groups: 1`, `QUEUE +JOBS\n1 +1\n2 +1`, `zero-run +1 +the run time is 0 or not known: taken as one second; .*small.swf:3 run time "0"`)
	prints(t, []string{"trace", "check", log, "-o", "json"}, `"jobs": 2`, `"rule": "zero-run"`)
	refuses(t, []string{"trace", "check", log, "--strict"}, `small.swf:3 run time "0": the run time is 0 or not known \(zero-run\); write how long the job ran`)
	refuses(t, []string{"trace", "check", log, "--refuse", "zero-run"}, `small.swf:3 run time`)
	prints(t, []string{"trace", "check", log, "--refuse", "no-estimate,too-large", "--processors", "8"}, `JOBS +2`)
	if out, _, err := typed(t, smallLog, "trace", "check", "-"); err != nil || !strings.Contains(out, "standard input (swf)") {
		t.Errorf("of standard input it says %s, %v", out, err)
	}
	mapping := fileOf(t, "map.yaml", "rules:\n- match: {user: '1'}\n  set: {tokens: {vcs: 2}}\n")
	prints(t, []string{"trace", "check", log, "--mapping", mapping}, `TOKENS OF +JOBS +MOST FOR ONE +TOKEN-HOURS\nvcs +1 +2 +0`, `unmapped +1`)
}

func TestWhatIsWrongWithTheFlagsOfATraceIsSaid(t *testing.T) {
	log := fileOf(t, "small.swf", smallLog)
	for want, args := range map[string][]string{
		"^--format: there is no format \"csv\"; use one of swf, sacct":             {"--format", "csv"},
		"^--zone Nowhere: there is no such time zone":                              {"--zone", "Nowhere"},
		"^--lsf-duration long: write job or duration":                              {"--lsf-duration", "long"},
		"^--lsf-memory-unit bits: write KB, MB, GB or TB":                          {"--lsf-memory-unit", "bits"},
		"^--processors -1: write how many there are":                               {"--processors", "-1"},
		"^there is no rule \"zero\"; use one of broken-row":                        {"--refuse", "zero"},
		"^read mapping: open /nowhere.yaml":                                        {"--mapping", "/nowhere.yaml"},
		"(?s)^the mapping is refused:\n  .*map.yaml:1: there is no key \"a\" here": {"--mapping", fileOf(t, "map.yaml", "a: 1\n")},
	} {
		refuses(t, append([]string{"trace", "check", log}, args...), want)
	}
	refuses(t, []string{"trace", "check"}, "^name the files, as in `xce-elastic trace check accounting.log`")
	refuses(t, []string{"trace", "chekc"}, `unknown command "chekc" for "xce-elastic trace"; did you mean check`)
	refuses(t, []string{"trace", "convert", log}, "^name the file to write with --out")
	refuses(t, []string{"trace", "convert", log, "--out", "-", "--to", "csv"}, "^--to csv: write jsonl or swf")
	refuses(t, []string{"trace", "convert", log, "--out", "/nowhere/a.jsonl"}, "^--out: ")
}

func TestATraceIsConvertedThereAndBack(t *testing.T) {
	log := fileOf(t, "small.swf", smallLog)
	lines := prints(t, []string{"trace", "convert", log, "--out", "-"}, `^\{"xce_trace":1,"source":".*small.swf \(swf\)","repairs":\[\{"rule":"zero-run"`, `\n\{"id":1,"submit_ms":0,"run_ms":600000,`)
	for _, name := range []string{"a.jsonl", "a.jsonl.gz", "a.swf", "a.swf.gz"} {
		out := filepath.Join(t.TempDir(), name)
		_, stderr, err := typed(t, "", "trace", "convert", log, "--out", out)
		if err != nil || !strings.Contains(stderr, "2 jobs are in "+out) || !strings.Contains(stderr, "zero-run") {
			t.Fatalf("%s: %v, said is %s", name, err, stderr)
		}
		_, want, _ := strings.Cut(lines, "\n")
		got := prints(t, []string{"trace", "convert", out, "--out", "-"}, "")
		if _, got, _ := strings.Cut(got, "\n"); got != want {
			t.Errorf("%s comes back as\n%s\nwant\n%s", name, got, want)
		}
		if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
			t.Errorf("beside %s lie %v, %v", name, left, err)
		}
	}
}

func TestTheMappingInTheHelpCanBeUsed(t *testing.T) {
	var example []string
	for line := range strings.Lines(aboutMappings) {
		if rest, indented := strings.CutPrefix(line, "  "); indented {
			example = append(example, rest)
		}
	}
	log := fileOf(t, "small.swf", strings.ReplaceAll(smallLog, " 4 ", " 20 "))
	out := prints(t, []string{"trace", "convert", log, "--mapping", fileOf(t, "map.yaml", strings.Join(example, "")), "--out", "-"}, `"cpus":20,"memory_mb":2000\}`)
	if len(example) < 6 || !strings.Contains(out, `{"rule":"unmapped"`) {
		t.Errorf("%q maps to\n%s", example, out)
	}
}

func TestTheHelpListsTheRules(t *testing.T) {
	prints(t, []string{"trace", "check", "--help"}, `no-estimate +there is no time limit: its run time taken as such`, `unmapped +no rule of the mapping`)
}

// A conversion that is refused leaves what was there.
func TestARefusedConversionWritesNothing(t *testing.T) {
	log, out := fileOf(t, "small.swf", smallLog), fileOf(t, "a.jsonl", "before")
	refuses(t, []string{"trace", "convert", log, "--strict", "--out", out}, "zero-run")
	if data, err := os.ReadFile(out); err != nil || string(data) != "before" {
		t.Errorf("there is %q, %v", data, err)
	}
}

func TestATraceIsRecordedFromALiveCluster(t *testing.T) {
	c := live(t)
	host := c.Client(api.HostRole, "h1")
	prints(t, []string{"submit", "--token", "vcs=2", "--cpus", "2", "--queue", "day", "--name", "sim", "--", "vcs", "-R"}, `job 1`)
	prints(t, []string{"submit", "--time-limit", "1h", "--not-before", "9h", "--", "true"}, `job 2`)
	c.Session()
	if err := host.EndJob(t.Context(), "h1", 1, api.JobEnd{State: cluster.JobDone}); err != nil {
		t.Fatal(err)
	}
	out := prints(t, []string{"trace", "record", "--out", "-"}, `^\{"xce_trace":1,"source":"the controller of test","repairs":\[\{"rule":"waiting"`,
		`"user":"you","queue":"day","cpus":2,"tokens":\{"vcs":2\},"name":"sim","command":\["vcs","-R"\]\}`, `"id":2,"submit_ms":\d+,"run_ms":3600000,"limit_ms":3600000,"user":"you"`)
	if strings.Count(out, "\n") != 3 {
		t.Errorf("recorded is\n%s", out)
	}
	prints(t, []string{"trace", "check", fileOf(t, "live.jsonl", out)}, `JOBS +2`, `made from the controller of test`)
}

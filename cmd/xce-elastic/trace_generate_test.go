package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/simulation/trace"
)

func TestATraceIsMadeUpAndReadAgain(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		args []string
		jobs int
		want string
	}{
		{[]string{"lublin", "--jobs", "500", "--processors", "64", "--load", "0.7"}, 500, `LOAD +0\.\d+ of 64 processors`},
		{[]string{"lublin", "--jobs", "500", "--classes", "whole", "--together", "5", "--users", "3", "--queue", "short=1h", "--queue", "long"}, 500, `whole +500 +3`},
		{[]string{"eda", "--jobs", "2000", "--span", "14d", "--start", "2026-02-02"}, 2000, `SPAN +3\d\dh.* from 2026-02-02T00:00:00Z on`},
		{[]string{"poisson", "--jobs", "300", "--rate", "60", "--run", "5m"}, 300, `poisson +300`},
		{[]string{"long-queue", "--jobs", "3000"}, 3000, `campaign +3000`},
	} {
		for _, name := range []string{"made.jsonl", "made.jsonl.gz", "made.swf"} {
			file := filepath.Join(folder, name)
			prints(t, append(append([]string{"trace", "generate"}, c.args...), "--seed", "7", "--out", file), c.want, `SOURCE +generated: `+c.args[0]+`, seed 7`)
			made, err := trace.Read([]string{file}, trace.Options{})
			if err != nil || len(made.Jobs) != c.jobs {
				t.Fatalf("%q: %v", c.args, err)
			}
			if name != "made.swf" && len(made.Repairs) > 0 {
				t.Errorf("%q: mended is %+v", c.args, made.Repairs)
			}
		}
	}
}

func TestTheSameFlagsMakeTheSameFile(t *testing.T) {
	var files [3][]byte
	for i, seed := range []string{"3", "3", "4"} {
		out, _, err := typed(t, "", "trace", "generate", "eda", "--jobs", "300", "--seed", seed, "--out", "-")
		if err != nil {
			t.Fatal(err)
		}
		files[i] = []byte(out)
	}
	if len(files[0]) == 0 || !bytes.Equal(files[0], files[1]) || bytes.Equal(files[0], files[2]) {
		t.Errorf("files of %d, %d and %d bytes are not the same, the same, and another", len(files[0]), len(files[1]), len(files[2]))
	}
}

func TestThePrintedProfileIsReadAsTheBuiltInOne(t *testing.T) {
	folder := t.TempDir()
	profile := filepath.Join(folder, "mine.yaml")
	text := prints(t, []string{"trace", "generate", "eda", "--print-profile"}, `name: nightly-regression`)
	if err := os.WriteFile(profile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	built, _, _ := typed(t, "", "trace", "generate", "eda", "--jobs", "100", "--out", "-")
	if own, _, err := typed(t, "", "trace", "generate", "eda", "--jobs", "100", "--profile", profile, "--out", "-"); err != nil || jobsOf(own) != jobsOf(built) || len(jobsOf(own)) < 1000 {
		t.Errorf("the own profile makes other jobs: %v", err)
	}
	if err := os.WriteFile(profile, []byte(strings.Replace(text, "weight: 55 ", "weight: -5 ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, []string{"trace", "generate", "eda", "--profile", profile, "--out", "-"}, `mine.yaml:\d+: needs\[0\].weight: -5 is not possible; write a whole number from 1`)
}

// jobsOf answers a file of JSON lines without its head, which says how it was made.
func jobsOf(text string) string {
	_, jobs, _ := strings.Cut(text, "\n")
	return jobs
}

func TestWhatCannotBeMadeUpIsRefusedByTheFlag(t *testing.T) {
	for want, args := range map[string][]string{
		`^write one kind of lublin, eda, poisson, long-queue, as in`:                {},
		`^there is no kind "lubin"; write one of lublin, eda, poisson, long-queue$`: {"lubin"},
		`^name the file to write with --out`:                                        {"eda"},
		`^--span soon: write a length of time such as 14d, 36h or 1d12h`:            {"eda", "--span", "soon"},
		`^--span 0d: nothing happens in no time`:                                    {"eda", "--span", "0d"},
		`^--span -1h: write a length of time`:                                       {"eda", "--span", "-1h"},
		`^--start monday: write a day such as 2026-01-05, or a time`:                {"eda", "--start", "monday"},
		`^--queue short=: `: {"lublin", "--queue", "short="},
		`^--queue\[0\]: the last queue has a longest time limit`:                             {"lublin", "--queue", "short=1h"},
		`^--classes both: there is no "both"; write batch`:                                   {"lublin", "--classes", "both"},
		`^--classes batch,batch: batch is there twice`:                                       {"lublin", "--classes", "batch,batch"},
		`^--load: jobs and span are given too, and make it; give two of jobs, span and load`: {"lublin", "--load", "1", "--jobs", "1", "--span", "1d"},
		`^--rate: kind eda does not heed it; leave it out; it is for poisson`:                {"eda", "--rate", "1"},
		`^--jobs: -5 is not possible`:                                                        {"eda", "--jobs", "-5"},
		`^--jobs many: write a whole number`:                                                 {"eda", "--jobs", "many"},
		`^--load high: write a number such as 0.8$`:                                          {"eda", "--load", "high"},
		`^--seed -1: write a whole number from 0 on$`:                                        {"eda", "--seed", "-1"},
		`^--profile: open nowhere.yaml`:                                                      {"eda", "--profile", "nowhere.yaml"},
		`^--print-profile: lublin has no profile`:                                            {"lublin", "--print-profile"},
	} {
		if want[1:5] != "name" {
			args = append(args, "--out", filepath.Join(t.TempDir(), "x.jsonl"))
		}
		refuses(t, append([]string{"trace", "generate"}, args...), want)
	}
}

func TestLengthsOfTimeMayHaveDays(t *testing.T) {
	for text, hours := range map[string]int64{"14d": 336, "36h": 36, "1d12h": 36, "2d30m": 48} {
		got, err := parseLength("--span", text)
		if err != nil || int64(got)/3_600_000 != hours {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
}

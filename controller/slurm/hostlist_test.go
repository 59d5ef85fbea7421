package slurm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpandHosts(t *testing.T) {
	for list, want := range map[string]string{
		"n1":                "n1",
		"c[1-3,07-09],n4":   "c1 c2 c3 c07 c08 c09 n4",
		"r[1-2]n[01-02]-ib": "r1n01-ib r1n02-ib r2n01-ib r2n02-ib",
		"a[9-11]":           "a9 a10 a11",
		"a[098-101]":        "a098 a099 a100 a101",
		"a[5],a[5]":         "a5 a5",
		"a-b.c_d":           "a-b.c_d",
	} {
		got, err := ExpandHosts(list)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v; want %s", list, got, err, want)
		}
	}
}

func TestExpandHostsRefuses(t *testing.T) {
	for list, want := range map[string]string{
		"":                         "at 0: a name is missing",
		"a,":                       "at 2: a name is missing",
		"a,,b":                     "at 2: a name is missing",
		"a[1-3":                    "at 1: the bracket is not closed",
		"a]":                       "at 1: ",
		"a b":                      "at 1: ",
		"a[x]":                     "at 1: \"x\" is no range",
		"a[]":                      "at 1: \"\" is no range",
		"a[3-1]":                   "at 1: the range \"3-1\" runs backwards",
		"a[1-2-3]":                 "is no range",
		"a[[1]]":                   "is no range",
		"a[0-999999999]":           "more than 65536 hosts",
		"a[0-65535],b":             "more than 65536 hosts",
		"a[1-300]b[1-300]":         "more than 65536 hosts",
		"a[9999999999999999999]":   "is no range",
		"a[1-999999999999999999]b": "more than 65536 hosts",
	} {
		if _, err := ExpandHosts(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", list, err, want)
		}
	}
	if all, err := ExpandHosts("a[0-65535]"); err != nil || len(all) != 65536 {
		t.Errorf("%d, %v", len(all), err)
	}
}

// What a range stands for has as many digits as its beginning, at least.
func TestExpandHostsKeepsZeros(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, more, width := rapid.Int64Range(0, 2000).Draw(t, "from"), rapid.Int64Range(0, 200).Draw(t, "more"), rapid.IntRange(1, 6).Draw(t, "width")
		got, err := ExpandHosts(fmt.Sprintf("h[%0*d-%d]x", width, from, from+more))
		var want []string
		for n := from; n <= from+more; n++ {
			want = append(want, fmt.Sprintf("h%0*dx", width, n))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, %v; want %v", got, err, want)
		}
	})
}

func FuzzExpandHosts(f *testing.F) {
	f.Add("c[1-3,07-09],n4")
	f.Add("[")
	f.Fuzz(func(t *testing.T, list string) {
		names, err := ExpandHosts(list)
		if err == nil && (len(names) == 0 || len(names) > mostHosts || slices.Contains(names, "")) {
			t.Errorf("%q: %d names", list, len(names))
		}
	})
}

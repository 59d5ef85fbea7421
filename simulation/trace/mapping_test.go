package trace_test

import (
	"strings"
	"testing"

	"xce.internal/elastic/simulation/trace"
)

func mapping(t testing.TB, text string) *trace.Mapping {
	t.Helper()
	m, err := trace.ParseMapping("map.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const mapped = `{"id":1,"submit_ms":0,"run_ms":1000,"user":"ann","group":"chip","application":"vcs","queue":"day","cpus":10,"name":"regress_7","command":["/tools/vcs","-R"]}`

func TestTheFirstRuleThatMatchesIsUsed(t *testing.T) {
	for match, matches := range map[string]bool{
		"{}": true, "{user: ann}": true, "{user: [ben, 'a*']}": true, "{user: ben}": false, "{group: 'c?ip'}": true, "{queue: night}": false,
		"{application: vcs, user: ann}": true, "{application: vcs, user: ben}": false, "{name: 'regress_*'}": true, "{name: 'regress'}": false,
		"{command: '*/vcs *'}": true, "{command: 'vcs*'}": false, "{processors: 10}": true, "{processors: 1-10}": true, "{processors: 11-}": false, "{processors: 2-9}": false,
	} {
		m := mapping(t, "rules:\n- {match: "+match+", set: {tokens: {first: 1}}}\n- {match: {user: '*'}, set: {tokens: {second: 1}}}\n")
		tr := read(t, mapped, trace.Options{Mapping: m})
		if got := tr.Jobs[0].Shape.Tokens["first"] == 1; got != matches || len(tr.Jobs[0].Shape.Tokens) != 1 {
			t.Errorf("%s matches: %t", match, got)
		}
		checkRepairs(t, tr, "")
	}
}

func TestWhatARuleSaysStandsOverTheRecord(t *testing.T) {
	const job = `{"id":1,"submit_ms":0,"run_ms":1000,"limit_ms":5000,"queue":"day","cpus":10,"memory_mb":7,"tokens":{"a":1,"b":1}`
	for set, want := range map[string]string{
		"{tokens: {a: 3, b: 0, c: 1}}":                         `"limit_ms":5000,"queue":"day","cpus":10,"memory_mb":7,"tokens":{"a":3,"c":1}}`,
		"{alternatives: [{x: 1}, {y: 2}]}":                     `"limit_ms":5000,"queue":"day","cpus":10,"memory_mb":7,"tokens":{"a":1,"b":1},"alternatives":[{"x":1},{"y":2}]}`,
		"{memory_mb: 99}":                                      `"limit_ms":5000,"queue":"day","cpus":10,"memory_mb":99,"tokens":{"a":1,"b":1}}`,
		"{memory_mb_per_processor: 400000}":                    `"limit_ms":5000,"queue":"day","cpus":10,"memory_mb":4000000,"tokens":{"a":1,"b":1}}`,
		"{memory_mb_per_processor: 5}":                         `"limit_ms":5000,"queue":"day","cpus":10,"memory_mb":50,"tokens":{"a":1,"b":1}}`,
		"{processors_per_host: 4}":                             `"limit_ms":5000,"queue":"day","nodes":3,"cpus":4,"memory_mb":3,"tokens":{"a":1,"b":1}}`,
		"{processors_per_host: 5, memory_mb_per_processor: 3}": `"limit_ms":5000,"queue":"day","nodes":2,"cpus":5,"memory_mb":15,"tokens":{"a":1,"b":1}}`,
		"{features: [avx, big], constraint: a | b}":            `"limit_ms":5000,"queue":"day","cpus":10,"memory_mb":7,"constraint":"avx & big & (a | b)","tokens":{"a":1,"b":1}}`,
		"{queue: night, priority: -3, exclusive: true}":        `"limit_ms":5000,"queue":"night","cpus":10,"memory_mb":7,"exclusive":true,"tokens":{"a":1,"b":1},"priority":-3}`,
		"{time_limit: 2h, tokens_for: 30s}":                    `"limit_ms":7200000,"tokens_for_ms":30000,"queue":"day","cpus":10,"memory_mb":7,"tokens":{"a":1,"b":1}}`,
		"{countables: {gpus: 1}, application: vcs}":            `"limit_ms":5000,"application":"vcs","queue":"day","cpus":10,"memory_mb":7,"countables":{"gpus":1},"tokens":{"a":1,"b":1}}`,
	} {
		m := mapping(t, "rules:\n- set: "+set+"\n")
		checkJobs(t, read(t, job+"}", trace.Options{Mapping: m}), `{"id":1,"submit_ms":0,"run_ms":1000,`+want)
	}
}

func TestDefaultsAreForWhatNobodySays(t *testing.T) {
	m := mapping(t, `
defaults: {memory_mb_per_processor: 10, queue: other, time_limit: 1h, tokens: {base: 1}, processors_per_host: 4}
rules:
- {match: {user: ann}, set: {memory_mb: 3}}
`)
	tr := read(t, `{"id":1,"submit_ms":0,"run_ms":1000,"user":"ann","cpus":2}
{"id":2,"submit_ms":0,"run_ms":1000,"user":"ben","cpus":8}
{"id":3,"submit_ms":0,"run_ms":1000,"limit_ms":5000,"user":"ben","queue":"day","nodes":5,"cpus":2,"memory_mb":7,"tokens":{"a":1}}
`, trace.Options{Mapping: m})
	checkJobs(t, tr, `{"id":1,"submit_ms":0,"run_ms":1000,"limit_ms":3600000,"user":"ann","queue":"other","cpus":2,"memory_mb":3,"tokens":{"base":1}}
{"id":2,"submit_ms":0,"run_ms":1000,"limit_ms":3600000,"user":"ben","queue":"other","nodes":2,"cpus":4,"memory_mb":40,"tokens":{"base":1}}
{"id":3,"submit_ms":0,"run_ms":1000,"limit_ms":5000,"user":"ben","queue":"day","nodes":5,"cpus":2,"memory_mb":7,"tokens":{"a":1}}`)
	checkRepairs(t, tr, "unmapped 2")
}

func TestResourcesOfRecordsBecomeTokensByTheMapping(t *testing.T) {
	m := mapping(t, "resources: {vcs: synopsys_vcs, verdi: ''}\n")
	for name, want := range map[string]string{"pbs.acct": `{"synopsys_vcs":2}`, "ge.acct": `{"synopsys_vcs":1}`, "lsf.acct": `{"synopsys_vcs":2}`, "sacct.acct": `{"synopsys_vcs":2}`} {
		tr := read(t, sample(t, name), trace.Options{Mapping: m})
		at := 0
		if name == "sacct.acct" {
			at = 1
		}
		if got := jsonOf(t, tr.Jobs[at].Shape.Tokens); got != want {
			t.Errorf("in %s the tokens are %s, want %s", name, got, want)
		}
	}
}

// Each job of a shape counts, also where shapes are found once only.
func TestEveryJobIsMappedAndCounted(t *testing.T) {
	m := mapping(t, "rules:\n- {match: {user: '1', processors: 5}, set: {processors_per_host: 2, time_limit: 1h}}\n")
	text := strings.Repeat("1 0 0 10 5 -1 -1 1 20 -1 1 1\n", 3) + strings.Repeat("1 0 0 10 5 -1 -1 1 20 -1 1 2\n", 4)
	tr := read(t, text, trace.Options{Mapping: m})
	checkRepairs(t, tr, "uneven-hosts 3, id-reused 6, unmapped 4")
	if s := tr.Jobs[0].Shape; s.Nodes != 3 || s.CPUs != 2 || tr.Jobs[2].Limit != 3_600_000 || tr.Jobs[3].Limit != 20_000 {
		t.Errorf("mapped is %+v", s)
	}
}

func TestFaultsOfAMappingAreNamedWithTheirLines(t *testing.T) {
	for text, want := range map[string]string{
		"rule: []\n":                                             `map.yaml:1: there is no key "rule" here; use one of defaults, resources, rules`,
		"rules:\n- match: {usr: a}\n":                            `map.yaml:2: there is no key "usr" here; use one of application, command,`,
		"rules:\n- set:\n    token: {a: 1}\n":                    `map.yaml:3: there is no key "token" here`,
		"rules: {a: 1}\n":                                        "map.yaml:1: it is not a list",
		"rules:\n- set: 5\n":                                     "map.yaml:2: it is not a section",
		"rules:\n- set:\n    tokens: {vcs: two}\n":               "map.yaml:3: two is not a whole number",
		"rules:\n- set:\n    tokens: 5\n":                        "map.yaml:3: 5 is not a section of names and whole numbers",
		"rules:\n- set:\n    tokens: {vcs: -1}\n":                "map.yaml:3: -1 vcs cannot be; write a number from 0 to",
		"rules:\n- set:\n    tokens: {'v cs': 1}\n":              `map.yaml:3: name "v cs" is not valid`,
		"rules:\n- set:\n    priority: high\n":                   "map.yaml:3: high is not a whole number",
		"rules:\n- set:\n    exclusive: 3\n":                     "map.yaml:3: 3 is not true or false",
		"rules:\n- set:\n    time_limit: 30\n":                   `map.yaml:3: duration "30" is not a number with a unit`,
		"rules:\n- set:\n    time_limit: -1h\n":                  "map.yaml:3: -1h cannot be; write a length of time such as 30m",
		"rules:\n- set:\n    features: ['a | b']\n":              `map.yaml:3: feature "a | b" cannot be asked for`,
		"rules:\n- set:\n    constraint: a &\n":                  "map.yaml:3: constraint",
		"rules:\n- match:\n    processors: 9-2\n":                `map.yaml:3: "9-2" is no range of processors; write one such as 4, 1-16 or 32-`,
		"rules:\n- match:\n    processors: many\n":               `map.yaml:3: "many" is no range of processors`,
		"rules:\n- set:\n    memory_mb: 0\n":                     "map.yaml:3: 0 cannot be; write a number from 1 to",
		"rules:\n- set:\n    alternatives: [{}]\n":               "map.yaml:3: the alternative has no tokens",
		"defaults: {memory_mb: 1, memory_mb_per_processor: 1}\n": "map.yaml:1: there are memory_mb and memory_mb_per_processor; keep one",
		"defaults: {queue: a b}\n":                               `map.yaml:1: name "a b" is not valid`,
		"resources: {a: 'b c'}\n":                                `map.yaml:1: name "b c" is not valid`,
		"rules:\n- a: [\n":                                       "map.yaml:",
		"rules: []\nrules: []\n":                                 "map.yaml:2: mapping key \"rules\" already defined at line 1",
		"- a\n":                                                  "map.yaml:1: it is not a section",
	} {
		if _, err := trace.ParseMapping("map.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives\n%v\nwant %s", text, err, want)
		}
	}
	if _, err := trace.ReadMapping("testdata/none.yaml"); err == nil {
		t.Error("a file that is not there is read")
	}
}

package config

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"xce.internal/elastic/cluster"
)

// places knows where keys are set: the lines of a file by their paths in lower
// case, and what sets a key over the file.
type places struct {
	file     string
	lines    map[string]int
	over     map[string]string
	problems cluster.Problems // of the keys and sections themselves
}

func index(file string, document *yaml.Node, flags *pflag.FlagSet) *places {
	p := &places{file: file, lines: map[string]int{}, over: map[string]string{}}
	if len(document.Content) > 0 {
		p.walk("", document.Content[0], reflect.TypeFor[Config]())
	}
	for key := range defaults {
		if name := variable(key); os.Getenv(name) != "" {
			p.over[key] = name
		}
		if flags != nil && flags.Changed(key) {
			p.over[key] = "--" + key
		}
	}
	return p
}

// walk notes the lines of keys, and finds those that there are not, that are
// there twice, or that are no sections where they should be. A nil type knows no keys.
func (p *places) walk(path string, node *yaml.Node, t reflect.Type) {
	known := keys(t)
	switch {
	case node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if key.Tag != "!!merge" {
				p.key(path, key, known)
				p.walk(join(path, key.Value), node.Content[i+1], known[strings.ToLower(key.Value)])
			}
		}
	case known != nil && node.Kind != yaml.AliasNode && node.Tag != "!!null":
		p.problems = append(p.problems, cluster.Problem{Path: path, What: noSection.what, Remedy: noSection.remedy})
	case node.Kind == yaml.SequenceNode:
		if t != nil && t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		for i, item := range node.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			p.lines[at] = item.Line
			p.walk(at, item, t)
		}
	}
}

func (p *places) key(path string, key *yaml.Node, known map[string]reflect.Type) {
	at := join(path, key.Value)
	line, twice := p.lines[at]
	p.lines[at] = key.Line
	if twice {
		p.problems = append(p.problems, cluster.Problem{Path: at, What: fmt.Sprintf("it is set in line %d already", line), Remedy: "set each key once"})
	}
	if _, found := known[strings.ToLower(key.Value)]; known != nil && !found {
		p.problems = append(p.problems, cluster.Problem{Path: at, What: "there is no such key", Remedy: suggest(key.Value, known)})
	}
}

func join(path, key string) string {
	if path == "" {
		return strings.ToLower(key)
	}
	return path + "." + strings.ToLower(key)
}

// keys are the known keys of a section and their types, or nil for what is no section.
func keys(t reflect.Type) map[string]reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			maps.Copy(known, keys(field.Type))
		} else if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			known[name] = field.Type
		}
	}
	return known
}

// suggest names the known key that is nearest to a misspelt one, or all of them.
func suggest(key string, known map[string]reflect.Type) string {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	best, least := "", 3
	for _, name := range names {
		if d := distance(strings.ToLower(key), name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return "remove it; known here are " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// distance is the edit distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost++
			}
			left = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// knows tells whether a problem of the same key was found already.
func (p *places) knows(problem cluster.Problem) bool {
	return slices.ContainsFunc(p.problems, func(q cluster.Problem) bool { return q.Path == problem.Path })
}

// refuse turns problems into a refusal with places.
func (p *places) refuse(problems cluster.Problems) *Refused {
	r := &Refused{}
	for _, problem := range problems {
		r.Faults = append(r.Faults, p.of(problem.Path)+problem.String())
	}
	return r
}

// of answers the place of a key: what sets it over the file, or its line there,
// or that of the nearest part of its path that is in the file.
func (p *places) of(path string) string {
	at := strings.ToLower(path)
	if name, found := p.over[at]; found {
		return name + ": "
	}
	if p.file == "" {
		return ""
	}
	for at != "" {
		if line, found := p.lines[at]; found {
			return fmt.Sprintf("%s:%d: ", p.file, line)
		}
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	return p.file + ": "
}

// tabbed finds lines that are indented with a tab.
var tabbed = regexp.MustCompile(`(?m)^ *\t`)

// refuseYAML turns what the YAML parser says into a refusal with its line.
func refuseYAML(file string, data []byte, err error) *Refused {
	text := strings.TrimPrefix(err.Error(), "yaml: ") + "; mend the YAML"
	if tabbed.Match(data) && (strings.Contains(text, "tab character") || strings.Contains(text, "start any token")) {
		text += ": indent with blanks, not tabs"
	}
	if rest, found := strings.CutPrefix(text, "line "); found {
		return &Refused{Faults: []string{fmt.Sprintf("%s:%s", file, rest)}}
	}
	return &Refused{Faults: []string{fmt.Sprintf("%s: %s", file, text)}}
}

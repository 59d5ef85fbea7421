package synthetic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"xce.internal/elastic/cluster"
)

// What a profile's need has where nothing is written.
var usualNeed = Need{
	Users: 10, Together: 1, Spacing: cluster.Second, WeekendPercent: 100, Run: RunTime{Spread: 2, Longest: 30 * dayLength},
}

// UnmarshalYAML fills in what is not written.
func (n *Need) UnmarshalYAML(node *yaml.Node) error {
	type written Need
	w := written(usualNeed)
	err := node.Decode(&w)
	if w.MostTogether == 0 {
		w.MostTogether = min(w.Together*10, mostTogether)
	}
	if len(w.Hours) == 0 && w.Otherwise == 0 {
		w.Otherwise = 1
	}
	*n = Need(w)
	return err
}

// UnmarshalYAML fills in what is not written.
func (a *Ask) UnmarshalYAML(node *yaml.Node) error {
	type written Ask
	w := written{Weight: 1, CPUs: 1}
	err := node.Decode(&w)
	*a = Ask(w)
	return err
}

// ReadProfile reads a profile from YAML. What is wrong is answered as [cluster.Problems],
// whose paths have the file and the line.
func ReadProfile(file string, data []byte) (*Profile, error) {
	document, err := oneDocument(data)
	if err != nil {
		return nil, cluster.Problems{inLine(file, err.Error())}
	}
	var p Profile
	err = document.Decode(&p)
	if err != nil && strings.Contains(err.Error(), "contains itself") {
		return nil, cluster.Problems{inLine(file, err.Error())} // a walk would have no end
	}
	w := walk{file: file, lines: map[string]int{}}
	w.node("", document, reflect.TypeFor[Profile]())
	if len(w.problems) == 0 {
		w.problems = decodeProblems(file, err)
	}
	if len(w.problems) == 0 {
		w.problems = p.Validate()
		w.place()
	}
	if err := w.problems.Err(); err != nil {
		return nil, err
	}
	return &p, nil
}

// oneDocument answers the keys of a file that has one document.
func oneDocument(data []byte) (*yaml.Node, error) {
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("line 1: there are no keys; begin with jobs_per_day and needs")
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("line %d: a second document begins; keep one", second.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return document.Content[0], nil
}

var (
	linePattern = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	kindPattern = regexp.MustCompile("^cannot unmarshal !!\\S+(?: `(.*)`)? into (\\S+)$")
)

// inLine turns a message that begins with a line into a problem.
func inLine(file, message string) cluster.Problem {
	at, what := file, strings.TrimPrefix(message, "yaml: ")
	if found := linePattern.FindStringSubmatch(message); found != nil {
		at, what = file+":"+found[1], found[2]
	}
	if found := kindPattern.FindStringSubmatch(what); found != nil {
		return cluster.Problem{Path: at, What: fmt.Sprintf("%q is of the wrong kind", found[1]), Remedy: wish(found[2])}
	}
	if what, remedy, ok := strings.Cut(what, "; "); ok {
		return cluster.Problem{Path: at, What: what, Remedy: remedy}
	}
	return cluster.Problem{Path: at, What: what, Remedy: "write YAML as in the built-in profile, which `xce-elastic trace generate eda --print-profile` prints"}
}

// wish says what is to be written for a value of one of Go's types.
func wish(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"):
		return "write a whole number"
	case strings.HasPrefix(kind, "float"):
		return "write a number"
	case kind == "bool":
		return "write true or false"
	case kind == "string":
		return "write text, in quotes where it looks like something else"
	case strings.HasPrefix(kind, "[]"):
		return "write a list, each item behind a dash"
	case strings.HasSuffix(kind, "Duration"):
		return "write a length of time such as 5m"
	}
	return "write keys below it, indented"
}

func decodeProblems(file string, err error) (ps cluster.Problems) {
	var kinds *yaml.TypeError
	if err == nil {
		return nil
	}
	if !errors.As(err, &kinds) {
		return cluster.Problems{inLine(file, err.Error())}
	}
	for _, message := range kinds.Errors {
		ps = append(ps, inLine(file, message))
	}
	return ps
}

// walk notes the lines of what is written, and finds keys that there are not.
type walk struct {
	file     string
	lines    map[string]int
	problems cluster.Problems
}

func (w *walk) node(path string, node *yaml.Node, t reflect.Type) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	w.lines[path] = node.Line
	switch {
	case node.Kind == yaml.ScalarNode:
		w.scalar(path, node, t)
	case node.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for i, item := range node.Content {
			w.node(fmt.Sprintf("%s[%d]", path, i), item, t.Elem())
		}
	case node.Kind == yaml.MappingNode && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		for i := 0; i+1 < len(node.Content); i += 2 {
			w.key(path, node.Content[i], node.Content[i+1], t)
		}
	}
}

// scalar refuses what decoding would take as something else, or without its line.
func (w *walk) scalar(path string, node *yaml.Node, t reflect.Type) {
	what, remedy := "", ""
	switch {
	case t == reflect.TypeFor[cluster.Duration]():
		var d cluster.Duration
		if err := d.UnmarshalText([]byte(node.Value)); err != nil {
			what, remedy = err.Error(), "write a length of time such as 5m"
		}
	case t.Kind() == reflect.Int64 && node.Tag == "!!float":
		what, remedy = fmt.Sprintf("%s is not a whole number", node.Value), "write a whole number"
	}
	if what != "" {
		w.problem(path, node.Line, what, remedy)
	}
}

func (w *walk) problem(path string, line int, what, remedy string) {
	w.problems = append(w.problems, cluster.Problem{Path: fmt.Sprintf("%s:%d: %s", w.file, line, path), What: what, Remedy: remedy})
}

func (w *walk) key(path string, key, value *yaml.Node, t reflect.Type) {
	at := strings.TrimPrefix(path+"."+key.Value, ".")
	switch {
	case key.Tag == "!!merge":
		w.node(path, value, t)
		return
	case t.Kind() == reflect.Map:
		w.node(at, value, t.Elem())
		w.lines[at] = key.Line
		return
	}
	var known []string
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("yaml")
		if name == key.Value {
			w.node(at, value, t.Field(i).Type)
			w.lines[at] = key.Line
			return
		}
		known = append(known, name)
	}
	w.problem(at, key.Line, "there is no such key", "remove it; known here are "+strings.Join(known, ", "))
}

// place says for each problem in which line it is: that of its path, or of what the path is in.
func (w *walk) place() {
	for i := range w.problems {
		p := &w.problems[i]
		for at := p.Path; ; at = at[:max(strings.LastIndexAny(at, ".["), 0)] {
			if line := w.lines[at]; line > 0 {
				p.Path = fmt.Sprintf("%s:%d: %s", w.file, line, p.Path)
				break
			}
			if at == "" {
				break
			}
		}
	}
}

package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"xce.internal/elastic/cluster"
)

// mappingFile is the file of a mapping.
type mappingFile struct {
	Resources map[string]placed[string] `yaml:"resources"`
	Defaults  wishesText                `yaml:"defaults"`
	Rules     []ruleText                `yaml:"rules"`
}

type ruleText struct {
	Match matchText  `yaml:"match"`
	Set   wishesText `yaml:"set"`
}

type matchText struct {
	User        placed[oneOrMany] `yaml:"user"`
	Group       placed[oneOrMany] `yaml:"group"`
	Queue       placed[oneOrMany] `yaml:"queue"`
	Application placed[oneOrMany] `yaml:"application"`
	Command     placed[oneOrMany] `yaml:"command"`
	Name        placed[oneOrMany] `yaml:"name"`
	Processors  placed[string]    `yaml:"processors"`
}

type wishesText struct {
	Tokens             placed[map[string]int64]   `yaml:"tokens"`
	Alternatives       placed[[]map[string]int64] `yaml:"alternatives"`
	MemoryMB           placed[int64]              `yaml:"memory_mb"`
	MemoryPerProcessor placed[int64]              `yaml:"memory_mb_per_processor"`
	Features           placed[oneOrMany]          `yaml:"features"`
	Constraint         placed[string]             `yaml:"constraint"`
	Queue              placed[string]             `yaml:"queue"`
	Application        placed[string]             `yaml:"application"`
	Priority           placed[*int64]             `yaml:"priority"`
	Countables         placed[map[string]int64]   `yaml:"countables"`
	Exclusive          placed[*bool]              `yaml:"exclusive"`
	TimeLimit          placed[string]             `yaml:"time_limit"`
	TokensFor          placed[string]             `yaml:"tokens_for"`
	ProcessorsPerHost  placed[int64]              `yaml:"processors_per_host"`
}

// placed is a value and its line.
type placed[T any] struct {
	is   T
	line int
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *placed[T]) UnmarshalYAML(n *yaml.Node) error {
	p.line = n.Line
	return n.Decode(&p.is)
}

// oneOrMany is a text, or a list of them.
type oneOrMany []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *oneOrMany) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*o = oneOrMany{n.Value}
		return nil
	}
	return n.Decode((*[]string)(o))
}

// ReadMapping reads a mapping file. Its faults are named with their lines.
func ReadMapping(file string) (*Mapping, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read mapping: %w", err)
	}
	return ParseMapping(file, data)
}

// ParseMapping reads a mapping; the name stands for its file in places.
func ParseMapping(name string, data []byte) (*Mapping, error) {
	p := &mappingParser{file: name}
	var document yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		p.yaml(err)
		return nil, p.refusal()
	}
	var file mappingFile
	if len(document.Content) > 0 {
		p.keys(document.Content[0], reflect.TypeFor[mappingFile]())
		if len(p.problems) == 0 {
			if err := document.Decode(&file); err != nil {
				p.yaml(err)
			}
		}
	}
	if len(p.problems) > 0 {
		return nil, p.refusal()
	}
	m := p.mapping(&file)
	if len(p.problems) > 0 {
		return nil, p.refusal()
	}
	return m, nil
}

// mappingParser collects the faults of a mapping.
type mappingParser struct {
	file     string
	problems cluster.Problems
}

func (p *mappingParser) add(line int, what, remedy string) {
	p.problems = append(p.problems, cluster.Problem{Path: fmt.Sprintf("%s:%d", p.file, line), What: what, Remedy: remedy})
}

func (p *mappingParser) refusal() error {
	return fmt.Errorf("the mapping is refused:\n  %s", strings.ReplaceAll(p.problems.Error(), "\n", "\n  "))
}

var (
	yamlLine  = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	yamlWrong = regexp.MustCompile("^cannot unmarshal !!(\\w+)(?: (`[^`]*`))? into (.*)$")
)

// yaml notes what the YAML parser says, with its line.
func (p *mappingParser) yaml(err error) {
	texts := []string{err.Error()}
	var types *yaml.TypeError
	if errors.As(err, &types) {
		texts = types.Errors
	}
	for _, text := range texts {
		line, what := 1, strings.TrimPrefix(text, "yaml: ")
		if found := yamlLine.FindStringSubmatch(text); found != nil {
			line, _ = strconv.Atoi(found[1])
			what = found[2]
		}
		if found := yamlWrong.FindStringSubmatch(what); found != nil {
			what = strings.TrimSpace(fmt.Sprintf("%s is not %s", strings.Trim(found[2], "`"), kindOf(found[3])))
			if found[2] == "" {
				what = fmt.Sprintf("it is not %s", kindOf(found[3]))
			}
		}
		p.add(line, what, "write it as the other settings of the mapping are")
	}
}

// kindOf says in words what a Go type is.
func kindOf(t string) string {
	switch {
	case strings.HasPrefix(t, "map"):
		return "a section of names and whole numbers"
	case strings.HasPrefix(t, "["):
		return "a list"
	case strings.HasSuffix(t, "int64"):
		return "a whole number"
	case strings.HasSuffix(t, "bool"):
		return "true or false"
	case t == "string":
		return "a text"
	}
	return "a section"
}

// keys refuses keys that there are not.
func (p *mappingParser) keys(n *yaml.Node, t reflect.Type) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			p.keys(item, t.Elem())
		}
		return
	}
	known := yamlKeys(t)
	if len(known) == 0 || n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.add(n.Line, "it is not a section", "write its keys below it, indented: "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		inner, found := known[key.Value]
		if !found {
			p.add(key.Line, fmt.Sprintf("there is no key %q here", key.Value), "use one of "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			continue
		}
		p.keys(value, inner)
	}
}

func yamlKeys(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return known
	}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			known[name] = t.Field(i).Type
		}
	}
	return known
}

func (p *mappingParser) mapping(file *mappingFile) *Mapping {
	m := &Mapping{resources: map[string]string{}, defaults: p.wishes(&file.Defaults)}
	for _, from := range slices.Sorted(maps.Keys(file.Resources)) {
		to := file.Resources[from]
		p.name(to.line, to.is)
		m.resources[from] = to.is
	}
	for _, r := range file.Rules {
		rule := mappingRule{
			user: globs(r.Match.User.is), group: globs(r.Match.Group.is), queue: globs(r.Match.Queue.is),
			application: globs(r.Match.Application.is), command: globs(r.Match.Command.is), name: globs(r.Match.Name.is),
			set: p.wishes(&r.Set),
		}
		rule.least, rule.most = p.processors(r.Match.Processors)
		m.rules = append(m.rules, rule)
	}
	return m
}

// processors reads a range such as 4, 1-16 or 32-; no most means any number.
func (p *mappingParser) processors(text placed[string]) (least, most int64) {
	if text.is == "" {
		return 0, 0
	}
	from, to, ranged := strings.Cut(text.is, "-")
	least, ok := integer([]byte(strings.TrimSpace(from)))
	most = least
	if to = strings.TrimSpace(to); ranged && to == "" {
		most = 0
	} else if ranged {
		var readable bool
		most, readable = integer([]byte(to))
		ok = ok && readable && most >= least
	}
	if !ok || least < 1 {
		p.add(text.line, fmt.Sprintf("%q is no range of processors", text.is), "write one such as 4, 1-16 or 32-")
	}
	return least, most
}

func (p *mappingParser) wishes(w *wishesText) wishes {
	out := wishes{
		tokens: w.Tokens.is, alternatives: w.Alternatives.is, memory: w.MemoryMB.is, memoryEach: w.MemoryPerProcessor.is,
		constraint: w.Constraint.is, queue: w.Queue.is, application: w.Application.is, priority: w.Priority.is,
		countables: w.Countables.is, exclusive: w.Exclusive.is, perHost: w.ProcessorsPerHost.is,
	}
	p.counts(w.Tokens.line, w.Tokens.is, 0)
	for _, a := range w.Alternatives.is {
		p.counts(w.Alternatives.line, a, 1)
		if len(a) == 0 {
			p.add(w.Alternatives.line, "the alternative has no tokens", "name a resource and its units, or remove it")
		}
	}
	p.counts(w.Countables.line, w.Countables.is, 0)
	p.range64(w.MemoryMB, mostMB)
	p.range64(w.MemoryPerProcessor, mostMB/1000) // and the product is a whole number still
	p.range64(w.ProcessorsPerHost, mostProcs)
	if w.MemoryMB.is > 0 && w.MemoryPerProcessor.is > 0 {
		p.add(w.MemoryMB.line, "there are memory_mb and memory_mb_per_processor", "keep one")
	}
	p.name(w.Queue.line, w.Queue.is)
	out.constraint = p.constraint(w)
	out.timeLimit, out.tokensFor = p.duration(w.TimeLimit), p.duration(w.TokensFor)
	return out
}

// constraint joins features and constraint.
func (p *mappingParser) constraint(w *wishesText) string {
	for _, f := range w.Features.is {
		if ps := (cluster.Capacity{Features: []string{f}}).Validate(""); len(ps) > 0 {
			p.add(w.Features.line, ps[0].What, ps[0].Remedy)
		}
	}
	if _, err := cluster.ParseConstraint(w.Constraint.is); err != nil {
		p.add(w.Constraint.line, err.Error(), cluster.ConstraintRemedy)
	}
	parts := slices.Clone([]string(w.Features.is))
	if w.Constraint.is != "" && len(parts) > 0 {
		parts = append(parts, "("+w.Constraint.is+")")
	} else if w.Constraint.is != "" {
		parts = append(parts, w.Constraint.is)
	}
	return strings.Join(parts, " & ")
}

func (p *mappingParser) counts(line int, counts map[string]int64, least int64) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		p.name(line, name)
		if n := counts[name]; n < least || n > mostProcs {
			p.add(line, fmt.Sprintf("%d %s cannot be", n, name), fmt.Sprintf("write a number from %d to %d", least, int64(mostProcs)))
		}
	}
}

func (p *mappingParser) range64(n placed[int64], most int64) {
	if n.line > 0 && (n.is < 1 || n.is > most) {
		p.add(n.line, fmt.Sprintf("%d cannot be", n.is), fmt.Sprintf("write a number from 1 to %d", most))
	}
}

func (p *mappingParser) name(line int, name string) {
	if name != "" && !cluster.ValidName(name) {
		p.add(line, fmt.Sprintf("name %q is not valid", name), rules[badName].Remedy)
	}
}

func (p *mappingParser) duration(text placed[string]) (d cluster.Duration) {
	if text.is == "" {
		return 0
	}
	err := d.UnmarshalText([]byte(text.is))
	switch {
	case err != nil:
		p.add(text.line, err.Error(), "write a length of time such as 30m")
	case d < 1 || d > longestRun:
		p.add(text.line, fmt.Sprintf("%s cannot be", text.is), "write a length of time such as 30m, up to ten years")
	}
	return d
}

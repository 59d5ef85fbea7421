package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"xce.internal/elastic/cluster"
)

// places knows the line of every key of a file, by its path in lower case.
type places struct {
	file  string
	lines map[string]int
}

func index(file string, document *yaml.Node) places {
	p := places{file: file, lines: map[string]int{}}
	if len(document.Content) > 0 {
		p.walk("", document.Content[0])
	}
	return p
}

func (p places) walk(path string, node *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := strings.ToLower(node.Content[i].Value)
			if path != "" {
				key = path + "." + key
			}
			p.lines[key] = node.Content[i].Line
			p.walk(key, node.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			key := fmt.Sprintf("%s[%d]", path, i)
			p.lines[key] = item.Line
			p.walk(key, item)
		}
	}
}

// refuse turns problems into a refusal with places.
func (p places) refuse(problems cluster.Problems) *Refused {
	r := &Refused{}
	for _, problem := range problems {
		r.Faults = append(r.Faults, p.of(problem.Path)+problem.String())
	}
	return r
}

// of answers the place of a key: its own, or that of the nearest part of its path that is in the file.
func (p places) of(path string) string {
	if p.file == "" {
		return ""
	}
	for at := strings.ToLower(path); at != ""; {
		if line, found := p.lines[at]; found {
			return fmt.Sprintf("%s:%d: ", p.file, line)
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			break
		}
		at = at[:cut]
	}
	return p.file + ": "
}

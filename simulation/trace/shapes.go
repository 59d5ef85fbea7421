package trace

import (
	"encoding/binary"
	"maps"
	"slices"
)

// shapeSet has each shape once.
type shapeSet struct {
	known map[string]*Shape
	key   []byte
}

// one answers the shape that is like s.
func (set *shapeSet) one(s *Shape) *Shape {
	set.key = s.appendKey(set.key[:0])
	if known, found := set.known[string(set.key)]; found {
		return known
	}
	if set.known == nil {
		set.known = map[string]*Shape{}
	}
	copied := *s
	set.known[string(set.key)] = &copied
	return &copied
}

// appendKey appends bytes that only shapes that are alike have in common.
func (s *Shape) appendKey(key []byte) []byte {
	for _, n := range [...]int64{s.Nodes, s.CPUs, s.MemoryMB, s.Priority} {
		key = binary.AppendVarint(key, n)
	}
	for _, text := range [...]string{s.User, s.Group, s.Application, s.Queue, s.Constraint, s.Name, s.Directory} {
		key = appendText(key, text)
	}
	if s.Exclusive {
		key = append(key, 'x')
	}
	key = appendTexts(append(key, 'c'), s.Command)
	key = appendCounts(append(key, 'n'), s.Countables)
	key = appendCounts(append(key, 't'), s.Tokens)
	for _, a := range s.Alternatives {
		key = appendCounts(append(key, 'a'), a)
	}
	key = append(key, 'j')
	for _, id := range s.After {
		key = binary.AppendVarint(key, id)
	}
	return key
}

func appendText(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}

func appendTexts(key []byte, texts []string) []byte {
	key = binary.AppendUvarint(key, uint64(len(texts)))
	for _, text := range texts {
		key = appendText(key, text)
	}
	return key
}

func appendCounts(key []byte, counts map[string]int64) []byte {
	key = binary.AppendUvarint(key, uint64(len(counts)))
	if len(counts) == 1 { // the most frequent case, without sorting
		for name, n := range counts {
			return binary.AppendVarint(appendText(key, name), n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		key = binary.AppendVarint(appendText(key, name), counts[name])
	}
	return key
}

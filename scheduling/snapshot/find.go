package snapshot

import (
	"fmt"
	"strings"
)

// find answers the offset of the value at a path such as state.jobs[3].tokens.vcs,
// or that of the nearest part of the path that is there.
func find(data []byte, path string) int {
	s := scanner{data: data}
	for {
		next := s.next()
		begin := s.at
		var found bool
		switch {
		case path == "":
			return begin
		case next == '{':
			path, found = s.member(path)
		case next == '[':
			path, found = s.item(path)
		}
		if !found {
			return begin
		}
	}
}

// member goes to the member of an object where a path begins, and answers the
// rest of the path. Keys may have dots in them.
func (s *scanner) member(path string) (rest string, found bool) {
	s.at++
	for s.next() != '}' {
		key := shown(s.text())
		if rest, ok := strings.CutPrefix(path, key); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return strings.TrimPrefix(rest, "."), true
		}
		s.next()
		s.skip()
	}
	return "", false
}

// item goes to the item of a list where a path begins, and answers the rest.
func (s *scanner) item(path string) (rest string, found bool) {
	s.at++
	for i := 0; s.next() != ']'; i++ {
		if rest, ok := strings.CutPrefix(path, fmt.Sprintf("[%d]", i)); ok {
			return strings.TrimPrefix(rest, "."), true
		}
		s.skip()
	}
	return "", false
}

package snapshot

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// decoder fills Go values from JSON that is well formed, and finds every value
// of the wrong kind, unknown key and key that is there twice, with its place.
type decoder struct {
	scanner
	path   []step
	faults []fault
	known  map[reflect.Type]map[string][]int
}

// scanner walks over JSON that is well formed.
type scanner struct {
	data []byte
	at   int
}

// step is one part of a path: a key, or a place in a list where key is empty.
type step struct {
	key   string
	index int
}

func (d *decoder) decode(into any) {
	d.known = map[reflect.Type]map[string][]int{}
	d.value(reflect.ValueOf(into).Elem())
}

func (d *decoder) fault(at int, what, remedy string) {
	d.faults = append(d.faults, fault{at: at, path: pathText(d.path), what: what, remedy: remedy})
}

func pathText(path []step) string {
	var text strings.Builder
	for _, s := range path {
		switch {
		case s.key == "":
			fmt.Fprintf(&text, "[%d]", s.index)
		case text.Len() == 0:
			text.WriteString(s.key)
		default:
			text.WriteString("." + s.key)
		}
	}
	return text.String()
}

// value fills v with the next value.
func (d *decoder) value(v reflect.Value) {
	next := d.next()
	begin := d.at
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if next != '"' {
			d.wrong(next, textForm(text))
		} else if err := text.UnmarshalText([]byte(d.text())); err != nil {
			d.fault(begin, err.Error(), "write "+textForm(text))
		}
		return
	}
	kind := v.Kind()
	if next == 'n' && (kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map) {
		d.skip()
		return
	}
	switch kind {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(v.Elem())
	case reflect.Struct:
		d.fields(v)
	case reflect.Map:
		d.entries(v)
	case reflect.Slice:
		d.items(v)
	case reflect.String:
		if next != '"' {
			d.wrong(next, "text in quotes")
			return
		}
		v.SetString(d.text())
	case reflect.Bool:
		if next != 't' && next != 'f' {
			d.wrong(next, "true or false")
			return
		}
		v.SetBool(next == 't')
		d.skip()
	default:
		d.wholeNumber(v)
	}
}

// textForm says how times and lengths of time are written.
func textForm(v encoding.TextUnmarshaler) string {
	switch v.(type) {
	case *cluster.Duration:
		return `text with a unit, as in "60m"`
	case *cluster.Time:
		return `text such as "2026-01-31T08:00:00Z"`
	}
	return "text in quotes"
}

// wrong notes a value of the wrong kind, and skips it.
func (d *decoder) wrong(next byte, wanted string) {
	begin := d.at
	d.skip()
	d.fault(begin, fmt.Sprintf("it is %s", kindOf(next)), "write "+wanted)
}

func kindOf(next byte) string {
	switch next {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "text"
	case 't', 'f':
		return "a truth value"
	case 'n':
		return "null"
	}
	return "a number"
}

func (d *decoder) wholeNumber(v reflect.Value) {
	next, begin := d.next(), d.at
	if next != '-' && (next < '0' || next > '9') {
		d.wrong(next, "a whole number")
		return
	}
	d.skip()
	text := string(d.data[begin:d.at])
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		d.fault(begin, fmt.Sprintf("%.40s is not a whole number of 64 bits", text), "write a whole number")
		return
	}
	v.SetInt(n)
}

// fields fills a struct.
func (d *decoder) fields(v reflect.Value) {
	if next := d.next(); next != '{' {
		d.wrong(next, "an object")
		return
	}
	known := d.keys(v.Type())
	seen := map[string]bool{}
	d.members(func(key string, at int) {
		index, ok := known[key]
		switch {
		case !ok:
			d.fault(at, "there is no such key", "remove it; known here are "+strings.Join(sortedKeys(known), ", "))
			d.skip()
		case seen[key]:
			d.fault(at, "the key is there twice", "give each key once")
			d.skip()
		default:
			d.value(v.FieldByIndex(index))
		}
		seen[key] = true
	})
}

func sortedKeys(known map[string][]int) []string {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// keys answers the fields of a struct by their names in JSON, those of embedded
// structs too.
func (d *decoder) keys(t reflect.Type) map[string][]int {
	if known, ok := d.known[t]; ok {
		return known
	}
	known := map[string][]int{}
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			known[name] = field.Index
		}
	}
	d.known[t] = known
	return known
}

// entries fills a map with text for keys.
func (d *decoder) entries(v reflect.Value) {
	if next := d.next(); next != '{' {
		d.wrong(next, "an object")
		return
	}
	filled := reflect.MakeMap(v.Type())
	d.members(func(key string, at int) {
		if filled.MapIndex(reflect.ValueOf(key)).IsValid() {
			d.fault(at, "the key is there twice", "give each key once")
		}
		value := reflect.New(v.Type().Elem()).Elem()
		d.value(value)
		filled.SetMapIndex(reflect.ValueOf(key), value)
	})
	if filled.Len() > 0 {
		v.Set(filled)
	}
}

// members calls visit at the value of every member of an object.
func (d *decoder) members(visit func(key string, at int)) {
	d.at++
	for d.next() != '}' {
		at := d.at
		key := d.text()
		d.next()
		d.path = append(d.path, step{key: shown(key)})
		visit(key, at)
		d.path = d.path[:len(d.path)-1]
	}
	d.at++
}

// shown answers a key as paths show it: in quotes where it is empty or has
// signs that cannot be seen.
func shown(key string) string {
	if quoted := strconv.Quote(key); len(quoted) != len(key)+2 || key == "" {
		return quoted
	}
	return key
}

// items fills a slice.
func (d *decoder) items(v reflect.Value) {
	if next := d.next(); next != '[' {
		d.wrong(next, "a list")
		return
	}
	d.at++
	d.path = append(d.path, step{})
	filled := reflect.MakeSlice(v.Type(), 0, 0)
	for d.next() != ']' {
		filled = reflect.Append(filled, reflect.Zero(v.Type().Elem()))
		d.path[len(d.path)-1] = step{index: filled.Len() - 1}
		d.value(filled.Index(filled.Len() - 1))
	}
	d.at++
	d.path = d.path[:len(d.path)-1]
	if filled.Len() > 0 {
		v.Set(filled)
	}
}

// next answers the first byte of what comes next, without taking it.
func (s *scanner) next() byte {
	for {
		switch b := s.data[s.at]; b {
		case ' ', '\t', '\r', '\n', ',', ':':
			s.at++
		default:
			return b
		}
	}
}

// text takes a text.
func (s *scanner) text() string {
	begin := s.at
	plain := true
	for s.at++; s.data[s.at] != '"'; s.at++ {
		if s.data[s.at] == '\\' {
			plain = false
			s.at++
		}
	}
	s.at++
	if plain {
		return string(s.data[begin+1 : s.at-1])
	}
	var text string
	_ = json.Unmarshal(s.data[begin:s.at], &text) // it is well formed
	return text
}

// skip takes one value of any kind.
func (s *scanner) skip() {
	depth := 0
	for {
		switch s.next() {
		case '"':
			s.text()
		case '{', '[':
			s.at++
			depth++
		case '}', ']':
			s.at++
			depth--
		default:
			for s.at < len(s.data) && !strings.ContainsRune(" \t\r\n,:]}", rune(s.data[s.at])) {
				s.at++
			}
		}
		if depth == 0 {
			return
		}
	}
}

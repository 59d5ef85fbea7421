package hostfactory

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	deepest  = 200 // levels of nesting that are read
	mostMiss = 500 // brackets in a text that begin nothing readable, before the text is given up
)

var errUnreadable = errors.New("not readable")

// documents finds what a plug-in answered in what it printed: the text as one JSON document, or else every
// balanced value in it that reads as JSON or as a Python literal, however it is wrapped, with whatever
// commas are missing or too many. Only objects count; lists are opened.
func documents(text []byte) []map[string]any {
	var whole any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&whole); err == nil && strings.TrimSpace(rest(decoder, text)) == "" {
		return objects(whole)
	}
	var found []map[string]any
	clean := strings.ToValidUTF8(string(text), "?")
	misses := 0
	for i := 0; i < len(clean) && misses < mostMiss; i++ {
		if clean[i] != '{' && clean[i] != '[' {
			continue
		}
		reader := &literal{text: clean, at: i}
		value, err := reader.value(0)
		if err != nil {
			misses++
			continue
		}
		found = append(found, objects(value)...)
		i = reader.at - 1
	}
	return found
}

func rest(decoder *json.Decoder, text []byte) string { return string(text[decoder.InputOffset():]) }

func objects(value any) (found []map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		found = append(found, value)
	case []any:
		for _, element := range value {
			if object, ok := element.(map[string]any); ok {
				found = append(found, object)
			}
		}
	}
	return found
}

// literal reads one value of a text that is meant to be JSON or a Python literal.
type literal struct {
	text string
	at   int
}

func (l *literal) skip() {
	for l.at < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.at]) >= 0 {
		l.at++
	}
}

func (l *literal) next() byte {
	l.skip()
	if l.at == len(l.text) {
		return 0
	}
	return l.text[l.at]
}

func (l *literal) value(depth int) (any, error) {
	if depth > deepest {
		return nil, errUnreadable
	}
	switch c := l.next(); {
	case c == '{':
		return l.object(depth)
	case c == '[':
		return l.list(depth, ']')
	case c == '(':
		return l.list(depth, ')')
	case c == '"' || c == '\'':
		return l.quoted()
	case c == '-' || c == '+' || c >= '0' && c <= '9':
		return l.number()
	}
	return l.word()
}

// comma passes over any commas, and says whether the closing bracket follows.
func (l *literal) closed(closing byte) bool {
	for l.next() == ',' {
		l.at++
	}
	if l.next() != closing {
		return false
	}
	l.at++
	return true
}

func (l *literal) object(depth int) (any, error) {
	l.at++
	object := map[string]any{}
	for !l.closed('}') {
		if c := l.next(); c != '"' && c != '\'' && c != 'u' {
			return nil, errUnreadable
		}
		key, err := l.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, isText := key.(string)
		if !isText || l.next() != ':' {
			return nil, errUnreadable
		}
		l.at++
		if object[name], err = l.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (l *literal) list(depth int, closing byte) (any, error) {
	l.at++
	list := []any{}
	for !l.closed(closing) {
		value, err := l.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// quoted reads a string. A line break within it was put there by whatever wrapped the output.
func (l *literal) quoted() (any, error) {
	quote := l.text[l.at]
	var out strings.Builder
	for l.at++; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == quote:
			l.at++
			return out.String(), nil
		case c == '\\':
			if err := l.escape(&out); err != nil {
				return nil, err
			}
		case c != '\n' && c != '\r':
			out.WriteByte(c)
		}
	}
	return nil, errUnreadable
}

var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", '\n': ""}

// escape reads what a backslash begins, and stays on its last byte.
func (l *literal) escape(out *strings.Builder) error {
	l.at++
	if l.at == len(l.text) {
		return errUnreadable
	}
	c := l.text[l.at]
	if text, known := escapes[c]; known {
		out.WriteString(text)
		return nil
	}
	digits := map[byte]int{'u': 4, 'x': 2, 'U': 8}[c]
	if digits == 0 {
		out.WriteByte(c)
		return nil
	}
	code, err := l.hexadecimal(digits)
	if err != nil {
		return err
	}
	if code >= 0xd800 && code < 0xdc00 && strings.HasPrefix(l.text[l.at+1:], `\u`) {
		l.at += 2
		low, err := l.hexadecimal(4)
		if err != nil {
			return err
		}
		code = (code-0xd800)<<10 + (low - 0xdc00) + 0x10000
	}
	out.WriteRune(asRune(code))
	return nil
}

func asRune(code uint64) rune {
	if code > utf8.MaxRune {
		return utf8.RuneError
	}
	return rune(code)
}

func (l *literal) hexadecimal(digits int) (uint64, error) {
	if l.at+digits >= len(l.text) {
		return 0, errUnreadable
	}
	code, err := strconv.ParseUint(l.text[l.at+1:l.at+1+digits], 16, 32)
	l.at += digits
	return code, err
}

func (l *literal) number() (any, error) {
	begin := l.at
	for l.at < len(l.text) && strings.IndexByte("+-.0123456789eE", l.text[l.at]) >= 0 {
		l.at++
	}
	number := l.text[begin:l.at]
	if _, err := strconv.ParseFloat(number, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, errUnreadable
	}
	return json.Number(strings.TrimPrefix(number, "+")), nil
}

var words = map[string]any{
	"true": true, "True": true, "false": false, "False": false,
	"null": nil, "None": nil, "NaN": nil, "nan": nil,
}

// word reads a bare word, or the letter before a Python string.
func (l *literal) word() (any, error) {
	begin := l.at
	for l.at < len(l.text) && isLetter(l.text[l.at]) {
		l.at++
	}
	word := l.text[begin:l.at]
	if (word == "u" || word == "b") && l.at < len(l.text) && strings.IndexByte(`'"`, l.text[l.at]) >= 0 {
		return l.quoted()
	}
	value, known := words[word]
	if !known {
		return nil, errUnreadable
	}
	return value, nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

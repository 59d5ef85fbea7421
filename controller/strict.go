package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

const (
	deepest       = 32 // nested objects and lists; nothing that is meant here has ten
	longestNumber = 40 // characters
)

// strictJSON reads bodies of which the meaning is beyond doubt, and that every
// store and log can hold.
var strictJSON = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: func(data []byte, v any) error {
	if err := soundJSON(data); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}}

// soundJSON refuses what two readers could take for different things, and
// what is made to wear a reader out. Whether it is JSON at all is found, too.
func soundJSON(data []byte) error {
	if at := badUTF8(data); at >= 0 {
		return fmt.Errorf("at byte %d: it is not UTF-8; send UTF-8", at)
	}
	if at := loneSurrogate(data); at >= 0 {
		return fmt.Errorf("at byte %d: half a character is escaped (\\ud800 to \\udfff alone); send whole characters", at)
	}
	w := &jsonWalk{decoder: json.NewDecoder(bytes.NewReader(data))}
	w.decoder.UseNumber()
	if err := w.value("body", 0); err != nil {
		return err
	}
	if _, err := w.decoder.Token(); err != io.EOF {
		return fmt.Errorf("at byte %d: there is more after the end of the JSON; send one value", w.decoder.InputOffset())
	}
	return nil
}

func badUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// loneSurrogate finds an escape of half a character, for which Go's reader would
// put another one.
func loneSurrogate(data []byte) int {
	half := func(at int) rune {
		if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(data[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for at := 0; at < len(data); at++ {
		if data[at] != '\\' {
			continue
		}
		switch r := half(at); {
		case r >= 0xd800 && r < 0xdc00:
			if second := half(at + 6); second < 0xdc00 || second > 0xdfff {
				return at
			}
			at += 11
		case r >= 0xdc00 && r <= 0xdfff:
			return at
		default:
			at++ // what is escaped
		}
	}
	return -1
}

// jsonWalk looks at each part of a JSON text, and knows where it is.
type jsonWalk struct{ decoder *json.Decoder }

func (w *jsonWalk) value(place string, depth int) error {
	token, err := w.decoder.Token()
	if err != nil {
		return fmt.Errorf("at byte %d: %w; send JSON", w.decoder.InputOffset(), err)
	}
	if depth > deepest {
		return fmt.Errorf("at %s: it is nested more than %d deep; send what the API's description has", clipPlace(place), deepest)
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return w.object(place, depth)
		}
		return w.list(place, depth)
	case string:
		return soundString(place, t)
	case json.Number:
		return soundNumber(place, t.String())
	}
	return nil
}

func (w *jsonWalk) list(place string, depth int) error {
	for i := 0; w.decoder.More(); i++ {
		if err := w.value(place+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
			return err
		}
	}
	return w.close()
}

// object refuses keys that are there twice. Go's reader takes keys that differ
// in case for the same, so these count as the same here.
func (w *jsonWalk) object(place string, depth int) error {
	seen := map[string]bool{}
	for w.decoder.More() {
		token, err := w.decoder.Token()
		if err != nil {
			return fmt.Errorf("at byte %d: %w; send JSON", w.decoder.InputOffset(), err)
		}
		key, _ := token.(string) // a member of an object begins with one
		if err := soundString("a key of "+place, key); err != nil {
			return err
		}
		folded := strings.ToLower(strings.ToUpper(key))
		if seen[folded] {
			return fmt.Errorf("at %s: the key is there twice; send each once", clipPlace(place+"."+key))
		}
		seen[folded] = true
		if err := w.value(place+"."+key, depth+1); err != nil {
			return err
		}
	}
	return w.close()
}

func (w *jsonWalk) close() error {
	if _, err := w.decoder.Token(); err != nil {
		return fmt.Errorf("at byte %d: %w; send JSON", w.decoder.InputOffset(), err)
	}
	return nil
}

func soundString(place, text string) error {
	if strings.ContainsRune(text, 0) {
		return fmt.Errorf("at %s: the text has a NUL character in it; remove it", clipPlace(place))
	}
	return nil
}

func soundNumber(place, number string) error {
	if len(number) > longestNumber {
		return fmt.Errorf("at %s: a number of %d characters; send at most %d", clipPlace(place), len(number), longestNumber)
	}
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return fmt.Errorf("at %s: the number %s is beyond all there are here; send a smaller one", clipPlace(place), number)
	}
	return nil
}

// clipPlace keeps a place short of which the caller chose the words.
func clipPlace(place string) string {
	const longest = 200
	if len(place) <= longest {
		return place
	}
	return strings.ToValidUTF8(place[:longest], "") + "..."
}

// soundURL refuses paths and queries that no log and no store should hold.
func soundURL(u *url.URL) error {
	if !soundWord(u.Path) {
		return fmt.Errorf("the path has control characters in it, or is not UTF-8; remove them")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("the query cannot be read: %w; escape what is special in it", err)
	}
	for name, values := range query {
		for _, value := range values {
			if !soundWord(name) || !soundWord(value) {
				return fmt.Errorf("query.%q has control characters in it, or is not UTF-8; remove them", clipPlace(name))
			}
		}
	}
	return nil
}

func soundWord(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

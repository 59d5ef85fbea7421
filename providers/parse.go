package providers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// parse reads exactly one JSON object. Numbers become float64, which is good enough to check limits
// that a float64 holds exactly; the typed reading afterwards insists on plain integers.
func parse(text []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("nothing where one JSON object must be")
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, explainSyntax(text, err)
	}
	object, isObject := document.(map[string]any)
	if !isObject {
		return nil, errors.New("JSON, but not an object: there must be exactly one object, {...}")
	}
	return object, rejectRepeatedKeys(json.NewDecoder(bytes.NewReader(text)), "")
}

func explainSyntax(text []byte, err error) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var first, second json.RawMessage
	if decoder.Decode(&first) != nil {
		return fmt.Errorf("not one JSON object (%w): nothing else may stand there; logs go to stderr", err)
	}
	if decoder.Decode(&second) == nil {
		return errors.New("more than one JSON document: there must be exactly one")
	}
	return fmt.Errorf("text after the JSON object (%w): nothing else may stand there; logs go to stderr", err)
}

// rejectRepeatedKeys walks one value that is known to be valid JSON. Two readers may pick different ones
// of two equal keys, so such a document has no certain meaning. Go's reader takes keys that differ only
// in case for equal, so these count as equal here too.
func rejectRepeatedKeys(decoder *json.Decoder, place string) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		seen := map[string]bool{}
		return eachElement(decoder, func() error { return member(decoder, place, seen) })
	case json.Delim('['):
		return eachElement(decoder, func() error { return rejectRepeatedKeys(decoder, place+"/*") })
	}
	return nil
}

func member(decoder *json.Decoder, place string, seen map[string]bool) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	key, _ := token.(string) // the document is valid, so a member starts with its key
	folded := strings.ToLower(strings.ToUpper(key))
	if seen[folded] {
		return fmt.Errorf("at %s/%s: the key stands there twice: each key may stand only once", place, key)
	}
	seen[folded] = true
	return rejectRepeatedKeys(decoder, place+"/"+key)
}

func eachElement(decoder *json.Decoder, element func() error) error {
	for decoder.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := decoder.Token() // the closing bracket
	return err
}

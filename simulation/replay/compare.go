package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// sentences are the keys of texts for people; which words a decision is told in is no part of it.
var sentences = map[string]bool{
	"why": true, "reason": true, "text": true, "change": true, "what": true, "trouble": true, "waits_for": true, "doubt": true,
}

// finding is the first place at which two values differ.
type finding struct{ path, live, now string }

// at makes a finding, where there is one, a difference.
func (f *finding) at(where, what string) *Difference {
	if f == nil {
		return nil
	}
	return &Difference{Where: where, What: what, Path: f.path, Live: f.live, Now: f.now}
}

// compared is what came of a comparison: the first difference, and the first other wording.
type compared struct{ differs, reworded *finding }

// compare compares what was decided live with what is decided now, as JSON has them. An absent value is the same as
// an empty one, so that what a later version adds to a record is no difference as long as it is empty.
func compare(live, now any) (c compared, err error) {
	was, err := treeOf(live)
	if err != nil {
		return c, err
	}
	is, err := treeOf(now)
	if err != nil {
		return c, err
	}
	c.walk("", was, is)
	return c, nil
}

// treeOf answers a value as JSON takes it apart; JSON itself stands for what it says.
func treeOf(value any) (tree any, err error) {
	text, isText := value.(json.RawMessage)
	if !isText {
		if text, err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("encode what is compared: %w", err)
		}
	}
	if len(text) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err = decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("decode what is compared: %w", err)
	}
	return tree, nil
}

func (c *compared) walk(path string, live, now any) {
	if c.differs != nil || isNothing(live) && isNothing(now) {
		return
	}
	was, wasObject := live.(map[string]any)
	is, isObject := now.(map[string]any)
	if wasObject && isObject || wasObject && now == nil || live == nil && isObject {
		c.objects(path, was, is)
		return
	}
	items, wasList := live.([]any)
	others, isList := now.([]any)
	switch {
	case wasList && isList && len(items) == len(others):
		for i := range items {
			c.walk(fmt.Sprintf("%s[%d]", path, i), items[i], others[i])
		}
	case !wasList && !isList && live == now && !wasObject:
	default:
		c.differs = &finding{path, shown(live), shown(now)}
	}
}

func (c *compared) objects(path string, live, now map[string]any) {
	keys := maps.Clone(live)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, now)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := key
		if path != "" {
			at = path + "." + key
		}
		if sentences[key] && isText(live[key]) && isText(now[key]) {
			c.words(at, live[key], now[key])
			continue
		}
		c.walk(at, live[key], now[key])
	}
}

// words compares sentences; one that is not in the record is not known.
func (c *compared) words(path string, live, now any) {
	if c.reworded == nil && !isNothing(live) && live != now {
		c.reworded = &finding{path, shown(live), shown(now)}
	}
}

func isText(value any) bool {
	_, text := value.(string)
	return text || value == nil
}

// isNothing tells whether a value is what is not written down.
func isNothing(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, item := range v {
			if !isNothing(item) {
				return false
			}
		}
		return true
	}
	return false
}

// mostText is how much of a value is shown.
const mostText = 300

func shown(value any) string {
	if value == nil {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > mostText {
		return string(bytes.ToValidUTF8(text[:mostText], nil)) + "..."
	}
	return string(text)
}

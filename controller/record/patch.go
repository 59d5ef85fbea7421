package record

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// document is a JSON object by its keys, each list taken apart into its items.
type document map[string]member

type member struct {
	raw   json.RawMessage
	items []json.RawMessage // of a list of objects; else nil
}

// documentOf takes a value apart.
func documentOf(value any) (document, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	d := document{}
	for key, raw := range fields {
		m := member{raw: raw}
		if bytes.HasPrefix(raw, []byte("[{")) {
			if err := json.Unmarshal(raw, &m.items); err != nil {
				return nil, err
			}
		}
		d[key] = m
	}
	return d, nil
}

// since answers what of a document is not as it was in another: its changed members, and null for those that are
// gone. A changed list of objects is written as the new objects and, for those that are not new, [FROM,COUNT] of the
// list before.
func (d document) since(before document) map[string]json.RawMessage {
	changes := map[string]json.RawMessage{}
	for key := range before {
		if _, stays := d[key]; !stays {
			changes[key] = json.RawMessage("null")
		}
	}
	for key, now := range d {
		was, known := before[key]
		switch {
		case known && bytes.Equal(now.raw, was.raw):
		case now.items != nil:
			changes[key] = runs(now.items, was.items)
		default:
			changes[key] = now.raw
		}
	}
	return changes
}

// runs writes a list with the help of the one before.
func runs(items, before []json.RawMessage) json.RawMessage {
	places := make(map[string]int, len(before))
	for i, item := range before {
		places[string(item)] = i
	}
	text := []byte("[")
	for i := 0; i < len(items); {
		if i > 0 {
			text = append(text, ',')
		}
		from, known := places[string(items[i])]
		if !known {
			text = append(text, items[i]...)
			i++
			continue
		}
		n := 1
		for i+n < len(items) && from+n < len(before) && bytes.Equal(items[i+n], before[from+n]) {
			n++
		}
		text = fmt.Appendf(text, "[%d,%d]", from, n)
		i += n
	}
	return append(text, ']')
}

// apply changes the document as another has changed since.
func (d document) apply(changes map[string]json.RawMessage) error {
	for key, raw := range changes {
		switch {
		case string(raw) == "null":
			delete(d, key)
		case bytes.HasPrefix(raw, []byte("[{")) || bytes.HasPrefix(raw, []byte("[[")):
			if err := d.applyList(key, raw); err != nil {
				return err
			}
		default:
			d[key] = member{raw: raw}
		}
	}
	return nil
}

func (d document) applyList(key string, raw json.RawMessage) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	before := d[key].items
	items := make([]json.RawMessage, 0, len(before))
	for _, part := range parts {
		if part[0] != '[' {
			items = append(items, part)
			continue
		}
		var run [2]int
		if err := json.Unmarshal(part, &run); err != nil {
			return err
		}
		if from, n := run[0], run[1]; from < 0 || n < 0 || from > len(before) || n > len(before)-from {
			return fmt.Errorf("%s goes on from items %d to %d of a list of %d", key, from, from+n, len(before))
		}
		items = append(items, before[run[0]:run[0]+run[1]]...)
	}
	d[key] = member{items: items}
	return nil
}

// into fills a value with the document.
func (d document) into(value any) error {
	fields := make(map[string]json.RawMessage, len(d))
	for key, m := range d {
		if fields[key] = m.raw; m.raw == nil {
			fields[key] = append(append([]byte("["), bytes.Join(rawItems(m.items), []byte(","))...), ']')
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return strictly(text, value)
}

func rawItems(items []json.RawMessage) [][]byte {
	raw := make([][]byte, len(items))
	for i, item := range items {
		raw[i] = item
	}
	return raw
}

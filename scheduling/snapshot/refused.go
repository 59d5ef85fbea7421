package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Refused is a snapshot that was not taken: its faults, with places.
type Refused struct {
	Faults []string
	// More is how many faults there are beside these.
	More int
}

// Error lists the faults, a line each.
func (r *Refused) Error() string {
	text := "the snapshot is refused:\n  " + strings.Join(r.Faults, "\n  ")
	if r.More > 0 {
		text += fmt.Sprintf("\n  and %d more faults", r.More)
	}
	return text
}

// fault is what is wrong at one place: a path, and an offset into the file.
type fault struct {
	at                 int
	path, what, remedy string
}

// mostShown limits the faults that are told.
const mostShown = 20

func refuse(name string, data []byte, faults []fault) *Refused {
	slices.SortStableFunc(faults, func(a, b fault) int { return a.at - b.at })
	r := &Refused{}
	for i, f := range faults {
		if i == mostShown {
			r.More = len(faults) - i
			break
		}
		line, column := place(data, f.at)
		text := fmt.Sprintf("%s:%d:%d: ", name, line, column)
		if f.path != "" {
			text += f.path + ": "
		}
		r.Faults = append(r.Faults, text+f.what+"; "+f.remedy)
	}
	return r
}

// place answers line and column of an offset, both from 1.
func place(data []byte, at int) (line, column int) {
	before := data[:min(at, len(data))]
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// malformed refuses what is no JSON.
func malformed(data []byte) (fault, bool) {
	if len(bytes.TrimSpace(data)) == 0 {
		return fault{what: "the file is empty", remedy: "save a snapshot with `xce-elastic snapshot`"}, true
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return fault{at: i, what: "the text is not UTF-8", remedy: mend}, true
		}
		i += size
	}
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return fault{}, false
	case errors.As(err, &syntax) && syntax.Offset > 0:
		at := int(syntax.Offset) - 1
		if syntax.Offset >= int64(len(data)) && strings.Contains(err.Error(), "unexpected end") {
			at = len(data)
		}
		return fault{at: at, what: err.Error(), remedy: mend}, true
	}
	return fault{what: err.Error(), remedy: mend}, true
}

const mend = "mend the JSON, or save the snapshot again"

// foreign refuses JSON that is no snapshot, or one of another version.
func foreign(data []byte) (fault, bool) {
	var head struct {
		Format  json.RawMessage `json:"format"`
		Version json.RawMessage `json:"version"`
	}
	if json.Unmarshal(data, &head) != nil || string(head.Format) != `"`+Format+`"` {
		return fault{
			at: find(data, "format"), path: "format", what: "this is no snapshot",
			remedy: fmt.Sprintf("save one with `xce-elastic snapshot`: it has the format %q", Format),
		}, true
	}
	if len(head.Version) > 0 && head.Version[0] == '"' {
		return fault{at: find(data, "version"), path: "version", what: "it is text", remedy: fmt.Sprintf("write %d", Version)}, true
	}
	if string(head.Version) != fmt.Sprint(Version) {
		return fault{
			at: find(data, "version"), path: "version", what: fmt.Sprintf("version %s is not known", versionText(head.Version)),
			remedy: fmt.Sprintf("use a program as new as the one that saved it, or save it with version %d", Version),
		}, true
	}
	return fault{}, false
}

func versionText(text json.RawMessage) string {
	var n json.Number
	switch {
	case len(text) == 0:
		return "(none)"
	case json.Unmarshal(text, &n) != nil || len(n) > 20:
		return "(no number)"
	}
	return n.String()
}

package main

import (
	"reflect"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/simulation/replay"
	"xce.internal/elastic/simulation/trace"
)

// fill puts a text into every string, and something into every list, map and
// pointer, however deep; numbers are small.
func fill(v reflect.Value, text string, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int64, reflect.Int, reflect.Int32, reflect.Int16, reflect.Int8:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text, depth+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // JSON as it came
			v.SetBytes([]byte(`"x"`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), text, depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, text, depth+1)
		fill(value, text, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), text, depth+1)
		}
	}
}

// filled answers a value with the text everywhere.
func filled[T any](text string) (value T) {
	fill(reflect.ValueOf(&value).Elem(), text, 0)
	return value
}

// printed is what the commands print, by what they print it with.
var printed = map[string]func(text string) (any, func(*table)){
	"jobs": func(text string) (any, func(*table)) {
		v := filled[[]cluster.Job](text)
		return v, func(t *table) { jobTable(t, v) }
	},
	"status": func(text string) (any, func(*table)) {
		v := filled[api.Status](text)
		return v, func(t *table) { statusTable(t, v) }
	},
	"loans": func(text string) (any, func(*table)) {
		v := filled[[]cluster.Loan](text)
		return v, func(t *table) { loanTable(t, v) }
	},
	"changes": func(text string) (any, func(*table)) {
		v := filled[[]api.Change](text)
		return v, func(t *table) { changeTable(t, v) }
	},
	"hosts": func(text string) (any, func(*table)) {
		v := filled[[]hostLine](text)
		return v, func(t *table) { hostTable(t, v, text) }
	},
	"catalog": func(text string) (any, func(*table)) {
		v := filled[api.CatalogView](text)
		return v, func(t *table) { templateTables(t, v); learnedRows(t, v); offerTable(t, v.Offers) }
	},
	"session": func(text string) (any, func(*table)) {
		v := filled[api.Session](text)
		return v, func(t *table) {
			sessionTable(t, v)
			halfTable(t, v)
			demandTable(t, v, text)
			idleTable(t, v, 10)
			waitingTable(t, v)
		}
	},
	"explain": func(text string) (any, func(*table)) {
		v := filled[api.Explanation](text)
		return v, func(t *table) {
			for _, s := range v.Sentences {
				t.sentence(wrapped, s)
				t.sentence(cut, s)
				t.paragraph(2, s)
			}
		}
	},
	"replay": func(text string) (any, func(*table)) {
		v := filled[replay.Report](text)
		return v, func(t *table) { replayTable(t, &v) }
	},
	"slurm check": func(text string) (any, func(*table)) {
		v := filled[slurmChecked](text)
		v.Lines[0].Command, v.Lines[1].Restart = false, false
		return v, func(t *table) { slurmTable(t, v) }
	},
	"trace": func(text string) (any, func(*table)) {
		v := filled[trace.Summary](text)
		return v, func(t *table) { summaryTable(t, v); repairTable(t, v.Repairs) }
	},
}

// unsteered demands that no sign of a text steers, but for ends of lines.
func unsteered(t interface {
	Helper()
	Fatalf(string, ...any)
}, what, text string,
) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp, unicode.Cf)) && r != '\u200c' && r != '\u200d' {
			t.Fatalf("%s prints %q in %q", what, r, text)
		}
	}
}

// Whatever others wrote anywhere, no line that a command prints steers the terminal.
func TestNoOutputSteersATerminalWhateverIsInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			evil, "\x1b]0;x\x07", "\r", "\n", "\t", "\v", "\x00", "\x01", "\x7f", "\u0085", "\u2028", "\u2066", "\u200b", "\U000e0001", "\xff", "a b c",
		})), 0, 8).Draw(t, "parts"), "")
		width := rapid.SampledFrom([]int{0, 10, 40, 80}).Draw(t, "width")
		for name, of := range printed {
			value, rows := of(text)
			terminal := newTable(width)
			rows(terminal)
			unsteered(t, name, terminal.text())
			var out strings.Builder
			if err := printJSON(&out, value); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			unsteered(t, name+" -o json", out.String())
			out.Reset()
			if err := printYAML(&out, value); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			unsteered(t, name+" -o yaml", out.String())
		}
		var said strings.Builder
		if err := say(&said, "%s is done\n", text); err != nil {
			t.Fatal(err)
		}
		unsteered(t, "a sentence", said.String())
	})
}

package plain_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"xce.internal/elastic/cluster/plain"
)

// evil draws texts with what does something in a terminal, a page or a sheet.
var evil = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOf(rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{
			"\x1b[31m", "\x1b]8;;http://x\x07", "\u009b2J", "\u202e", "\u2066", "\u200e", "\u200b", "\ufeff", "\u2028", "\u0085", "\x00", "\x7f", "\r", "\n", "\t", "\v", "\xff\xfe", "\U000e0041", "\ue000",
			"](http://x)", "![x](http://x/y.png)", "<script>alert(1)</script>", "<img src=x>", "| a |", "**", "`", "~~", "http://x", "www.x.y", "a@b.c", "=1+1", "@SUM(1)", "+1", "-2+3", "&lt;",
		}),
	)).Draw(t, "parts")
	return strings.Join(parts, "")
})

// unsteered demands that nothing in a text steers; line ends are the only exception.
func unsteered(t *rapid.T, text string) {
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == '\u200b' || r == '\ufeff') {
			t.Fatalf("%q has %q in it", text, r)
		}
	}
}

func TestNothingThatIsShownSteersWhateverItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := evil.Draw(t, "text")
		for _, shown := range []string{plain.Line(text), plain.Markdown(text)} {
			unsteered(t, shown)
			if strings.Contains(shown, "\n") {
				t.Fatalf("%q is more than a line", shown)
			}
		}
		unsteered(t, plain.Lines(text))
		unsteered(t, plain.Cell(text))
		unsteered(t, plain.Escape(text))
		unsteered(t, plain.EscapeYAML(text))
		if again := plain.Line(plain.Line(text)); again != plain.Line(text) {
			t.Fatalf("cleaned twice it is %q", again)
		}
	})
}

func TestNothingIsLostInWhatIsEscaped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(evil.Draw(t, "text"), "\ufffd")
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var read string
		if err := json.Unmarshal([]byte(plain.Escape(string(data))), &read); err != nil || read != text {
			t.Fatalf("%q is read back from JSON as %q (%v)", text, read, err)
		}
		node := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text}
		if data, err = yaml.Marshal(&node); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(plain.EscapeYAML(string(data))), &read); err != nil || read != text {
			t.Fatalf("%q is read back from YAML as %q (%v): %s", text, read, err, data)
		}
	})
}

func TestNoLogLineSteersWhateverIsLogged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, key := evil.Draw(t, "text"), evil.Draw(t, "key")
		var out bytes.Buffer
		for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(plain.Writer(&out), nil)), slog.New(slog.NewJSONHandler(plain.Writer(&out), nil))} {
			log.With(key, text).WithGroup(key).Info(text, key, text, "error", error(fault(text)), "any", []string{text})
		}
		unsteered(t, out.String())
		if lines := strings.Count(out.String(), "\n"); lines != 2 {
			t.Fatalf("two records make %d lines: %q", lines, out.String())
		}
		if _, record, _ := strings.Cut(strings.TrimSuffix(out.String(), "\n"), "\n"); !json.Valid([]byte(record)) {
			t.Fatalf("%s is no JSON", record)
		}
	})
}

type fault string

func (f fault) Error() string { return string(f) }

func TestMarkdownOfOthersShowsAsItIs(t *testing.T) {
	for text, want := range map[string]string{
		"loan/vcs/pool-1 has 3.5 units (of 4)": "loan/vcs/pool-1 has 3.5 units (of 4)",
		"[click](http://x)":                    `\[click\](http:\//x)`,
		"![x](http://x)":                       `\!\[x\](http:\//x)`,
		"<script>&amp;":                        `\<script\>\&amp;`,
		"a | b":                                `a \| b`,
		"**b** `c` ~d~ my_name":                "\\*\\*b\\*\\* \\`c\\` \\~d\\~ my\\_name",
		"ann@x.y www.x.y \\":                   `ann\@x.y www\.x.y \\`,
		"a\nb\x1b[0m":                          `a·b·\[0m`,
	} {
		if got := plain.Markdown(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestASpreadsheetFindsNoFormula(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "+1": "'+1", "-1+2": "'-1+2", "-": "'-", "＝1": "'＝1", "\t=1": "·=1", "\r=1": "·=1",
		"-12": "-12", "-1.5": "-1.5", "12": "12", "": "", "a=1": "a=1", "-1.2.3": "'-1.2.3",
	} {
		if got := plain.Cell(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestWordsOfManyScriptsStay(t *testing.T) {
	for _, text := range []string{"Größe – 5 µm", "設計 1", "می\u200cخواهم", "👩\u200d🚀", "a b"} {
		if got := plain.Line(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

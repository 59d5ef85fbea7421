// Package plain makes text harmless that others wrote, wherever it is shown: a
// job's command, a name, a reason, what a provider says. It is kept as it came;
// whoever shows it cleans it with one of these, at the border:
//
//	Line      tables, sentences, one line of a terminal
//	Lines     the same for several lines
//	Escape    JSON, and EscapeYAML for YAML: nothing is lost
//	Writer    a log, or another stream of lines, whatever comes through it
//	Markdown  Temporal's summaries and details
//	Cell      CSV that a spreadsheet may open
//
// HTML is escaped by html/template.
package plain

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Dot stands where a sign was that could have steered a terminal.
const Dot = '·'

// Steers tells whether a sign does something to a terminal, or to the text
// around it, instead of showing there: control characters, line separators,
// signs that turn the direction, and those that nobody sees.
func Steers(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
		return true
	case r == '\u200d' || r == '\u200c': // joiners are part of words and signs in many scripts
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Co) || r >= 0xe0000 && r <= 0xe0fff
}

// Line answers a text as one line in which nothing steers.
func Line(text string) string {
	if isLetters(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if Steers(r) || r == utf8.RuneError {
			return Dot
		}
		return r
	}, text)
}

// isLetters tells of most texts, at a glance, that nothing in them steers.
func isLetters(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// Lines is Line for each line of a text.
func Lines(text string) string {
	if !strings.Contains(text, "\n") {
		return Line(text)
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Line(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Escape writes what steers as \u and its number, as JSON's strings have it;
// line ends stay.
func Escape(text string) string {
	return escape(text, func(r rune) string {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	})
}

// EscapeYAML is Escape for YAML's double quotes.
func EscapeYAML(text string) string {
	return escape(text, func(r rune) string { return fmt.Sprintf(`\U%08x`, r) })
}

func escape(text string, long func(rune) string) string {
	var safe strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || !Steers(r):
			safe.WriteRune(r)
		case r > 0xffff:
			safe.WriteString(long(r))
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	return safe.String()
}

// Writer answers a writer that escapes what steers in what is written through
// it, but for tabs, which tables and usages have. Each write must end where a character ends, as those of logs do.
func Writer(to io.Writer) io.Writer { return writer{to} }

type writer struct{ to io.Writer }

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) {
	columns := strings.Split(strings.ToValidUTF8(string(p), "\ufffd"), "\t")
	for i := range columns {
		columns[i] = Escape(columns[i])
	}
	if _, err := io.WriteString(w.to, strings.Join(columns, "\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Markdown answers a text as one line that shows as it is where Markdown is
// read: no link, no picture, no table and no HTML comes of it.
func Markdown(text string) string {
	var safe strings.Builder
	for _, r := range Line(text) {
		if strings.ContainsRune(risky, r) {
			safe.WriteByte('\\')
		}
		safe.WriteRune(r)
	}
	return strings.TrimSpace(breakAddresses(safe.String()))
}

// risky is what starts something within a line of Markdown, or of HTML in it.
// What does so at the beginning of a line only stays, so that names such as
// loan/vcs/pool-1 do.
const risky = "\\`*_[]<>|~&!#$^"

// breakAddresses keeps readers that make links of bare addresses from doing so.
func breakAddresses(text string) string {
	return strings.NewReplacer("://", `:\//`, "www.", `www\.`, "@", `\@`).Replace(text)
}

// Cell answers a text for CSV: what a spreadsheet would take for a formula
// begins with an apostrophe, and nothing steers; ends of lines stay, which CSV has in quotes.
func Cell(text string) string {
	text = Lines(text)
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@\uff1d\uff0b\uff0d\uff20", first) && !isNumber(text) {
		return "'" + text
	}
	return text
}

// isNumber tells whether a text is a plain number, which is no formula.
func isNumber(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789.") == "" && strings.Count(digits, ".") < 2
}

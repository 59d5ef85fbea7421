package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/plain"
)

// outputFormat is the value of the flag -o.
type outputFormat string

// outputFlag adds -o to a command, and --json for the form that programs read.
func outputFlag(cmd *cobra.Command) *outputFormat {
	format := outputFormat("table")
	cmd.Flags().VarP(&format, "output", "o", "output format: table, json or yaml")
	cmd.Flags().BoolFunc("json", "the same as -o json", format.orJSON)
	return &format
}

// orJSON takes what --json says.
func (f *outputFormat) orJSON(text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("write true or false")
	}
	if on {
		*f = "json"
	}
	return nil
}

// String implements pflag.Value.
func (f *outputFormat) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *outputFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (f *outputFormat) Set(text string) error {
	switch text {
	case "table", "json", "yaml":
		*f = outputFormat(text)
		return nil
	}
	return fmt.Errorf("%q is no output format; use table, json or yaml", text)
}

// print prints a value in the format asked for; rows fills the table.
func (f *outputFormat) print(cmd *cobra.Command, value any, rows func(*table)) error {
	out := cmd.OutOrStdout()
	switch *f {
	case "json":
		return printJSON(out, value)
	case "yaml":
		return printYAML(out, value)
	}
	t := newTable(terminalWidth(out))
	rows(t)
	_, err := io.WriteString(out, t.text())
	return err
}

// printJSON prints a value.
func printJSON(out io.Writer, value any) error {
	text, err := indented(value)
	if err == nil {
		_, err = io.WriteString(out, plain.Escape(text)) // what is escaped is in strings only
	}
	return err
}

// indented answers a value as JSON.
func indented(value any) (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return text.String(), nil
}

// say prints a sentence with what others wrote in it.
func say(out io.Writer, format string, args ...any) error {
	_, err := io.WriteString(out, plain.Lines(fmt.Sprintf(format, args...)))
	return err
}

// terminalWidth answers how many columns the terminal has; 0 where out is none.
func terminalWidth(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// printYAML prints a value with the names and the order that its JSON has.
func printYAML(out io.Writer, value any) error {
	data, err := indented(value)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(plain.EscapeYAML(data)), &node); err != nil { // JSON is YAML
		return err
	}
	unquote(&node)
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&node), encoder.Close()); err != nil {
		return err
	}
	_, err = io.WriteString(out, plain.EscapeYAML(text.String()))
	return err
}

// unquote takes JSON's flow style and quotes away, but where something in them is escaped.
func unquote(node *yaml.Node) {
	node.Style = 0
	if strings.ContainsFunc(node.Value, plain.Steers) {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		unquote(child)
	}
}

// table is aligned columns, and paragraphs between them.
type table struct {
	w        *tabwriter.Writer
	aligned  bytes.Buffer
	terminal int // its width; 0 where the table goes elsewhere
}

func newTable(terminal int) *table {
	t := &table{terminal: terminal}
	t.w = tabwriter.NewWriter(&t.aligned, 0, 0, 2, ' ', 0)
	return t
}

// Signs before the last cell of a row that is a sentence; no cell has them in it.
const (
	wrapped = "\x00"
	cut     = "\x01"
)

// row adds a row; control characters in cells are made visible, since job names
// and provider texts come from others.
func (t *table) row(cells ...any) {
	fmt.Fprintln(t.w, strings.Join(visibleCells(cells), "\t"))
}

// sentence adds a row that ends with a sentence, which on a terminal is wrapped,
// or cut, at its width.
func (t *table) sentence(how string, cells ...any) {
	texts := visibleCells(cells)
	texts[len(texts)-1] = how + texts[len(texts)-1]
	fmt.Fprintln(t.w, strings.Join(texts, "\t"))
}

// paragraph adds text that is wrapped at the terminal's width, and as for one of
// 80 columns elsewhere. Its lines are indented, those after the first deeper.
func (t *table) paragraph(indent int, text string) {
	width := t.terminal
	if width == 0 {
		width = 80
	}
	first, rest := strings.Repeat(" ", indent), strings.Repeat(" ", indent+2)
	fmt.Fprintln(t.w, first+strings.Join(wrap(plain.Line(text), width-len(rest)), "\n"+rest))
}

// comment adds text as a comment of a file, wrapped like a paragraph.
func (t *table) comment(text string) {
	width := t.terminal
	if width == 0 {
		width = 80
	}
	for _, line := range wrap(plain.Line(text), width-len("  # ")) {
		fmt.Fprintln(t.w, "  # "+line)
	}
}

func visibleCells(cells []any) []string {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = plain.Line(fmt.Sprint(c))
	}
	return texts
}

// text answers the whole table.
func (t *table) text() string {
	_ = t.w.Flush() // a buffer takes everything
	lines := strings.SplitAfter(t.aligned.String(), "\n")
	for i, line := range lines {
		if at := strings.IndexAny(line, wrapped+cut); at >= 0 {
			lines[i] = t.fit(line[:at], line[at:at+1], strings.TrimSuffix(line[at+1:], "\n"))
		}
	}
	return strings.Join(lines, "")
}

// leastSentence is the room below which a sentence goes beneath its row.
const leastSentence = 24

// fit answers a row with its sentence.
func (t *table) fit(head, how, sentence string) string {
	indent := utf8.RuneCountInString(head)
	room := t.terminal - indent
	if t.terminal == 0 || sentence == "" || utf8.RuneCountInString(sentence) <= room {
		return strings.TrimRight(head+sentence, " ") + "\n"
	}
	if room < leastSentence {
		indent, room = 4, t.terminal-4
		head = strings.TrimRight(head, " ") + "\n" + strings.Repeat(" ", indent)
	}
	if how == cut {
		return head + clip(sentence, room) + "\n"
	}
	return head + strings.Join(wrap(sentence, room), "\n"+strings.Repeat(" ", indent)) + "\n"
}

// clip cuts a text that is longer than so many signs.
func clip(text string, width int) string {
	signs := []rune(text)
	if len(signs) <= width {
		return text
	}
	return string(signs[:max(width-3, 0)]) + "..."
}

// wrap answers the lines of a text; a word that is longer than a line has one of
// its own.
func wrap(text string, width int) (lines []string) {
	line, length := "", 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		if length > 0 && length+1+n > width {
			lines = append(lines, line)
			line, length = "", 0
		}
		if length > 0 {
			line, length = line+" ", length+1
		}
		line, length = line+word, length+n
	}
	return append(lines, line)
}

// stamp answers day and time in UTC, as sentences have it.
func stamp(t cluster.Time) string { return t.Stamp() }

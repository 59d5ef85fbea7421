package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"xce.internal/elastic/cluster"
)

// outputFormat is the value of the flag -o.
type outputFormat string

// outputFlag adds -o to a command.
func outputFlag(cmd *cobra.Command) *outputFormat {
	format := outputFormat("table")
	cmd.Flags().VarP(&format, "output", "o", "output format: table, json or yaml")
	return &format
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
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		return printYAML(out, value)
	}
	t := &table{w: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	rows(t)
	return t.w.Flush()
}

// printYAML prints a value with the names and the order that its JSON has.
func printYAML(out io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil { // JSON is YAML
		return err
	}
	plain(&node)
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return err
	}
	return encoder.Close()
}

// plain takes JSON's flow style and quotes away.
func plain(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		plain(child)
	}
}

// table is aligned columns.
type table struct{ w *tabwriter.Writer }

// row adds a row; control characters in cells are made visible, since job names
// and provider texts come from others.
func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = visible(fmt.Sprint(c))
	}
	fmt.Fprintln(t.w, strings.Join(texts, "\t"))
}

func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '·'
		}
		return r
	}, text)
}

// stamp answers day and time in the reader's own zone.
func stamp(t cluster.Time) string {
	if t == 0 {
		return "-"
	}
	return t.Std().Local().Format("Jan 2 15:04:05")
}

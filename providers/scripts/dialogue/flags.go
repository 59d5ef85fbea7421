package dialogue

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"xce.internal/elastic/cluster/plain"
	"xce.internal/elastic/providers"
)

// LongestName is how long a name may be that stands before an equals sign, in bytes.
const LongestName = 200

// Flags of one operator's verb. Every verb needs to know the place that it is about: a file or folder.
type Flags struct {
	*flag.FlagSet
	Place string

	script, kind, meaning string
}

// NewFlags answers the flags of SCRIPT VERB, with --KIND for the place; what is wrong with them is printed
// to stderr.
func NewFlags(script, verb, kind, meaning string, stderr io.Writer) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(script+" "+verb, flag.ContinueOnError), script: script, kind: kind, meaning: meaning}
	f.SetOutput(stderr)
	f.StringVar(&f.Place, kind, "", meaning)
	return f
}

// Read reads the flags; nothing else may stand there.
func (f *Flags) Read(args []string) error {
	if err := f.Parse(args); err != nil {
		return ErrUsage // the flag set has printed it
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is no flag: %s help shows the flags", f.Arg(0), f.script)
	}
	if f.Place == "" {
		return fmt.Errorf("--%s is missing: name %s", f.kind, f.meaning)
	}
	return nil
}

// Show prints a view as JSON, or as the table that it has.
func Show(stdout io.Writer, format string, view any, table func(io.Writer) error) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(view)
	case "table":
		columns := tabwriter.NewWriter(plain.Writer(stdout), 0, 0, 2, ' ', 0)
		return errors.Join(table(columns), columns.Flush())
	}
	return fmt.Errorf("-o %s: give table or json", format)
}

// Amounts collects a repeatable flag NAME=NUMBER.
func (f *Flags) Amounts(name, meaning string) map[string]int64 {
	numbers := map[string]int64{}
	f.Func(name, meaning+"; may be repeated", func(text string) error {
		cut := strings.LastIndex(text, "=")
		if cut < 1 || cut > LongestName {
			return errors.New("give NAME=NUMBER")
		}
		number, err := strconv.ParseInt(text[cut+1:], 10, 64)
		if err != nil || number < 0 || number > providers.MostUnits {
			return fmt.Errorf("give a whole number from 0 to %d after the =", int64(providers.MostUnits))
		}
		if _, repeated := numbers[text[:cut]]; repeated {
			return fmt.Errorf("%s stands there twice", text[:cut])
		}
		numbers[text[:cut]] = number
		return nil
	})
	return numbers
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"xce.internal/elastic/cluster"
)

// Refused is a configuration that was not taken: all its faults, with places.
type Refused struct{ Faults []string }

// Error lists the faults, a line each.
func (r *Refused) Error() string {
	return fmt.Sprintf("the configuration is refused:\n  %s", strings.Join(r.Faults, "\n  "))
}

// Load reads a file, the environment and the flags. A flag named like a key
// (with dots) sets it. An empty file name stands for no file.
func Load(file string, flags *pflag.FlagSet) (*Config, error) {
	var data []byte
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("read configuration: %w; name another with --config", err)
		}
	}
	return parse(file, data, flags)
}

func parse(file string, data []byte, flags *pflag.FlagSet) (*Config, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, &Refused{Faults: []string{fmt.Sprintf("%s: %s; mend the YAML", file, strings.TrimPrefix(err.Error(), "yaml: "))}}
	}
	places := index(file, &document)
	v, err := layers(data, flags)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := &Config{file: file}
	problems := decode(v, c)
	if len(problems) == 0 {
		c.complete()
		problems = c.validate()
	}
	if len(problems) > 0 {
		return nil, places.refuse(problems)
	}
	return c, nil
}

// layers puts defaults, file, environment and flags on top of each other.
func layers(data []byte, flags *pflag.FlagSet) (*viper.Viper, error) {
	v := viper.New()
	v.SetConfigType("yaml")
	for key, value := range defaults {
		v.SetDefault(key, value)
	}
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return nil, err
	}
	v.SetEnvPrefix("XCE")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	if flags == nil {
		return v, nil
	}
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if _, known := defaults[f.Name]; known {
			err = errors.Join(err, v.BindPFlag(f.Name, f))
		}
	})
	return v, err
}

// decode fills the configuration, and answers unknown keys and values of the wrong kind.
func decode(v *viper.Viper, c *Config) cluster.Problems {
	var meta mapstructure.Metadata
	err := v.Unmarshal(c, func(d *mapstructure.DecoderConfig) {
		d.TagName = "json"
		d.Metadata = &meta
		d.DecodeHook = mapstructure.ComposeDecodeHookFunc(wholeNumbers, mapstructure.TextUnmarshallerHookFunc())
	})
	var ps cluster.Problems
	slices.Sort(meta.Unused)
	for _, path := range meta.Unused {
		ps = append(ps, cluster.Problem{Path: path, What: "there is no such key", Remedy: remedyFor(path)})
	}
	return append(ps, decodeProblems(err)...)
}

// wholeNumbers refuses fractions where whole numbers are wanted: they would be cut silently.
func wholeNumbers(from, to reflect.Value) (any, error) {
	if from.Kind() == reflect.Float64 && to.CanInt() {
		if f := from.Float(); f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return nil, fmt.Errorf("%v is not a whole number; write a whole number", f)
		}
	}
	if from.Kind() == reflect.Bool && to.CanInt() {
		return nil, fmt.Errorf("%v is not a number; write a whole number", from.Bool())
	}
	return from.Interface(), nil
}

// decodeProblems answers a problem for each value of the wrong kind.
func decodeProblems(err error) (ps cluster.Problems) {
	const remedy = "write a value of the right kind"
	switch err := err.(type) {
	case nil:
		return nil
	case interface{ Unwrap() []error }:
		for _, inner := range err.Unwrap() {
			ps = append(ps, decodeProblems(inner)...)
		}
		return ps
	case *mapstructure.DecodeError:
		return cluster.Problems{{Path: err.Name(), What: err.Unwrap().Error(), Remedy: remedy}}
	case interface{ Unwrap() error }:
		return decodeProblems(err.Unwrap())
	}
	return cluster.Problems{{What: err.Error(), Remedy: remedy}}
}

// keys are all that are known at any place, to suggest one for a misspelt key.
func keys(t reflect.Type, into map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		keys(t.Elem(), into)
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name != "" {
				into[name] = true
				keys(t.Field(i).Type, into)
			}
		}
	}
}

// remedyFor suggests the known key that is nearest to a misspelt one.
func remedyFor(path string) string {
	known := map[string]bool{}
	keys(reflect.TypeFor[Config](), known)
	key := path[strings.LastIndex(path, ".")+1:]
	best, least := "", 3
	for _, name := range sorted(known) {
		if d := distance(key, name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return "remove it; docs/operate.md lists the keys"
	}
	return fmt.Sprintf("did you mean %q?", best)
}

func sorted(set map[string]bool) []string {
	var names []string
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// distance is the edit distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost++
			}
			left = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

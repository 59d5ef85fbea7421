package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
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

// ForHost answers the configuration of a host that has no file: what the
// environment and the flags say. A host need not know its cluster's name.
func ForHost(flags *pflag.FlagSet) (*Config, error) {
	return parse("", []byte("cluster: {name: unknown}\n"), flags)
}

func parse(file string, data []byte, flags *pflag.FlagSet) (*Config, error) {
	document, err := oneDocument(data)
	if err != nil {
		return nil, refuseYAML(file, data, err)
	}
	places := index(file, document, flags)
	problems := places.problems
	c := &Config{file: file}
	v, err := layers(data, flags)
	switch {
	case err == nil:
		problems = append(problems, slices.DeleteFunc(decode(v, c), places.knows)...)
	case len(problems) == 0:
		return nil, refuseYAML(file, data, err)
	}
	if len(problems) == 0 {
		c.complete()
		problems = c.validate()
	}
	if len(problems) > 0 {
		return nil, places.refuse(problems)
	}
	return c, nil
}

// oneDocument parses YAML that is one section of keys, or nothing.
func oneDocument(data []byte) (*yaml.Node, error) {
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, root := range document.Content {
		if root.Kind != yaml.MappingNode && root.Tag != "!!null" {
			return nil, fmt.Errorf("line %d: there are no keys; begin with one such as cluster", root.Line)
		}
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("line %d: a second document begins; keep one", second.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return &document, nil
}

// variable names the environment variable that sets a key.
func variable(key string) string {
	return "XCE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// layers puts defaults, file, environment and flags on top of each other.
func layers(data []byte, flags *pflag.FlagSet) (*viper.Viper, error) {
	v := viper.New()
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return nil, errors.Unwrap(err)
	}
	var err error
	for key, value := range defaults {
		v.SetDefault(key, value)
		err = errors.Join(err, v.BindEnv(key, variable(key)))
		if flags != nil && flags.Lookup(key) != nil {
			err = errors.Join(err, v.BindPFlag(key, flags.Lookup(key)))
		}
	}
	return v, err
}

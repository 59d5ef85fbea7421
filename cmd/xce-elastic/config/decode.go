package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"

	"xce.internal/elastic/cluster"
)

// decode fills the configuration, and answers unknown keys and values of the wrong kind.
func decode(v *viper.Viper, c *Config) cluster.Problems {
	var meta mapstructure.Metadata
	err := v.Unmarshal(c, func(d *mapstructure.DecoderConfig) {
		d.TagName, d.Metadata, d.DecodeHook, d.WeaklyTypedInput = "json", &meta, exactly, false
	})
	var ps cluster.Problems
	slices.Sort(meta.Unused)
	for _, path := range meta.Unused {
		ps = append(ps, cluster.Problem{Path: path, What: "there is no such key", Remedy: "remove it"})
	}
	return append(ps, decodeProblems(err)...)
}

// wrong is a value of the wrong kind.
type wrong struct{ what, remedy string }

func (w wrong) Error() string { return w.what }

var noSection = wrong{"it is not a section", "write its keys below it, indented"}

// exactly takes values of the right kind only, where the decoder would convert
// others. The environment and flags know only text, which may stand for numbers.
func exactly(from, to reflect.Value) (any, error) {
	switch {
	case to.Kind() == reflect.Pointer && to.Type().Elem().Kind() != reflect.Struct:
		return exactly(from, reflect.New(to.Type().Elem()).Elem())
	case to.Type() == reflect.TypeFor[cluster.Duration]():
		return duration(from)
	case to.CanInt():
		return wholeNumber(from)
	case to.Kind() == reflect.Bool:
		return truth(from)
	case to.Kind() == reflect.String && from.Kind() != reflect.String:
		return nil, wrong{"it is not text", "write text, in quotes where it looks like something else"}
	case to.Kind() == reflect.Slice && from.Kind() != reflect.Slice:
		return nil, wrong{"it is not a list", "write a list, each item behind a dash"}
	case (to.Kind() == reflect.Struct || to.Kind() == reflect.Pointer) && from.Kind() != reflect.Map:
		return nil, noSection
	}
	return from.Interface(), nil
}

func duration(from reflect.Value) (any, error) {
	var d cluster.Duration
	err := d.UnmarshalText([]byte(fmt.Sprint(from)))
	if err != nil {
		return nil, wrong{err.Error(), "write text with a unit, as in 60m"}
	}
	return d, nil
}

func wholeNumber(from reflect.Value) (any, error) {
	switch {
	case from.CanInt():
		return from.Int(), nil
	case from.CanFloat() && from.Float() == math.Trunc(from.Float()) && math.Abs(from.Float()) < 1<<53:
		return int64(from.Float()), nil
	case from.Kind() == reflect.String:
		if n, err := strconv.ParseInt(from.String(), 10, 64); err == nil {
			return n, nil
		}
	}
	return nil, wrong{fmt.Sprintf("%v is not a whole number", from), "write a whole number"}
}

func truth(from reflect.Value) (any, error) {
	switch fmt.Sprint(from) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, wrong{fmt.Sprintf("%v is neither true nor false", from), "write true or false"}
}

// decodeProblems answers a problem for each value of the wrong kind.
func decodeProblems(err error) (ps cluster.Problems) {
	var w wrong
	switch err := err.(type) {
	case nil:
		return nil
	case interface{ Unwrap() []error }:
		for _, inner := range err.Unwrap() {
			ps = append(ps, decodeProblems(inner)...)
		}
		return ps
	case *mapstructure.DecodeError:
		if errors.As(err, &w) {
			return cluster.Problems{{Path: err.Name(), What: w.what, Remedy: w.remedy}}
		}
		return cluster.Problems{{Path: err.Name(), What: err.Unwrap().Error(), Remedy: "write a value of the right kind"}}
	case interface{ Unwrap() error }:
		return decodeProblems(err.Unwrap())
	}
	return cluster.Problems{{What: err.Error(), Remedy: "write a value of the right kind"}}
}

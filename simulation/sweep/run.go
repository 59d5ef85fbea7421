package sweep

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// Variants are the combinations of the axes.
func Variants(farm simulation.Farm, axes []Axis) ([]Variant, error) {
	var all []Variant
	for _, settings := range Combinations(axes) {
		changed, err := Apply(farm, settings)
		if err != nil {
			return nil, err
		}
		words := make([]string, len(settings))
		for i, s := range settings {
			words[i] = s.String()
		}
		all = append(all, Variant{Name: strings.Join(words, " "), Settings: settings, Farm: changed})
	}
	return all, nil
}

// Run simulates every variant with the same jobs, so many at a time, and hands each result to take, in the order of
// the variants. What take does not keep is let go. Progress, where it is set, is told how many are through.
func Run(ctx context.Context, variants []Variant, jobs *trace.Trace, atOnce int, progress func(done int), take func(Variant, *simulation.Result) error) error {
	results := make([]chan outcome, len(variants))
	for i := range results {
		results[i] = make(chan outcome, 1)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next, done atomic.Int64
	var workers sync.WaitGroup
	for range min(max(atOnce, 1), len(variants)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(variants); i = int(next.Add(1)) - 1 {
				v := variants[i]
				r, err := simulation.Run(ctx, v.Farm, jobs, simulation.Options{Label: v.Name})
				results[i] <- outcome{r, err}
				if n := int(done.Add(1)); progress != nil {
					progress(n)
				}
			}
		})
	}
	defer workers.Wait()
	for i, v := range variants {
		o := <-results[i]
		if o.err == nil {
			o.err = take(v, o.result)
		}
		if o.err != nil {
			cancel()
			return fmt.Errorf("%s: %w", v.Name, o.err)
		}
	}
	return nil
}

type outcome struct {
	result *simulation.Result
	err    error
}

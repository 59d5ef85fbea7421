package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/trace"
)

// Variants are the combinations of the axes.
func Variants(farm simulation.Farm, axes []Axis) ([]Variant, error) {
	var all []Variant
	for i, axis := range axes {
		if slices.ContainsFunc(axes[:i], func(other Axis) bool { return other.Key == axis.Key }) {
			return nil, fmt.Errorf("%s is varied twice; give all its values at once, as in %s=1,2", axis.Key, axis.Key)
		}
	}
	for _, settings := range Combinations(axes) {
		changed, err := Apply(farm, settings)
		if err == nil {
			err = changed.Validate("simulation").Err()
		}
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

// ErrStopped tells that variants were broken off, or never begun.
var ErrStopped = errors.New("broken off")

// Run simulates every variant with the same jobs, so many at a time, and hands each result to take, in the order of
// the variants. What take does not keep is let go. Progress, where it is set, is told how many are through. Where ctx
// ends, what was not simulated to its end is not handed over, and the error is ErrStopped.
func Run(ctx context.Context, variants []Variant, jobs *trace.Trace, atOnce int, progress func(done int), take func(Variant, *simulation.Result) error) error {
	results := make([]chan outcome, len(variants))
	for i := range results {
		results[i] = make(chan outcome, 1)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	var workers sync.WaitGroup
	ahead := make(chan struct{}, 2*max(atOnce, 1)) // results that are not taken yet
	for range min(max(atOnce, 1), len(variants)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(variants); i = int(next.Add(1)) - 1 {
				select {
				case ahead <- struct{}{}:
				case <-ctx.Done():
				}
				results[i] <- simulate(ctx, variants[i], jobs)
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
		select {
		case <-ahead:
		default:
		}
		if progress != nil {
			progress(i + 1)
		}
	}
	return nil
}

func simulate(ctx context.Context, v Variant, jobs *trace.Trace) outcome {
	if ctx.Err() != nil {
		return outcome{err: ErrStopped}
	}
	r, err := simulation.Run(ctx, v.Farm, jobs, simulation.Options{Label: v.Name})
	if err == nil && r.Stopped {
		err = ErrStopped
	}
	return outcome{r, err}
}

type outcome struct {
	result *simulation.Result
	err    error
}

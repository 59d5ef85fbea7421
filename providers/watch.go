package providers

import "context"

// Watch is told of the process group of each script that begins; what it answers
// is called when the script has ended.
type Watch func(group int) (ended func())

type watchKey struct{}

// WithWatch has scripts that are run under the context watched.
func WithWatch(ctx context.Context, w Watch) context.Context {
	return context.WithValue(ctx, watchKey{}, w)
}

// watched tells the context's watch, if it has one.
func watched(ctx context.Context, group int) (ended func()) {
	if w, ok := ctx.Value(watchKey{}).(Watch); ok {
		return w(group)
	}
	return func() {}
}

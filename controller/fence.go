package controller

import (
	"context"

	"xce.internal/elastic/controller/api"
)

// acting is a provisioner that calls, and the lease under which it says it does.
type acting struct {
	name  string
	claim api.Claim
}

type actingKey struct{}

// actingAs marks a call as one of a provisioner. What is not marked comes from
// within the controller's own process, and needs no lease.
func actingAs(ctx context.Context, name string, claim api.Claim) context.Context {
	return context.WithValue(ctx, actingKey{}, &acting{name, claim})
}

func actingOf(ctx context.Context) *acting {
	a, _ := ctx.Value(actingKey{}).(*acting)
	return a
}

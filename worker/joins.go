package worker

import (
	"context"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// joins is the controller as the providers of hosts need it.
type joins struct {
	controller         *api.Client
	address, authority string
}

var _ activities.Hosts = joins{}

// Join implements activities.Hosts.
func (j joins) Join(ctx context.Context, host string) (providers.Join, error) {
	token, err := j.controller.JoinToken(ctx, host)
	if err != nil {
		return providers.Join{}, err
	}
	return providers.Join{Host: host, Controller: j.address, CA: j.authority, Token: token.Token, Deadline: token.Deadline.Std()}, nil
}

// Machines implements activities.Hosts.
func (j joins) Machines(ctx context.Context, provider string) ([]api.HostMachine, error) {
	return j.controller.Machines(ctx, provider)
}

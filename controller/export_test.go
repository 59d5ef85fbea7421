package controller

import (
	"context"

	"xce.internal/elastic/controller/api"
)

// Register registers a route that does nothing.
func Register(s *Server, route api.Route) {
	handle(s, route, func(context.Context, *none) (*none, error) { return nil, nil })
}

//go:build e2e

package chaos

import (
	"errors"

	"xce.internal/elastic/cmd/xce-elastic/chaos/plan"
)

// postgres names the database as something to hurt.
const postgres = "postgres"

// shares tells whether controllers share their state.
func (f *farm) shares() bool { return false }

// state is where a controller keeps its state.
func (f *farm) state(string) (string, error) { return f.path("controller.db"), nil }

func (f *farm) hurtPostgres(plan.Kind) (heal func() error, err error) { return nil, errors.New("there is none") }

// leads tells whether a controller runs the sessions now.
func (f *farm) leads(target string) bool { return target == f.controllers[0].name }

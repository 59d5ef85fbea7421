//go:build e2e

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/cmd/xce-elastic/chaos/plan"
	"xce.internal/elastic/controller/postgrestest"
)

// postgres names the database as something to hurt.
const postgres = "postgres"

// database is the PostgreSQL on which controllers share their state, a schema for each seed.
type database struct {
	*postgrestest.Server
	mu sync.Mutex
	up bool
}

// openDatabase answers nil where there is no PostgreSQL; one controller then keeps its state in a file.
func openDatabase(t *testing.T) *database {
	t.Helper()
	if !postgrestest.Installed() {
		t.Log("there is no PostgreSQL here, so that there is one controller; `apt-get install postgresql` brings it")
		return nil
	}
	return &database{Server: postgrestest.Start(t, postgrestest.Options{TCP: true}), up: true}
}

// shares tells whether controllers share their state.
func (f *farm) shares() bool { return f.database != nil }

// schema is where the state of this seed is.
func (f *farm) schema() string { return fmt.Sprintf("seed%d", f.seed) }

// makeState makes where the controllers keep their state.
func (f *farm) makeState() error {
	if !f.shares() {
		return nil
	}
	return f.database.Do(f.t.Context(), "postgres", "CREATE SCHEMA "+f.schema())
}

// state is where a controller keeps its state: it reaches the database by a wire of its own.
func (f *farm) state(name string) (string, error) {
	if !f.shares() {
		return f.path("controller.db"), nil
	}
	server := net.JoinHostPort("127.0.0.1", strconv.Itoa(f.database.Port()))
	if err := f.lay(name, map[string]string{postgres: server}); err != nil {
		return "", err
	}
	return f.database.AddressAt(f.wires[name+">"+postgres].Address(), "postgres") + "&search_path=" + f.schema(), nil
}

// hurtPostgres ends the database; it is healed by starting it again.
func (f *farm) hurtPostgres(kind plan.Kind) (heal func() error, err error) {
	f.database.mu.Lock()
	defer f.database.mu.Unlock()
	if !f.database.up {
		return nil, errors.New("it is down")
	}
	f.database.up = false
	switch kind {
	case plan.Restart:
		f.database.Stop()
	default: // stopped for a while, it is as far away as one that is killed
		err = f.database.Kill()
	}
	return f.database.raise, err
}

// raise makes sure that the database is up.
func (d *database) raise() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.up {
		return nil
	}
	if err := d.Restart(); err != nil {
		return err
	}
	d.up = true
	return nil
}

// leads tells whether a controller runs the sessions now, as far as it can be told quickly.
func (f *farm) leads(target string) bool {
	if !f.shares() {
		return target == f.controllers[0].name
	}
	for _, c := range f.controllers {
		ctx, cancel := context.WithTimeout(f.t.Context(), 300*time.Millisecond)
		st, err := c.client.Status(ctx)
		cancel()
		if err != nil {
			continue
		}
		for _, one := range st.Controllers {
			if one.Leads {
				return one.Name == target
			}
		}
	}
	return false
}

package postgrestest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// common is the server that all tests of a program share. It ends with the program.
var (
	common  = sync.OnceValues(func() (*Server, error) { return startCommon(Options{}) })
	durable = sync.OnceValues(func() (*Server, error) { return startCommon(Options{Durable: true}) })
	created atomic.Int64
)

func startCommon(o Options) (*Server, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	return start(programs, o)
}

// Database answers the address of a new, empty schema of a database that is the test's own;
// the test is skipped where there is no PostgreSQL.
func Database(tb testing.TB) string {
	tb.Helper()
	return database(tb, common)
}

// DurableDatabase is the same of a server that writes to the disk what it commits.
func DurableDatabase(tb testing.TB) string {
	tb.Helper()
	return database(tb, durable)
}

func database(tb testing.TB, of func() (*Server, error)) string {
	tb.Helper()
	need(tb)
	server, err := of()
	if err != nil {
		tb.Fatal(err)
	}
	name := fmt.Sprintf("test_%d", created.Add(1))
	if err := server.Do(tb.Context(), "postgres", "CREATE SCHEMA "+name); err != nil {
		tb.Fatalf("make a schema: %v", err)
	}
	tb.Cleanup(func() {
		if err := server.Do(context.Background(), "postgres", "DROP SCHEMA "+name+" CASCADE"); err != nil {
			tb.Errorf("drop the test's schema: %v", err)
		}
	})
	return server.Address("postgres") + "&search_path=" + name
}

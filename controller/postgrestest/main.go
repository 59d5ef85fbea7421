package postgrestest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"xce.internal/elastic/controller/store"
)

var (
	// onPostgres tells that tests use PostgreSQL where they use SQLite else.
	onPostgres bool
	// twice tells that tests run on SQLite first and on PostgreSQL then.
	twice bool
)

// Main runs a package's tests twice: on SQLite, and, where there is PostgreSQL,
// on that. XCE_TEST_STATE=sqlite or =postgres runs them once.
//
// Under the race detector they run once, on PostgreSQL where there is one: SQLite is
// itself Go, which takes six times as long then, and our code is the same for both.
func Main(m *testing.M) {
	flag.Parse()
	_, missing := findPrograms()
	only := os.Getenv("XCE_TEST_STATE")
	if only == "" && racing && missing == nil && !measures() {
		only = "postgres"
	}
	twice = only == "" && !measures()
	code := 0
	if only != "postgres" {
		code = m.Run()
	}
	if code == 0 && only != "sqlite" && !measures() {
		if missing != nil {
			fmt.Println("not run on PostgreSQL:", missing)
		} else {
			fmt.Println("on PostgreSQL:")
			onPostgres = true
			code = m.Run()
		}
	}
	os.Exit(code)
}

// measures tells whether benchmarks or fuzzing were asked for, which choose their state themselves.
func measures() bool {
	for _, name := range []string{"test.bench", "test.fuzz", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return true
		}
	}
	return false
}

// State answers a new, empty state for a test: in memory, or on PostgreSQL.
func State(tb testing.TB) string {
	tb.Helper()
	if onPostgres {
		return Database(tb)
	}
	return store.Memory
}

// Shared answers a new, empty state that several controllers can share, for a test
// of just that: it runs once.
func Shared(tb testing.TB) string {
	tb.Helper()
	Once(tb)
	return Database(tb)
}

// Once has a test that needs PostgreSQL run once only, where the others run twice.
func Once(tb testing.TB) {
	tb.Helper()
	need(tb)
	if twice && !onPostgres {
		tb.Skip("it is run once, with those on PostgreSQL")
	}
}

// OnPostgres tells whether the tests run on PostgreSQL now.
func OnPostgres() bool { return onPostgres }

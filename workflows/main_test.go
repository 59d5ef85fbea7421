package workflows_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has properties checked more often than is usual: stories are told fast.
func TestMain(m *testing.M) {
	flag.Parse()
	checks = flag.Lookup("rapid.checks")
	if free = checks.Value.String() == checks.DefValue && !racing; free {
		_ = checks.Value.Set("400")
	}
	os.Exit(m.Run())
}

// checks is how often properties are checked; free tells that the command line
// does not say.
var (
	checks *flag.Flag
	free   bool
)

// thoroughly has one property checked a thousand times.
func thoroughly(t *testing.T) {
	t.Helper()
	if !free {
		return
	}
	before := checks.Value.String()
	_ = checks.Value.Set("1000")
	t.Cleanup(func() { _ = checks.Value.Set(before) })
}

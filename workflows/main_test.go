package workflows_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has properties checked more often than is usual: stories are told fast.
func TestMain(m *testing.M) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue && !racing {
		_ = checks.Value.Set("400")
	}
	os.Exit(m.Run())
}

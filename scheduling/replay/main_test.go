package replay_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	checks := "300"
	if racing {
		checks = "50"
	}
	_ = flag.Set("rapid.checks", checks) // the command line may say otherwise
	os.Exit(m.Run())
}

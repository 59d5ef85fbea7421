package scheduling

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "1000") // the command line may say otherwise
	os.Exit(m.Run())
}

//go:build e2e

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"xce.internal/elastic/workflows"
)

// station is what outlives a seed: the programs and the Temporal server. Each seed has names of its own for
// providers and templates, so that no workflow is taken for another.
type station struct {
	folder   string
	bin      string
	program  string // xce-elastic, or a build of it for a test
	mischief string
	skewable bool
	broken   bool // a protection is switched off, and violations are what is looked for
	temporal *process
	address  string // of the Temporal server
	client   client.Client
	database *database
}

// namespace is Temporal's.
const namespace = "xce"

// open makes a station.
func open(t *testing.T, v variant) *station {
	t.Helper()
	s := &station{folder: t.TempDir(), bin: os.Getenv("XCE_BIN"), broken: v.tag != ""}
	if s.bin == "" {
		s.bin, _ = filepath.Abs("../../../bin")
	}
	for _, name := range []string{"xce-elastic", "devserver", "pool", "local"} {
		if _, err := os.Stat(filepath.Join(s.bin, name)); err != nil {
			t.Fatalf("%v: run `make build` first", err)
		}
	}
	s.mischief = s.build(t, "mischief", "xce.internal/elastic/cmd/xce-elastic/chaos/mischief")
	s.program = filepath.Join(s.bin, "xce-elastic")
	if v.tag != "" || v.clocks {
		s.program, s.skewable = s.variant(t, v), v.clocks
	}
	s.startTemporal(t)
	s.database = openDatabase(t)
	return s
}

// build builds a program for tests, and answers where it is.
func (s *station) build(t *testing.T, name, of string, flags ...string) string {
	t.Helper()
	path := filepath.Join(s.bin, "chaos", name)
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), of)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	t.Logf("built %s in %s", name, time.Since(began).Round(time.Second))
	return path
}

func (s *station) startTemporal(t *testing.T) {
	t.Helper()
	address := freePort(t)
	_, port, _ := net.SplitHostPort(address)
	ready := filepath.Join(s.folder, "temporal.json")
	args := []string{"--db", filepath.Join(s.folder, "temporal.db"), "--namespace", namespace, "--ready-file", ready, "--port", port, "--ui-port", "-1"}
	for _, a := range workflows.SearchAttributes {
		args = append(args, "--search-attribute", a)
	}
	s.temporal = &process{name: "temporal", folder: s.folder, program: filepath.Join(s.bin, "devserver"), args: args, ready: func(context.Context) error {
		data, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		var r struct{ Address string }
		err = json.Unmarshal(data, &r)
		s.address = r.Address
		return err
	}}
	t.Cleanup(func() { s.temporal.end(syscall.SIGTERM, 5*time.Second) })
	if err := errors.Join(s.temporal.start(), s.temporal.await(t.Context(), time.Minute)); err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(client.Options{HostPort: s.address, Namespace: namespace, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s.client = c
}

// freePort answers a loopback address with a port that is free now.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// variant is a build of the program for a test.
type variant struct {
	// tag switches one protection off.
	tag string
	// clocks lets each process have a clock of its own.
	clocks bool
}

func (s *station) variant(t *testing.T, v variant) string {
	t.Helper()
	name := "xce-elastic"
	var flags []string
	if v.tag != "" {
		name += "-" + v.tag
		flags = append(flags, "-tags", v.tag)
	}
	if v.clocks {
		name += "-clocks"
		flags = append(flags, "-overlay", s.overlay(t))
	}
	return s.build(t, name, "xce.internal/elastic/cmd/xce-elastic", flags...)
}

// clockVariable is by how many milliseconds a process's clock is ahead.
const clockVariable = "CHAOS_CLOCK"

// skewed is what is put beside the standard library's Now, which it makes add this.
const skewed = `
var aheadSeconds, aheadNanoseconds = ahead()

// ahead reads by how much this process's clock is ahead; a build for tests only.
func ahead() (seconds int64, nanoseconds int32) {
	text, _ := syscall.Getenv("` + clockVariable + `")
	var ms, sign int64 = 0, 1
	for i := 0; i < len(text); i++ {
		if text[i] == '-' {
			sign = -1
		} else {
			ms = ms*10 + int64(text[i]-'0')
		}
	}
	ms *= sign
	seconds = ms / 1000
	if ms%1000 < 0 {
		seconds--
	}
	return seconds, int32((ms - seconds*1000) * 1000000)
}

func runtimeNowAhead() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	sec, nsec = sec+aheadSeconds, nsec+aheadNanoseconds
	if nsec >= 1000000000 {
		sec, nsec = sec+1, nsec-1000000000
	}
	return sec, nsec, mono
}
`

// overlay has the standard library's clock of the day read what the environment says. What a process measures by
// its monotonic clock stays true, as on a machine whose clock is set wrong.
func (s *station) overlay(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const read = "\tsec, nsec, mono := runtimeNow()\n"
	before, after, found := strings.Cut(string(text), "func Now() Time {\n"+read)
	if !found || strings.Contains(after, "syscall.") {
		t.Fatalf("%s has another Now than this build for tests knows", original)
	}
	changed := before + "func Now() Time {\n" + strings.Replace(read, "runtimeNow", "runtimeNowAhead", 1) + after + skewed
	if !strings.Contains(changed, `"syscall"`) {
		changed = strings.Replace(changed, "import (\n", "import (\n\t\"syscall\"\n", 1)
	}
	folder := filepath.Join(s.bin, "chaos", "overlay")
	mine, list := filepath.Join(folder, "time.go"), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: mine}})
	err = errors.Join(err, os.MkdirAll(folder, 0o700), os.WriteFile(mine, []byte(changed), 0o600), os.WriteFile(list, replace, 0o600))
	if err != nil {
		t.Fatal(fmt.Errorf("make the overlay: %w", err))
	}
	return list
}

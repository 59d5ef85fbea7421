package providers

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzRunner: whatever a script prints, however it ends and however long it
// takes, the runner comes back in time with an outcome, and nothing but a clear
// answer counts as one.
func FuzzRunner(f *testing.F) {
	for _, stdout := range []string{"", `{"grants":[]}`, `{"status":"refused","reason":"quota"}`, `{"grants":[`, "\x00\xff", `{"grants":[]}{"grants":[]}`, `[]`} {
		f.Add([]byte(stdout), []byte("a line\n\x1b[31m"), uint8(0), uint8(0))
		f.Add([]byte(stdout), []byte{}, uint8(3), uint8(0))
	}
	f.Add([]byte(`{"grants":[]}`), []byte{}, uint8(137), uint8(1))
	f.Add([]byte(`{"grants":[]}`), []byte{}, uint8(0), uint8(255))
	dir := f.TempDir()
	script := filepath.Join(dir, "script")
	text := `#!/bin/sh
cat "$DIR/stderr" >&2
cat "$DIR/stdout"
case $LATE in 1) exec sleep 60;; 2) sleep 60 & ;; esac
[ "$EXIT" -lt 130 ] || kill -9 $$
exit "$EXIT"
`
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stdout, stderr []byte, exit, late uint8) {
		for name, content := range map[string][]byte{"stdout": stdout, "stderr": stderr} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		linger := map[bool]string{true: "1"}[late == 255] // waiting for the limit takes its time
		if late == 1 {
			linger = "2"
		}
		runner, err := NewRunner(Spec{
			Name: "test", Script: script, TimeLimit: 2 * time.Second, OutputLimit: 64 << 10,
			Environment: map[string]string{"DIR": dir, "LATE": linger, "EXIT": string([]byte{'0' + exit/100, '0' + exit/10%10, '0' + exit%10})},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, outcome := runner.List(t.Context())
		checkOutcome(t, outcome, stdout)
		if outcome.Status != StatusOK && len(out.Grants) > 0 {
			t.Fatalf("%+v with %+v", outcome, out)
		}
		if linger == "1" && outcome.Status != StatusUnknown {
			t.Fatalf("no end within its limit, and yet %+v", outcome)
		}
	})
}

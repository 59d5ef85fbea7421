package hostfactory

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/providers"
)

func TestAPluginHasItsUserAndItsSecretAndTellsNobody(t *testing.T) {
	f := newFake(t)
	f.write(requestMachines, `#!/bin/sh
		{ id -u; cat "$2" >/dev/null && echo input; cat "$KEY_FILE"; } >"$OUT"
		tr '\0' '\n' </proc/$$/environ >"$OUT.env"
		cat "$KEY_FILE" >&2
		echo "{\"message\":\"bad key $(cat "$KEY_FILE")\",\"requestId\":\"r\"}"`)
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("hunter2-hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := f.spec()
	out := filepath.Join(f.dir, "out", "out")
	if err := os.Mkdir(filepath.Dir(out), 0o777); err != nil {
		t.Fatal(err)
	}
	spec.Secrets, spec.Environment = map[string]string{"KEY": secret}, map[string]string{"OUT": out}
	uid := os.Geteuid()
	if uid == 0 {
		spec.User, uid = "nobody", 65534
		for path := f.dir; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Dir(out), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	a := f.real(spec, &log)
	answer, outcome := a.Request(t.Context(), askOne("host/small-1"))
	got := read(t, out)
	if !strings.HasSuffix(got, "input\nhunter2-hunter2") || !strings.HasPrefix(got, map[bool]string{true: "65534\n"}[uid == 65534]) {
		t.Fatalf("the script had %q: %+v\n%s", got, outcome, log.String())
	}
	state := read(t, spec.State)
	for where, text := range map[string]string{"the log": log.String(), "the answer": answer.Message + outcome.Message + outcome.Text, "the environment": read(t, out+".env"), "the state": state} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s has it: %s", where, text)
		}
	}
	if !strings.Contains(log.String(), providers.Hidden) {
		t.Errorf("the log has no trace of it: %s", log.String())
	}
}

//go:build e2e

package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
)

// kept is the folder in which is kept what is left of a run that failed.
func (f *farm) kept() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("xce-chaos-%d", f.seed))
}

// keepEvidence keeps the evidence of a run, to be judged again.
func (f *farm) keepEvidence(e evidence.Evidence) {
	text, err := json.MarshalIndent(e, "", " ")
	if err == nil {
		err = f.keep("evidence.json", text)
	}
	if err != nil {
		f.t.Log(err)
	}
}

// keepLogs keeps the logs of all processes.
func (f *farm) keepLogs() {
	logs, _ := filepath.Glob(f.path("*[a-z0-9].log"))
	for _, log := range append(logs, filepath.Join(f.station.folder, "temporal.log")) {
		text, err := os.ReadFile(log)
		if err == nil {
			err = f.keep(filepath.Base(log), text)
		}
		if err != nil {
			f.t.Log(err)
		}
	}
}

func (f *farm) keep(name string, text []byte) error {
	if err := os.MkdirAll(f.kept(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.kept(), name), text, 0o600)
}

package activities_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/providers"
)

// What activities take and answer is what a history has. A script that prints its
// secret wherever it can must not get it there.
func TestNoSecretOfAScriptGetsIntoAHistory(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "key")
	if err := os.WriteFile(secret, []byte("hunter2-hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string]string{
		"a refusal":  `echo "{\"status\":\"refused\",\"reason\":\"denied\",\"message\":\"bad $key\"}"`,
		"noise":      `echo "bad key $key"; exit 3`,
		"cut short":  `printf '{"status":"refused","message":"%s' "${key%r2}"`,
		"wrong type": `echo "{\"$key\":\"$key\",\"status\":1}"`,
	} {
		t.Run(name, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(script, []byte("#!/bin/sh\nkey=$(cat \"$KEY_FILE\")\necho \"$key\" >&2\n"+answer+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			runner, err := providers.NewRunner(providers.Spec{Name: "pool", Script: script, Secrets: map[string]string{"KEY": secret}}, slog.New(slog.NewJSONHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			d := &activities.Dealer{Script: runner}
			ask := activities.Ask{Provider: "pool", Request: "loan/vcs/pool-1", Resource: "vcs", Units: 1, Weight: 1}
			history := fmt.Sprint(log.String())
			note := func(of any, err error) {
				data, jsonErr := json.Marshal(of)
				history += fmt.Sprintf("%s %v %v\n", data, err, jsonErr)
			}
			note(d.Request(t.Context(), ask))
			note(d.Status(t.Context(), ask))
			note(d.Holding(t.Context(), ask))
			note(d.Return(t.Context(), activities.GiveBack{Ask: ask}))
			note(d.Survey(t.Context(), activities.SurveyIn{Provider: "pool"}))
			note(ask, nil)
			if history += log.String(); strings.Contains(history, "hunter2-") {
				t.Errorf("it is in\n%s", history)
			}
			if strings.Count(history, providers.Hidden) < 5 {
				t.Errorf("it was never said:\n%s", history)
			}
		})
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// readiness is what is announced once everything answers.
type readiness struct {
	Address   string `json:"address"`   // front-end gRPC, host:port
	UI        string `json:"ui"`        // URL, or empty without UI
	Namespace string `json:"namespace"` // exists and is usable
	PID       int    `json:"pid"`
}

// announceReady writes the ready file, whole or not at all, and the same
// line to stdout.
func announceReady(ready readiness, file string, stdout io.Writer) error {
	line, err := json.Marshal(ready)
	if err != nil {
		return fmt.Errorf("cannot encode the ready message: %w", err)
	}
	line = append(line, '\n')
	if file != "" {
		if err := writeWhole(file, line); err != nil {
			return fmt.Errorf("cannot write the ready file %s, check --ready-file: %w", file, err)
		}
	}
	if _, err := stdout.Write(line); err != nil {
		return fmt.Errorf("cannot write the ready line to stdout: %w", err)
	}
	return nil
}

func writeWhole(path string, content []byte) error {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// forgetReady removes the ready file, which may be left from a run that was
// killed, and checks that there is a folder for the next one.
func forgetReady(file string) error {
	if file == "" {
		return nil
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the old ready file %s, check --ready-file: %w", file, err)
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return fmt.Errorf("no folder for the ready file %s, create it or check --ready-file: %w", file, err)
	}
	return nil
}

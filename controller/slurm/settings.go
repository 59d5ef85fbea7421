package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

// Settings reads what slurmctld says of itself.
func (c Commands) Settings(ctx context.Context) (Settings, error) {
	text, err := c.Run(ctx, "scontrol", "show", "config")
	if err != nil {
		return Settings{}, err
	}
	settings, err := parseSettings(text)
	if err != nil {
		return Settings{}, fmt.Errorf("scontrol show config: %w", err)
	}
	return settings, nil
}

func parseSettings(text []byte) (Settings, error) {
	s := Settings{Keys: map[string]string{}}
	for line := range bytes.Lines(text) {
		name, value, ok := strings.Cut(string(line), "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") {
			continue // a heading, or what slurmctld says of its peers
		}
		s.Keys[strings.ToLower(name)] = strings.TrimSpace(value)
	}
	s.Version, s.Cluster = s.Keys["slurm_version"], s.Keys["clustername"]
	booted, err := whole(s.Keys["boot_time"])
	switch {
	case err != nil || booted == 0 || booted > mostSeconds:
		return Settings{}, fmt.Errorf("BOOT_TIME is %q, which is not a time in seconds since 1970", s.Keys["boot_time"])
	case s.Version == "":
		return Settings{}, errors.New("there is no SLURM_VERSION")
	}
	s.Booted = cluster.Time(booted * 1000)
	return s, nil
}

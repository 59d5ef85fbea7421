package slurm

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
)

// Survey is what a running Slurm has, as far as it matters for us.
type Survey struct {
	Settings     Settings
	Conf         string
	Programs     map[string]string // where each of Programs is; without those that are not there
	Me           Me
	Nodes        []Node
	Licences     map[string]Licence
	Reservations []Reservation
	Partitions   []Partition
}

// Me is who asks Slurm.
type Me struct {
	Name string
	UID  string
	// Level is the AdminLevel that Slurm's accounts give us, as in Operator; empty where they give none, or there are none.
	Level string
}

// The programs of Slurm that we run: those that must be there, and those that only some things need.
var (
	neededPrograms = []string{"scontrol", "squeue"}
	usefulPrograms = []string{"sacctmgr", "sacct"}
)

// Survey reads what Slurm has. It changes nothing.
func (c Commands) Survey(ctx context.Context) (s Survey, err error) {
	if s.Settings, err = c.Settings(ctx); err != nil {
		return s, err
	}
	s.Conf, s.Programs = c.Conf, c.programs()
	if s.Nodes, err = c.Nodes(ctx); err != nil {
		return s, err
	}
	if s.Licences, err = c.Licences(ctx); err != nil {
		return s, err
	}
	if s.Reservations, err = c.Reservations(ctx); err != nil {
		return s, err
	}
	if s.Partitions, err = c.Partitions(ctx); err != nil {
		return s, err
	}
	s.Me = c.me(ctx, s.Settings)
	return s, nil
}

func (c Commands) programs() map[string]string {
	found := map[string]string{}
	for _, name := range append(append([]string{}, neededPrograms...), usefulPrograms...) {
		path := filepath.Join(c.Folder, name)
		if c.Folder == "" {
			path, _ = exec.LookPath(name)
		}
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			found[name] = path
		}
	}
	return found
}

// me asks Slurm's accounts who we are; where they say nothing, our names alone count.
func (c Commands) me(ctx context.Context, s Settings) (m Me) {
	if u, err := user.Current(); err == nil {
		m.Name, m.UID = u.Username, u.Uid
	}
	if m.Name == "" || s.accounting() != slurmdbd {
		return m
	}
	out, err := c.Run(ctx, "sacctmgr", "-n", "-P", "show", "user", "name="+m.Name, "format=user,adminlevel")
	if err != nil {
		return m // who is not known there, or cannot ask, has no more rights than others
	}
	for line := range strings.Lines(string(out)) {
		if name, level, ok := strings.Cut(strings.TrimSpace(line), "|"); ok && name == m.Name && level != "None" {
			m.Level = level
		}
	}
	return m
}

const slurmdbd = "slurmdbd"

// accounting answers where accounts are kept: slurmdbd, or none.
func (s Settings) accounting() string {
	return strings.TrimPrefix(s.value("accountingstoragetype"), "accounting_storage/")
}

// value answers a setting, and nothing where Slurm says that there is none.
func (s Settings) value(key string) string {
	if v := s.Keys[key]; !absent(v) {
		return v
	}
	return ""
}

// words answers a setting that is a list, with commas between its items.
func (s Settings) words(key string) []string {
	if v := s.value(key); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

// Package snapshot is the file form of what a session judges: an administrator
// saves the state of a cluster, and a developer runs sessions on it elsewhere.
//
// A snapshot is one JSON object. [Read] takes it whole or refuses it whole, each
// fault with its place and the remedy: unknown keys, values of the wrong kind,
// and states that no cluster can be in. [Hash] makes one that can be sent on:
// who runs what is told no more.
package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

// Format and Version are those of the files that this package writes and reads.
const (
	Format  = "xce-snapshot"
	Version = 1
)

// Snapshot is the state of a cluster at one moment.
type Snapshot struct {
	Format  string           `json:"format"`
	Version int64            `json:"version"`
	Cluster string           `json:"cluster"`
	Taken   cluster.Time     `json:"taken"`
	State   scheduling.Input `json:"state"`
}

// Of answers the snapshot of a cluster's state.
func Of(cluster string, state scheduling.Input) Snapshot {
	return Snapshot{Format: Format, Version: Version, Cluster: cluster, Taken: state.Now, State: state}
}

// mostBytes limits what is read: some 500,000 jobs.
const mostBytes = 256 << 20

// Read reads a snapshot. The name is that of the file, for the places of faults;
// a snapshot that is not taken is a [*Refused].
func Read(name string, from io.Reader) (Snapshot, error) { return read(name, from, mostBytes) }

func read(name string, from io.Reader, most int64) (Snapshot, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return Snapshot{}, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors write this mark
	s, faults := parse(data, most)
	if len(faults) > 0 {
		return Snapshot{}, refuse(name, data, faults)
	}
	return s, nil
}

// parse answers a snapshot, or its faults.
func parse(data []byte, most int64) (s Snapshot, faults []fault) {
	if int64(len(data)) > most {
		return s, []fault{{what: fmt.Sprintf("the file has more than %d bytes", most), remedy: "save a snapshot of fewer jobs"}}
	}
	if f, bad := malformed(data); bad {
		return s, []fault{f}
	}
	if f, bad := foreign(data); bad {
		return s, []fault{f}
	}
	d := decoder{scanner: scanner{data: data}}
	d.decode(&s)
	if len(d.faults) > 0 {
		return s, d.faults
	}
	for _, p := range s.problems() {
		faults = append(faults, fault{at: find(data, p.Path), path: p.Path, what: p.What, remedy: p.Remedy})
	}
	return s, faults
}

// problems are the faults of a snapshot as a whole.
func (s Snapshot) problems() (ps cluster.Problems) {
	if !cluster.ValidName(s.Cluster) {
		ps = append(ps, cluster.Problem{Path: "cluster", What: fmt.Sprintf("name %q is not valid", s.Cluster), Remedy: "name the cluster, with letters, digits, '.', '_' or '-'"})
	}
	if s.Taken < 0 || s.Taken > latest {
		ps = append(ps, cluster.Problem{Path: "taken", What: noTime, Remedy: timeRemedy})
	}
	return append(ps, Validate(s.State)...)
}

// Write writes a snapshot.
func (s Snapshot) Write(to io.Writer) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	s.State.Hosts = listed(s.State.Hosts)
	s.State.Resources = listed(s.State.Resources)
	s.State.Jobs = listed(s.State.Jobs)
	s.State.Offers = listed(s.State.Offers)
	if err := encoder.Encode(s); err != nil {
		return fmt.Errorf("encode the snapshot: %w", err)
	}
	if _, err := to.Write(text.Bytes()); err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	return nil
}

// listed answers an empty list for none.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

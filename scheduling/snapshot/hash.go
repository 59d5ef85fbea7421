package snapshot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// Hash answers the snapshot with the names of users, jobs, commands and folders
// replaced by hashes, and without the sentences that may tell them. The same
// name has the same hash within this snapshot, and another one in the next: the
// salt is read from random and kept nowhere. Of a command, the program and its
// arguments together are hashed, so that jobs of one tool are still told.
func Hash(s Snapshot, random io.Reader) (Snapshot, error) {
	salt := make([]byte, sha256.Size)
	if _, err := io.ReadFull(random, salt); err != nil {
		return s, fmt.Errorf("draw a salt: %w", err)
	}
	h := hasher{salt}
	s.State.Running = h.jobs(s.State.Running)
	s.State.Jobs = h.jobs(s.State.Jobs)
	s.State.Hosts = slices.Clone(s.State.Hosts)
	for i := range s.State.Hosts {
		if host := &s.State.Hosts[i]; host.Closed != "" {
			host.Closed = "closed; why is left out here"
		}
	}
	s.State.Resources = slices.Clone(s.State.Resources)
	for i := range s.State.Resources {
		r := &s.State.Resources[i]
		r.Loans = slices.Clone(r.Loans)
		for j := range r.Loans {
			r.Loans[j].Reason, r.Loans[j].Why = "", ""
		}
	}
	return s, nil
}

type hasher struct{ salt []byte }

// name answers the hash of a name; none has none.
func (h hasher) name(text string) string {
	if text == "" {
		return ""
	}
	mac := hmac.New(sha256.New, h.salt)
	mac.Write([]byte(text))
	return "h" + hex.EncodeToString(mac.Sum(nil)[:8])
}

func (h hasher) jobs(jobs []cluster.Job) []cluster.Job {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		job := &jobs[i]
		job.User, job.Name, job.Directory = h.name(job.User), h.name(job.Name), h.name(job.Directory)
		job.Why, job.Change = "", ""
		if command := job.Command; len(command) > 0 {
			job.Command = []string{h.name(command[0])}
			if len(command) > 1 {
				job.Command = append(job.Command, h.name(strings.Join(command[1:], "\x00")))
			}
		}
	}
	return jobs
}

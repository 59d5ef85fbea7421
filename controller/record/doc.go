// Package record keeps what a controller decided and all that it was decided on, so that another version can be
// asked whether it would decide the same.
//
// A record is a folder of files of JSON lines, compressed, numbered in the order of their time. The first line of a
// file says what it is; each other line is one decision. A session's state is written as what changed since the
// last one in the file. Users, jobs, commands and folders are hashed, and sentences that people wrote are left out:
// no decision depends on them.
//
// The [Writer] works behind the controller's back: it takes a decision at once, or, where it cannot keep up, counts
// it as missed. [Read] reads a record, also one that is still being written or whose writer was killed.
package record

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/judge"
	"xce.internal/elastic/scheduling"
)

// Format and Version are those of the files that this package writes and reads.
const (
	Format  = "xce-record"
	Version = 1
)

// Head is the first line of a file.
type Head struct {
	Format  string `json:"format"`
	Version int64  `json:"version"`
	// Release is the version of the program that wrote it.
	Release string       `json:"release,omitempty"`
	Cluster string       `json:"cluster"`
	Begun   cluster.Time `json:"begun"`
}

// Entry is one decision; exactly one of the fields after At is set.
type Entry struct {
	At      cluster.Time
	Session *SessionEntry
	Loan    *LoanEntry
	Host    *HostEntry
	Fact    *FactEntry
	Lend    *LendEntry
	// Missed is how many decisions before this place are not in the record.
	Missed int64
}

// SessionEntry is a session: what it judged, and what came of it.
type SessionEntry struct {
	Input scheduling.Input
	// Limits is what the input's templates and quotas were limited by.
	Limits judge.Limits
	Result scheduling.Result
}

// LoanEntry is a write to a loan's row.
type LoanEntry struct {
	Books  judge.LoanBooks  `json:"books"`
	Write  judge.LoanWrite  `json:"write"`
	Answer judge.LoanAnswer `json:"answer"`
}

// HostEntry is a write to an elastic host's row.
type HostEntry struct {
	Books  judge.HostBooks  `json:"books"`
	Write  api.WriteHost    `json:"write"`
	Answer judge.HostAnswer `json:"answer"`
}

// LendEntry is a lending to another cluster.
type LendEntry struct {
	Books   judge.LoanBooks  `json:"books"`
	Lending cluster.Lending  `json:"lending"`
	Answer  judge.LendAnswer `json:"answer"`
}

// FactEntry is what was seen of an elastic host.
type FactEntry struct {
	Row    cluster.ElasticHost `json:"row"`
	Fact   judge.Fact          `json:"fact"`
	Answer judge.FactAnswer    `json:"answer"`
}

package cluster

import (
	"fmt"
	"regexp"
	"strings"
)

// Problem is one fault of an input: the place of the offending value as a path
// such as "resources[1].elastic.max_borrowed", what is wrong, and what to do.
type Problem struct {
	Path   string `json:"path"`
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

// String answers the problem as one line.
func (p Problem) String() string { return fmt.Sprintf("%s: %s; %s", p.Path, p.What, p.Remedy) }

// Problems are all the faults of one input. As an error it refuses the input whole.
type Problems []Problem

// Error lists the problems, a line each.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Err answers ps as an error, or nil where there is no problem.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

func (ps *Problems) add(path, what, remedy string) {
	*ps = append(*ps, Problem{Path: path, What: what, Remedy: remedy})
}

func (ps *Problems) notNegative(path string, n int64) {
	if n < 0 {
		ps.add(path, fmt.Sprintf("%d is negative", n), "write 0 or a positive whole number")
	}
}

// Limits that keep every sum and product of counts and weights a whole number.
const (
	mostUnits  = 1_000_000_000_000
	mostWeight = 1_000_000
)

func (ps *Problems) count(path string, n, most int64) {
	ps.notNegative(path, n)
	if n > most {
		ps.add(path, fmt.Sprintf("%d is too large to count with", n), fmt.Sprintf("write at most %d", most))
	}
}

// namePattern keeps names fit for ids, file names, URLs and tables.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// ValidName tells whether s can name a resource, a provider, a host or a job's user.
func ValidName(s string) bool { return namePattern.MatchString(s) }

func (ps *Problems) name(path, s string) {
	if !ValidName(s) {
		ps.add(path, fmt.Sprintf("name %q is not valid", s),
			"use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit")
	}
}

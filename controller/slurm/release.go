package slurm

import (
	"fmt"
	"strconv"
	"strings"
)

// Release is a release of Slurm, such as 22.05: a year and a month.
type Release struct{ Year, Month int64 }

// String implements fmt.Stringer.
func (r Release) String() string { return fmt.Sprintf("%02d.%02d", r.Year, r.Month) }

// Before tells whether r is older than another.
func (r Release) Before(other Release) bool {
	return r.Year < other.Year || r.Year == other.Year && r.Month < other.Month
}

// ReleaseOf reads a version such as 22.05.8 or 23.02.0-0rc1.
func ReleaseOf(version string) (Release, error) {
	year, rest, _ := strings.Cut(version, ".")
	month, _, _ := strings.Cut(rest, ".")
	y, err := strconv.ParseInt(year, 10, 64)
	m, err2 := strconv.ParseInt(month, 10, 64)
	if err != nil || err2 != nil || y < 14 || y > 99 || m < 1 || m > 12 {
		return Release{}, fmt.Errorf("%q is no version of Slurm such as 22.05.8", version)
	}
	return Release{y, m}, nil
}

// Releases from which on something is there.
var (
	hasDynamicNodes     = Release{22, 5}
	hasAllowed          = Release{23, 2}
	hasSuspendExcStates = Release{23, 2}
	hasLicencesOfTasks  = Release{23, 11}
	hasAnyLicence       = Release{25, 5}
)

// oldest and newest are the releases whose output we know; 22.05 is the one that everything is run against.
var oldest, newest = Release{22, 5}, Release{25, 11}

// Capability is what Slurm can from a release on, and what that is to us.
type Capability struct {
	Since Release
	What  string
	// Use says what we do with it, or without it.
	Use string
}

// Capabilities are those that make a difference to us.
var Capabilities = []Capability{
	{hasDynamicNodes, "nodes made and deleted at run time", "made hosts become nodes that no file names; before, slurm.nodes is cloud or future"},
	{hasAllowed, "LastConsumed of licences, and allowed= of resources", "a deficit that Slurm sees counts as used; before, percentallowed= sets what the cluster may use"},
	{hasSuspendExcStates, "SuspendExcStates", "keeps slurmctld from powering down dynamic nodes; before, SuspendExcParts does"},
	{hasLicencesOfTasks, "licences asked for by task (--tres-per-task=license/...)", "not used: ask for tokens with -L, which every release tells of"},
	{hasAnyLicence, "one licence or another (-L 'a:1|b:1')", "demand for the first alternative that can be had"},
}

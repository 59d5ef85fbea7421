package slurmtest

import (
	"context"
	"strings"
)

// Submit submits a job that runs a shell command, with options of sbatch, and answers its id.
func (c *Cluster) Submit(ctx context.Context, command string, options ...string) (id string, err error) {
	args := append([]string{"--parsable", "-o", "/dev/null"}, options...)
	out, err := c.Run(ctx, "sbatch", append(args, "--wrap="+command)...)
	return strings.TrimSpace(out), err
}

// JobState answers the state of a job, such as PENDING; empty where Slurm knows none of that id.
func (c *Cluster) JobState(ctx context.Context, id string) string {
	return c.JobField(ctx, id, "JobState")
}

// JobField answers one field of what scontrol shows of a job; empty where there is none.
func (c *Cluster) JobField(ctx context.Context, id, name string) string {
	out, err := c.Run(ctx, "scontrol", "-o", "show", "job", id)
	if err != nil {
		return ""
	}
	return Field(out, name)
}

// Field answers a field of a line such as "LicenseName=foo Total=10".
func Field(line, name string) string {
	for field := range strings.FieldsSeq(line) {
		if value, is := strings.CutPrefix(field, name+"="); is {
			return value
		}
	}
	return ""
}

package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"xce.internal/elastic/cluster/plain"
	"xce.internal/elastic/controller/backend"
)

// Limits of one command.
const (
	// DefaultLimit is how long one may take, where nothing else is said.
	DefaultLimit = 5 * time.Second
	mostOutput   = 256 << 20 // bytes
	mostErrors   = 64 << 10  // bytes
	mostSaid     = 1 << 10   // bytes
	// pipesWithin is how long the pipes of one that was ended may stay open.
	pipesWithin = time.Second
)

// Commands runs Slurm's commands.
type Commands struct {
	// Conf is the file that SLURM_CONF names to them; see [WriteClientConf].
	Conf string
	// Folder has the programs; empty where they are found on PATH.
	Folder string
	// Limit is how long one may take; 0 is [DefaultLimit].
	Limit time.Duration
}

// Run runs one command and answers what it printed. A command that Slurm refused is
// a [*Refused]; one of which nobody knows what became is a [*backend.Unknown].
func (c Commands) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	limit := c.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	what := commandLine(name, args)
	program, err := c.find(name)
	if err != nil {
		return nil, err
	}
	stdout, stderr := &capped{most: mostOutput, full: cancel}, &capped{most: mostErrors}
	cmd := exec.CommandContext(ctx, program, args...)
	// Without the length Slurm cuts lists of an array's elements short.
	cmd.Env = []string{
		"SLURM_CONF=" + c.Conf, "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH"),
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipesWithin
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case stdout.over:
		return nil, &backend.Unknown{What: what, Why: fmt.Errorf("it printed more than %d bytes", mostOutput)}
	case ctx.Err() != nil:
		return nil, &backend.Unknown{What: what, Why: context.Cause(ctx)}
	case err == nil:
		return stdout.text.Bytes(), nil
	case errors.As(err, &exit):
		// sacctmgr says on its output what it refuses.
		return nil, classify(what, stderr.text.String()+" "+lastWords(stdout.text.Bytes()))
	}
	return nil, fmt.Errorf("%s: %w", what, err)
}

// longestTold is how many bytes of an argument are told of in errors.
const longestTold = 60

// commandLine answers a command as one line for people, long arguments cut short.
func commandLine(name string, args []string) string {
	words := []string{name}
	for _, a := range args {
		if len(a) > longestTold {
			a = a[:longestTold] + "..."
		}
		words = append(words, plain.Line(a))
	}
	return strings.Join(words, " ")
}

func (c Commands) find(name string) (string, error) {
	if c.Folder != "" {
		return filepath.Join(c.Folder, name), nil
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find Slurm's command: %w; install Slurm's client commands, or set slurm.commands to their folder", err)
	}
	return program, nil
}

// Kind is why Slurm refused a command, as far as it matters to us.
type Kind string

// Kinds of refusals.
const (
	Busy      Kind = "busy"        // jobs are on the node
	NoSuch    Kind = "no-such"     // there is no such node, reservation, job or resource
	BadState  Kind = "bad-state"   // the node is in a state that the change makes no sense for
	Forbidden Kind = "forbidden"   // we may not
	Exists    Kind = "exists"      // there is one of that name
	NoDaemon  Kind = "no-slurmdbd" // slurmdbd does not answer; slurmctld is not concerned
	Other     Kind = "other"
)

// Refused is a command that Slurm understood, or could not make sense of, and did not carry out.
type Refused struct {
	What string
	Kind Kind
	Text string
}

// Error implements error.
func (r *Refused) Error() string { return fmt.Sprintf("%s: refused: %s", r.What, r.Text) }

// says are the words by which errors are told apart, since every one exits with 1.
// The first that is found decides; an empty kind is an unknown outcome.
var says = []struct {
	words string
	kind  Kind
}{
	{"Unable to contact slurm controller", ""},
	{"Socket timed out", ""},
	{"Protocol authentication error", ""},
	{"Zero Bytes were transmitted", ""},
	{"Communication connection failure", ""},
	{"Unexpected message received", ""},
	{"Connection refused", NoDaemon},
	{"Requested nodes are busy", Busy},
	{"Requested nodes busy", Busy},
	{"Invalid node name", NoSuch},
	{"Requested reservation is invalid", NoSuch},
	{"Invalid job id specified", NoSuch},
	{"Nothing modified", NoSuch},
	{"Invalid node state specified", BadState},
	{"Invalid user id", Forbidden},
	{"Access/permission denied", Forbidden},
	{"Nothing new added", Exists},
}

// lastWords answers the end of what a command printed.
func lastWords(text []byte) string { return string(text[max(0, len(text)-mostSaid):]) }

func classify(what, stderr string) error {
	text := strings.Join(strings.Fields(stderr), " ")
	for _, s := range says {
		if !strings.Contains(text, s.words) {
			continue
		}
		if s.kind == "" {
			return &backend.Unknown{What: what, Why: errors.New(text)}
		}
		return &Refused{What: what, Kind: s.kind, Text: text}
	}
	return &Refused{What: what, Kind: Other, Text: text}
}

// IsRefused tells whether Slurm refused a command for one of the kinds.
func IsRefused(err error, kinds ...Kind) bool {
	var refused *Refused
	if !errors.As(err, &refused) {
		return false
	}
	for _, k := range kinds {
		if refused.Kind == k {
			return true
		}
	}
	return len(kinds) == 0
}

// capped keeps what a command prints, up to a limit.
type capped struct {
	text bytes.Buffer
	most int
	over bool
	full func()
}

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	room := c.most - c.text.Len()
	if len(p) > room {
		c.over = true
		if c.full != nil {
			c.full()
		}
		c.text.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return c.text.Write(p)
}

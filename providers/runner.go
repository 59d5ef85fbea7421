package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultTimeLimit   = time.Minute
	defaultOutputLimit = 1 << 20
)

// Spec says which script stands for a provider and how it may be executed.
type Spec struct {
	Name        string
	Script      string            // path; never looked up in PATH, never passed to a shell
	Environment map[string]string // the script's settings; may hold secrets, so it belongs in no history or log
	User        string            // the system user as whom it runs; empty = as we do
	Secrets     map[string]string // by name, the file that each is read from at every call; the script finds it in the file NAME_FILE
	TimeLimit   time.Duration     // of one call; default one minute
	OutputLimit int64             // bytes of stdout; default 1 MiB
}

// Runner calls one provider's script. Calls take turns, unless describe said that they may run side by side.
type Runner struct {
	spec      Spec
	log       *slog.Logger
	turn      chan struct{} // whoever could put something in has the turn
	described atomic.Pointer[Description]
	secrets   Secrets
	user      *Account
}

// NewRunner checks the script and the settings; it executes nothing.
func NewRunner(spec Spec, log *slog.Logger) (*Runner, error) {
	if err := CheckEnvironment(spec.Environment); err != nil {
		return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
	}
	script, err := Executable(spec.Script)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
	}
	account, err := FindAccount(spec.User)
	if err := errors.Join(err, account.Reach(script), CheckSecrets(spec.Secrets, spec.Environment)); err != nil {
		return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
	}
	if spec.TimeLimit < 0 || spec.OutputLimit < 0 {
		return nil, fmt.Errorf("provider %s: time limit %s, output limit %d: give positive ones, or 0 for the defaults",
			spec.Name, spec.TimeLimit, spec.OutputLimit)
	}
	if spec.TimeLimit == 0 {
		spec.TimeLimit = defaultTimeLimit
	}
	if spec.OutputLimit == 0 {
		spec.OutputLimit = defaultOutputLimit
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	spec.Script = script
	spec.Environment, spec.Secrets = maps.Clone(spec.Environment), maps.Clone(spec.Secrets)
	return &Runner{spec: spec, user: account, log: log.With("provider", spec.Name), turn: make(chan struct{}, 1)}, nil
}

// Executable answers the absolute path of a file that may be executed: the one on PATH of a name without a
// slash, if there is one. Links are kept, so that a link may be moved to a newer script.
func Executable(script string) (string, error) {
	if script == "" {
		return "", errors.New("no script: give the path of an executable file")
	}
	if !strings.ContainsRune(script, filepath.Separator) {
		if found, err := exec.LookPath(script); err == nil {
			script = found
		}
	}
	path, err := filepath.Abs(script)
	if err != nil {
		return "", fmt.Errorf("script %s: %w", script, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("script: %w: give the path of an executable file, or the name of one on PATH", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("script %s is not a file: give the path of an executable file", path)
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return "", fmt.Errorf("script %s may not be executed (%w): chmod +x it", path, err)
	}
	return path, nil
}

// CheckEnvironment refuses settings that a script cannot have.
func CheckEnvironment(environment map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(environment[name], "\x00") {
			return fmt.Errorf("environment %q is not a name and value that a process can have: rename it", name)
		}
		if name == "LC_ALL" {
			return errors.New("environment LC_ALL: a script always runs with LC_ALL=C: remove the setting")
		}
	}
	return nil
}

// Describe asks who the provider is and what it could give now.
func (r *Runner) Describe(ctx context.Context) (Description, Outcome) {
	description, outcome := ClassifyDescribe(r.ask(ctx, VerbDescribe, struct{}{}))
	if outcome.Status == StatusOK {
		r.described.Store(&description)
	}
	return description, outcome
}

// Request asks for units. Nothing that is kept of this call has the token of a join; nor has what is kept of
// later ones, as long as the token is remembered.
func (r *Runner) Request(ctx context.Context, in RequestIn) (RequestOut, Outcome) {
	if in.Join != nil {
		if err := Hideable(in.Join.Token); err != nil {
			return ClassifyRequest(in, notAsked(fmt.Errorf("at /join/token: %w", err)))
		}
		defer r.secrets.Add(in.Join.Token)()
	}
	return ClassifyRequest(in, r.ask(ctx, VerbRequest, in))
}

// Status asks how requests stand.
func (r *Runner) Status(ctx context.Context, in StatusIn) (StatusOut, Outcome) {
	return ClassifyStatus(in, r.ask(ctx, VerbStatus, in))
}

// Return gives units back, or cancels a request that was never granted.
func (r *Runner) Return(ctx context.Context, in ReturnIn) (ReturnOut, Outcome) {
	return ClassifyReturn(in, r.ask(ctx, VerbReturn, in))
}

// List asks what the provider believes it lends us.
func (r *Runner) List(ctx context.Context) (ListOut, Outcome) {
	return ClassifyList(r.ask(ctx, VerbList, struct{}{}))
}

// Observe asks for the licence server's own count. It is refused without a call unless describe offers it.
func (r *Runner) Observe(ctx context.Context) (ObserveOut, Outcome) {
	description := r.described.Load()
	if description == nil {
		asked, outcome := r.Describe(ctx)
		if outcome.Status != StatusOK {
			return ObserveOut{}, outcome
		}
		description = &asked
	}
	if !description.Observe {
		return ObserveOut{}, Outcome{
			Status: StatusRefused, Reason: ReasonInvalid,
			Message: "not asked: describe does not offer the verb observe",
		}
	}
	return ClassifyObserve(r.ask(ctx, VerbObserve, struct{}{}))
}

func notAsked(err error) Execution { return Execution{Exit: -1, Err: &MalformedError{err}} }

func (r *Runner) ask(ctx context.Context, verb Verb, in any) Execution {
	text, err := json.Marshal(in)
	if err == nil {
		err = ParseIn(verb, text, new(map[string]any))
	}
	if err != nil {
		return notAsked(err)
	}
	return r.Raw(ctx, verb, append(text, '\n'))
}

// Raw executes the script with whatever it is given, hides secrets, and judges nothing. It is for checking scripts; whoever
// acts on answers uses the verbs.
func (r *Runner) Raw(ctx context.Context, verb Verb, in []byte) Execution {
	release, err := r.takeTurn(ctx)
	if err != nil {
		return Execution{Exit: -1, Err: fmt.Errorf("%s not started: waiting for another call of this provider: %w", verb, err)}
	}
	texts, done, err := r.secrets.ReadSecrets(r.spec.Secrets)
	if err != nil {
		release()
		return Execution{Exit: -1, Err: fmt.Errorf("%s not started: %w", verb, err)}
	}
	defer done()
	// A process that cannot be killed keeps its turn, so that calls still never overlap.
	run := Command{
		Name: string(verb), Path: r.spec.Script, Args: []string{string(verb)}, Stdin: in, Environment: r.spec.Environment,
		User: r.user, Secrets: texts,
		TimeLimit: r.spec.TimeLimit, OutputLimit: r.spec.OutputLimit, Scrub: r.secrets.Scrub, Log: r.log.With("verb", string(verb)),
	}.Execute(ctx, release)
	run.Stdout = []byte(r.secrets.Scrub(string(run.Stdout)))
	return run
}

func (r *Runner) takeTurn(ctx context.Context) (release func(), err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if description := r.described.Load(); description != nil && description.Concurrent {
		return func() {}, nil
	}
	select {
	case r.turn <- struct{}{}:
		return func() { <-r.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

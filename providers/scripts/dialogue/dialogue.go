// Package dialogue speaks for a provider script written in Go: the contract on stdin and stdout, and its
// operator's verbs on the command line.
package dialogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"xce.internal/elastic/cluster/plain"
	"xce.internal/elastic/providers"
)

// ErrUsage: the command line was wrong, and what it said has been printed.
var ErrUsage = errors.New("wrong usage")

// ErrSilent: the script has acted, and shall end with exit status 1 and no answer.
var ErrSilent = errors.New("acted, and now fails as asked")

// Raw is an answer that is printed as it is, however wrong.
type Raw []byte

func print(stdout io.Writer, reply any) error {
	if raw, isRaw := reply.(Raw); isRaw {
		_, err := stdout.Write(raw)
		return err
	}
	return json.NewEncoder(stdout).Encode(reply)
}

// Script is a provider script: what it does for each verb.
type Script struct {
	Name  string
	Usage string
	// Act acts on a verb of the contract, on what stood on stdin, and answers.
	Act func(ctx context.Context, verb providers.Verb, input []byte) (any, error)
	// Operate has what the operator may ask for.
	Operate map[string]func(args []string, now time.Time, stdout, stderr io.Writer) error
}

// Run does what the command line says, and answers the exit status.
func (s Script) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = plain.Writer(stderr)
	if len(args) == 0 || args[0] == "help" || strings.HasPrefix(args[0], "-") {
		fmt.Fprint(stderr, s.Usage)
		return 2
	}
	operate, isOperator := s.Operate[args[0]]
	if !isOperator {
		return s.answer(ctx, providers.Verb(args[0]), stdin, stdout, stderr)
	}
	err := operate(args[1:], time.Now().UTC(), stdout, stderr)
	switch {
	case errors.Is(err, ErrUsage):
		return 2
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", s.Name, err)
		return 1
	}
	return 0
}

// answer speaks the contract. An error never changes anything, or leaves it in doubt whether it did; either
// way the honest answer is unknown.
func (s Script) answer(ctx context.Context, verb providers.Verb, stdin io.Reader, stdout, stderr io.Writer) int {
	reply, err := s.reply(ctx, verb, stdin)
	var refusal Refusal
	switch {
	case errors.Is(err, ErrSilent):
		return 1
	case errors.As(err, &refusal):
		reply = refusal.answer()
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", s.Name, err)
		reply = providers.Refusal{Status: providers.StatusUnknown, Message: err.Error()}
	}
	if printErr := print(stdout, reply); printErr != nil {
		fmt.Fprintf(stderr, "%s: answer not written: %v\n", s.Name, printErr)
		return 1
	}
	switch {
	case errors.As(err, &refusal):
		return 2
	case err != nil:
		return 1
	}
	return 0
}

func (s Script) reply(ctx context.Context, verb providers.Verb, stdin io.Reader) (any, error) {
	input, err := io.ReadAll(stdin)
	if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	return s.Act(ctx, verb, input)
}

// Settings are what the environment says to one call.
type Settings interface {
	// After is what try-out settings ask for once the call has acted.
	After(ctx context.Context) error
}

// Act reads the settings of each call, and does what the verbs have for it.
func Act[S Settings](read func() (S, error), verbs map[providers.Verb]func(settings S, input []byte, now time.Time) (any, error)) func(context.Context, providers.Verb, []byte) (any, error) {
	return func(ctx context.Context, verb providers.Verb, input []byte) (any, error) {
		act, known := verbs[verb]
		if !known {
			return nil, Refusef("verb %q is not of contract version %d", verb, providers.ContractVersion)
		}
		settings, err := read()
		if err != nil {
			return nil, err
		}
		out, err := act(settings, input, time.Now().UTC())
		if err != nil {
			return nil, err
		}
		return out, settings.After(ctx)
	}
}

// Refusal: the question itself was wrong; nothing was done.
type Refusal struct{ error }

// Refuse refuses what will never do.
func Refuse(err error) Refusal { return Refusal{err} }

// Refusef is Refuse with a message of its own.
func Refusef(format string, values ...any) Refusal { return Refusal{fmt.Errorf(format, values...)} }

func (r Refusal) answer() providers.Refusal {
	return providers.Refusal{Status: providers.StatusRefused, Reason: providers.ReasonInvalid, Message: r.Error()}
}

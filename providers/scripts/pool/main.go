// Command pool is a provider script: a shared pool of tokens in one JSON file, on which several clusters
// of one machine or one shared file system draw.
//
// Called as pool VERB it speaks the provider-script contract, version 1. It reads its settings from the
// environment:
//
//	XCE_POOL_FILE          the pool file; pool init makes one
//	XCE_POOL_CLUSTER       the cluster that asks
//	XCE_POOL_OBSERVE_FILE  optional: {"vcs":{"in_use":3,"total":8}}, what the real licence server counts;
//	                       the time of the file is the time of the count
//
// For try-outs of what can go wrong:
//
//	XCE_POOL_LATENCY_MS    acts, then sleeps that long before it answers
//	XCE_POOL_PENDING_MS    answers a request with pending and grants it that long after
//	XCE_POOL_MAX_REQUEST   describes that many units as the most that one request may ask for
//	XCE_POOL_FAIL          each Nth call acts, then ends with exit status 1 and no answer
//
// The operator's verbs are init, show, recall and set; pool help lists their flags.
//
// Every change is also one line of JSON in the file's journal, FILE.log. Clusters that run under several
// users need a common group, a folder with the setgid bit, and a umask of 002.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"xce.internal/elastic/providers"
)

const usage = `usage: pool VERB        one JSON object on stdin, one on stdout; VERB is one of
                        describe, request, status, return, list, observe
       pool init   --file F --resource vcs=8 [--price vcs=250000] [--hold vcs=8]
                   [--billing-step vcs=0] [--share vcs:west=4]
       pool show   --file F [-o table|json]
       pool recall --file F --cluster C --request ID --units N
       pool set    --file F --capacity vcs=12
`

// errUsage: the command line was wrong, and what it said has been printed.
var errUsage = errors.New("wrong usage")

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] == "help" || strings.HasPrefix(args[0], "-") {
		fmt.Fprint(stderr, usage)
		return 2
	}
	operate, isOperator := operatorVerbs[args[0]]
	if !isOperator {
		return answer(ctx, providers.Verb(args[0]), stdin, stdout, stderr)
	}
	err := operate(args[1:], time.Now().UTC(), stdout, stderr)
	switch {
	case errors.Is(err, errUsage):
		return 2
	case err != nil:
		fmt.Fprintln(stderr, "pool:", err)
		return 1
	}
	return 0
}

// answer speaks the contract. An error never changes the pool file, or leaves it in doubt whether it was
// changed; either way the honest answer is unknown.
func answer(ctx context.Context, verb providers.Verb, stdin io.Reader, stdout, stderr io.Writer) int {
	reply, err := reply(ctx, verb, stdin)
	var refusal refusalError
	switch {
	case errors.Is(err, errFail):
		return 1
	case errors.As(err, &refusal):
		reply = refusal.answer()
	case err != nil:
		fmt.Fprintln(stderr, "pool:", err)
		reply = providers.Refusal{Status: providers.StatusUnknown, Message: err.Error()}
	}
	if printErr := json.NewEncoder(stdout).Encode(reply); printErr != nil {
		fmt.Fprintln(stderr, "pool: answer not written:", printErr)
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

func reply(ctx context.Context, verb providers.Verb, stdin io.Reader) (any, error) {
	act, known := contractVerbs[verb]
	if !known {
		return nil, refusalError{fmt.Errorf("verb %q is not of contract version %d", verb, providers.ContractVersion)}
	}
	input, err := io.ReadAll(stdin)
	if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	settings, err := settingsFromEnvironment()
	if err != nil {
		return nil, err
	}
	out, err := act(settings, input, time.Now().UTC())
	if err != nil {
		return nil, err
	}
	return out, settings.misbehave(ctx)
}

// refusalError: the question itself was wrong; nothing was done.
type refusalError struct{ error }

func (e refusalError) answer() providers.Refusal {
	return providers.Refusal{Status: providers.StatusRefused, Reason: providers.ReasonInvalid, Message: e.Error()}
}

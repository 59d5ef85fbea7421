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
	"io"
	"os"

	"xce.internal/elastic/providers/scripts/dialogue"
)

const usage = `usage: pool VERB        one JSON object on stdin, one on stdout; VERB is one of
                        describe, request, status, return, list, observe
       pool init   --file F --resource vcs=8 [--price vcs=250000] [--hold vcs=8]
                   [--billing-step vcs=0] [--share vcs:west=4]
       pool show   --file F [-o table|json]
       pool recall --file F --cluster C --request ID --units N
       pool set    --file F --capacity vcs=12
`

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	script := dialogue.Script{Name: "pool", Usage: usage, Act: dialogue.Act(settingsFromEnvironment, contractVerbs), Operate: operatorVerbs}
	return script.Run(ctx, args, stdin, stdout, stderr)
}

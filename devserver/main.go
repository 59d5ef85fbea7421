// Command devserver is a Temporal server and its web UI in one program, for
// one machine and for tests.
//
// It keeps its state in one SQLite file, or in memory, listens on loopback,
// makes the namespace and the search attributes it is asked for, and says on
// stdout (and in a file, if wanted) when it is ready. It has no
// authentication: it is not for production.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program, from its arguments to its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "devserver: %v\n", err)
		return exitUsage
	}

	ctx, release := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer release()
	// The first signal stops gracefully. Handing signals back to the system
	// lets a second one end the program at once.
	context.AfterFunc(ctx, release)

	if err := serve(ctx, opts, newLogs(stderr, opts.logLevel), stdout); err != nil {
		fmt.Fprintf(stderr, "devserver: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// serve starts everything, announces it, and stops it when ctx ends.
func serve(ctx context.Context, opts options, log *logs, stdout io.Writer) (err error) {
	if err := forgetReady(opts.readyFile); err != nil {
		return err
	}
	srv, err := start(ctx, opts, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped while starting, as asked
		}
		return err
	}
	defer func() { err = errors.Join(err, srv.stop()) }()

	if err := announceReady(srv.ready, opts.readyFile, stdout); err != nil {
		return err
	}
	<-ctx.Done()
	return forgetReady(opts.readyFile)
}

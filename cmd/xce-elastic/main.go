// Command xce-elastic is the one program of XCE Elastic: controller,
// provisioner, agent, and what users and operators type.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"xce.internal/elastic/cluster/plain"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "xce-elastic:", plain.Lines(err.Error()))
		os.Exit(1)
	}
}

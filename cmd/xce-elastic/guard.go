package main

import (
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"xce.internal/elastic/providers/guard"
)

// newGuard is the process that ends provider scripts in time where the
// provisioner, which starts it, cannot.
func newGuard() *cobra.Command {
	return &cobra.Command{
		Use: "guard", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(os.Interrupt, unix.SIGTERM, unix.SIGHUP) // it ends with the provisioner, not before
			return guard.Watch(cmd.InOrStdin(), func(group int) { _ = unix.Kill(-group, unix.SIGKILL) })
		},
	}
}

func startGuard() (*guard.Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return guard.Start(program, "guard")
}

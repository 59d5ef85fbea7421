package farm

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// boot is what a host's session begins with: SCRIPT boot WAIT PROGRAM ARGUMENT... It waits at the gate, file 3,
// for the word that the record of it is kept; then as long as the machine that it stands for would take to
// boot; and becomes the agent.
func boot(args []string) error {
	if len(args) < 2 {
		return errors.New("boot is for the script itself: its help shows what there is")
	}
	wait, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	gate := os.NewFile(3, "gate")
	if _, err := gate.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("whoever started this has not kept a record of it: %w", err)
	}
	gate.Close()
	time.Sleep(wait)
	return fmt.Errorf("%s: %w", args[1], syscall.Exec(args[1], args[1:], os.Environ()))
}

package dev

import "syscall"

// ownGroup keeps the terminal's Ctrl-C from the program, which is stopped in
// order instead, and ends it should this process be killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

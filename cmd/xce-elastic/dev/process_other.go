//go:build !linux

package dev

import "syscall"

// ownGroup keeps the terminal's Ctrl-C from the program, which is stopped in order instead.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

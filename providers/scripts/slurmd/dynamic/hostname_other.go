//go:build unix && !linux

package dynamic

import "syscall"

// ownHostname cannot be had here: the hostname command fails, or worse.
func ownHostname() *syscall.SysProcAttr { panic("dynamic nodes on one machine need Linux") }

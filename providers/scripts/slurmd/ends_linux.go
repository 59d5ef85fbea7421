package main

import "syscall"

// endsWithUs has the kernel kill a process when this one ends.
func endsWithUs(as *syscall.SysProcAttr) *syscall.SysProcAttr {
	if as == nil {
		as = &syscall.SysProcAttr{}
	}
	as.Pdeathsig = syscall.SIGKILL
	return as
}

//go:build unix && !linux

package main

import "syscall"

func endsWithUs(as *syscall.SysProcAttr) *syscall.SysProcAttr { return as }

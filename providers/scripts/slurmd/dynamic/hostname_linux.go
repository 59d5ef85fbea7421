package dynamic

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownHostname has a process begin in a session of its own, where it may have another
// hostname. Who is not root may do so in a user namespace only.
func ownHostname() *syscall.SysProcAttr {
	as := &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWUTS}
	if os.Geteuid() != 0 {
		as.Cloneflags |= unix.CLONE_NEWUSER
		as.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		as.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		as.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return as
}

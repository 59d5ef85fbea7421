package providers

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Account is the system user as whom a provider's programs run. Nil is who we are.
type Account struct {
	name, home string
	uid, gid   uint32
	groups     []uint32
}

// FindAccount answers the account of that name, as /etc/passwd and /etc/group
// have it; nil for no name, and for our own. Only root can become another user.
func FindAccount(name string) (*Account, error) {
	if name == "" {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("user: %w: make a system user of that name, or name another", err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of user %s: %w", name, err)
	}
	a := &Account{name: u.Username, home: u.HomeDir}
	for _, id := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %q is no id: %w", name, id, err)
		}
		a.groups = append(a.groups, uint32(n))
	}
	a.uid, a.gid, a.groups = a.groups[0], a.groups[1], a.groups[2:]
	switch ours := os.Geteuid(); {
	case uint32(ours) == a.uid:
		return nil, nil
	case ours != 0:
		return nil, fmt.Errorf("user %s: only root can run scripts as another user, and this is user %d: start the provisioner as root, or as %s and without user", name, ours, name)
	}
	return a, nil
}

// become has a process run as the account. Go's child sets these ids before it asks
// for the signal of its parent's death, which the kernel forgets whenever ids change:
// so the script ends with us, whoever it runs as. A script that is itself set-uid
// loses that signal; its group is still killed at its time limit.
func (a *Account) become(attr *syscall.SysProcAttr) {
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
	}
}

// settings are what the environment says of the user.
func (a *Account) settings(environment map[string]string) {
	if a == nil {
		return
	}
	delete(environment, "TMPDIR") // ours, where it may not write
	environment["HOME"], environment["USER"], environment["LOGNAME"] = a.home, a.name, a.name
}

// Own gives a file to the account, which may then read it.
func (a *Account) Own(file *os.File) error {
	if a == nil {
		return nil
	}
	return file.Chown(int(a.uid), int(a.gid))
}

// Reach tells why the account could not execute a file of that path.
func (a *Account) Reach(path string) error {
	if a == nil {
		return nil
	}
	path, err := filepath.EvalSymlinks(path)
	for err == nil {
		var info os.FileInfo
		if info, err = os.Stat(path); err != nil {
			break
		}
		if !a.mayExecute(info) {
			return fmt.Errorf("user %s may not execute, or look into, %s (mode %04o): allow it with chmod or chgrp", a.name, path, info.Mode().Perm())
		}
		if path == filepath.Dir(path) {
			return nil
		}
		path = filepath.Dir(path)
	}
	return err
}

func (a *Account) mayExecute(info os.FileInfo) bool {
	owner, known := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case !known || a.uid == 0:
		return true
	case owner.Uid == a.uid:
		return mode&0o100 != 0
	case owner.Gid == a.gid || slices.Contains(a.groups, owner.Gid):
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

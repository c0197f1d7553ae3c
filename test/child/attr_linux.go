package child

import "syscall"

// childAttributes has the kernel end a child when this process dies, a
// timeout's panic included. One that has children of its own gets a signal that lets
// it stop them.
func childAttributes(death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
}

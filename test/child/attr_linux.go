package harness

import "syscall"

// childAttributes has the kernel end a child when the test process dies, a
// timeout's panic included. devcluster gets a signal that lets it stop its own
// children.
func childAttributes(death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
}

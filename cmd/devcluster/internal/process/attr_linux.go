package process

import "syscall"

// childAttributes puts a child into a process group of its own, so that Ctrl-C
// in a terminal reaches the parent alone, which stops the children in order;
// and has the kernel kill it should the parent be killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

//go:build unix && !linux

package process

import (
	"syscall"
	"time"
)

// childAttributes puts a child into a process group of its own, so that Ctrl-C
// in a terminal reaches the parent alone, which stops the children in order.
// Only Linux can also kill a child whose parent was killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitStopped gives the threads of a process time to notice a SIGSTOP.
func awaitStopped(int) { time.Sleep(100 * time.Millisecond) }

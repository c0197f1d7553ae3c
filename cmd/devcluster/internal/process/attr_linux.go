package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// childAttributes puts a child into a process group of its own, so that Ctrl-C
// in a terminal reaches the parent alone, which stops the children in order;
// and has the kernel kill it should the parent be killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitStopped returns when all threads have noticed a SIGSTOP. On a busy
// machine that takes long enough for a request to be answered meanwhile.
func awaitStopped(pid int) {
	for range 1000 {
		if stopped(pid) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func stopped(pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // the thread is gone
		}
		// The state follows the name, which is in parentheses.
		if i := bytes.LastIndex(stat, []byte(") ")); i < 0 || stat[i+2] != 'T' {
			return false
		}
	}
	return true
}

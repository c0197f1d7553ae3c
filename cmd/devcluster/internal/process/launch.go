package process

import (
	"os/exec"
	"runtime"
	"sync"
)

// Linux sends the parent death signal when the thread that started the child
// ends, not when the process does, and the Go runtime ends idle threads. All
// children are therefore started from one thread that lives as long as the
// process.
var (
	launcher sync.Once
	launches = make(chan launchRequest)
)

type launchRequest struct {
	cmd    *exec.Cmd
	result chan<- error
}

// launch is cmd.Start on that thread.
func launch(cmd *exec.Cmd) error {
	launcher.Do(func() {
		go func() {
			runtime.LockOSThread()
			for req := range launches {
				req.result <- req.cmd.Start()
			}
		}()
	})
	result := make(chan error)
	launches <- launchRequest{cmd, result}
	return <-result
}

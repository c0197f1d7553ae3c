package rig

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is a child whose output goes to a file.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // of Wait; read after done
}

// The kernel sends the parent death signal when the thread that started a child
// ends: all children are started from one thread that lives on.
var (
	launcher sync.Once
	launches = make(chan func())
)

func onLauncher(start func() error) error {
	launcher.Do(func() {
		go func() {
			runtime.LockOSThread()
			for l := range launches {
				l()
			}
		}()
	})
	result := make(chan error)
	launches <- func() { result <- start() }
	return <-result
}

// start starts cmd with its output appended to the file log.
func start(cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &process{cmd: cmd, done: make(chan struct{})}
	if err := onLauncher(cmd.Start); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop sends SIGTERM and waits; one that does not end is killed, which is an
// error.
func (p *process) stop(timeout time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
		return nil
	case <-time.After(timeout):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // prints all goroutines
		time.Sleep(time.Second)
		p.kill()
		return fmt.Errorf("it did not end within %v of SIGTERM", timeout)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

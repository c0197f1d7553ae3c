// Package child runs programs as children that do not outlive the process, whatever
// becomes of it, with their output in files.
package child

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is a child whose output goes to a file.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  string        // path of its stdout and stderr
	done chan struct{} // closed when it has ended
	err  error         // of Wait; read after done
}

// Linux sends the parent death signal when the thread that started the child
// ends, and the Go runtime ends idle threads: all children are started from one
// thread that lives as long as the process.
var (
	launcher sync.Once
	launches = make(chan launch)
)

type launch struct {
	cmd    *exec.Cmd
	result chan<- error
}

func startOnLauncher(cmd *exec.Cmd) error {
	launcher.Do(func() {
		go func() {
			runtime.LockOSThread()
			for l := range launches {
				l.result <- l.cmd.Start()
			}
		}()
	})
	result := make(chan error)
	launches <- launch{cmd, result}
	return <-result
}

// Start starts cmd, as who its SysProcAttr.Credential says, with its output appended to
// the file log. It gets the signal death
// when this process ends, where the system can do that.
func Start(name string, cmd *exec.Cmd, log string, death syscall.Signal) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	as := cmd.SysProcAttr
	cmd.SysProcAttr = childAttributes(death)
	if as != nil && as.Credential != nil {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Credential = as.Credential
	}
	p := &Process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	if err := startOnLauncher(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Running reports whether it has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Stop sends SIGTERM and waits; one that does not end is killed, which is an
// error.
func (p *Process) Stop(timeout time.Duration) error {
	if !p.Running() {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && p.Running() {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(timeout):
	}
	// What it was doing is in its log: Go prints all goroutines at SIGQUIT.
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.Kill()
	}
	return fmt.Errorf("%s did not end within %v of SIGTERM", p.name, timeout)
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Err is how it ended, once it has; nil before.
func (p *Process) Err() error {
	if p.Running() {
		return nil
	}
	return p.err
}

// Signal sends sig.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// PID is its number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output is everything it has printed.
func (p *Process) Output() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

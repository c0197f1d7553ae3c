package harness

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a child whose output goes to a file.
type process struct {
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

// startProcess starts cmd with its output appended to the file log.
func startProcess(name string, cmd *exec.Cmd, log string, death syscall.Signal) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = childAttributes(death)
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	if err := startOnLauncher(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
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
	if !p.running() {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && p.running() {
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
		p.kill()
	}
	return fmt.Errorf("%s did not end within %v of SIGTERM", p.name, timeout)
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// output is everything it has printed.
func (p *process) output() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// tail is the end of what it has printed.
func tail(s string, lines int) string {
	all := strings.SplitAfter(s, "\n")
	if len(all) > lines {
		return fmt.Sprintf("... %d lines\n", len(all)-lines) + strings.Join(all[len(all)-lines:], "")
	}
	return s
}

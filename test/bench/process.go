package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one subject. Everything about it is measured from outside, from
// the moment before it is started.
type process struct {
	name    string
	cmd     *exec.Cmd
	started time.Time
	log     *tail
	done    chan struct{} // closed when it has ended
	err     error         // how; valid after done
}

// startProcess starts a program. It is killed when ctx ends.
func startProcess(ctx context.Context, name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, cmd: cmd, log: &tail{}, done: make(chan struct{})}
	cmd.Stderr = p.log
	cmd.Env = environment()
	p.started = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	go func() {
		defer stop()
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// environment is the same for all subjects: variables that change how Go or
// client-go work are left out.
func environment() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// died describes the end of a process that should be running, nil if it is.
func (p *process) died() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended by itself: %w\n%s", p.name, errors.Join(p.err, errors.New("its last words:")), p.log)
	default:
		return nil
	}
}

// stop sends SIGTERM and waits until the process has ended well.
func (p *process) stop() error {
	if err := p.died(); err != nil {
		return err
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.kill()
		return fmt.Errorf("%s did not stop within a minute\n%s", p.name, p.log)
	}
	if p.err != nil {
		return fmt.Errorf("stop %s: %w\n%s", p.name, p.err, p.log)
	}
	return nil
}

// kill ends the process if it still runs.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// tail keeps the last part of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

var _ io.Writer = (*tail)(nil)

const tailBytes = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if extra := len(t.text) - tailBytes; extra > 0 {
		t.text = bytes.Clone(t.text[extra:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

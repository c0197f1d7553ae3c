// Package process runs one child process that can be stopped and started again
// any number of times, and that never outlives its parent. It decides nothing:
// when one that died is revived and in what order processes start is up to others. It does not pass on the child's
// output either, which goes to a file; the tail of that file is part of the
// error when the child dies.
package process

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

// State is what a Process is doing.
type State string

const (
	Stopped  State = "stopped"  // never started, or stopped on request
	Starting State = "starting" // runs, not ready yet
	Ready    State = "ready"
	Paused   State = "paused" // stopped by SIGSTOP, still there
	Died     State = "died"   // ended, and nobody asked for it
)

// Options describe a Process.
type Options struct {
	Name string
	Path string   // of the program
	Args []string // without the program's name
	Env  []string // nil: the parent's
	Log  string   // file that stdout and stderr are appended to

	// Ready says whether the process does its work. It is asked every 50 ms
	// while the process starts. Nil: ready at once.
	Ready        func(context.Context) error
	StartTimeout time.Duration // to become ready; default 60 s
	StopTimeout  time.Duration // from SIGTERM to SIGKILL; default 5 s

	// Died is called when the process ends after it was ready and without
	// Stop or Kill. It runs on a goroutine of its own. Nil: not told.
	Died func(error)
	// Changed is called after each change of Status. Nil: not told.
	Changed func()
}

// Status is a snapshot of a Process.
type Status struct {
	State   State
	PID     int // 0 unless running
	Started time.Time
}

// Process is a child process. Its methods may be called concurrently; those
// that change its state wait for each other.
type Process struct {
	opts Options // Path is guarded by mu

	ops sync.Mutex // held by Start, Stop, ...: one at a time; taken before mu

	mu    sync.Mutex // guards all below
	state State
	run   *run // the present or last run
}

// run is one life of the process.
type run struct {
	cmd     *exec.Cmd
	started time.Time
	log     int64         // size of the log file when it started
	exited  chan struct{} // closed after err is set
	err     error
}

func (r *run) alive() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// New returns a Process that is not running yet.
func New(opts Options) *Process {
	if opts.StartTimeout == 0 {
		opts.StartTimeout = time.Minute
	}
	if opts.StopTimeout == 0 {
		opts.StopTimeout = 5 * time.Second
	}
	return &Process{opts: opts, state: Stopped}
}

// Name is the name it was made with.
func (p *Process) Name() string { return p.opts.Name }

// SetPath changes the program that the next start runs.
func (p *Process) SetPath(path string) {
	p.mu.Lock()
	p.opts.Path = path
	p.mu.Unlock()
	p.changed()
}

// Path is the program that the next start runs.
func (p *Process) Path() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opts.Path
}

// Status returns the present state.
func (p *Process) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{State: p.state}
	if p.run.alive() {
		s.PID, s.Started = p.run.cmd.Process.Pid, p.run.started
	}
	return s
}

// Start starts the process and returns when it is ready. If it ends or ctx does
// before that, nothing is left running. Starting a running process is an error.
func (p *Process) Start(ctx context.Context) error {
	p.ops.Lock()
	defer p.ops.Unlock()
	if p.current().alive() {
		return fmt.Errorf("%s is already running", p.opts.Name)
	}
	return p.start(ctx, Stopped)
}

// Revive starts the process if it died and nobody has started or stopped it
// since; otherwise it does nothing. A failure leaves it died.
func (p *Process) Revive(ctx context.Context) error {
	p.ops.Lock()
	defer p.ops.Unlock()
	if p.Status().State != Died {
		return nil
	}
	return p.start(ctx, Died)
}

// start does the work of Start. A failure leaves the process in state failed.
func (p *Process) start(ctx context.Context, failed State) error {
	r, err := p.spawn()
	if err != nil {
		p.set(failed, p.current())
		return fmt.Errorf("start %s: %w", p.opts.Name, err)
	}
	p.set(Starting, r)
	go p.wait(r)

	ctx, cancel := context.WithTimeout(ctx, p.opts.StartTimeout)
	defer cancel()
	if err := p.awaitReady(ctx, r); err != nil {
		// The tail is read before the kill, which adds nothing to the log.
		err = fmt.Errorf("start %s: %w%s", p.opts.Name, err, p.tail(r))
		p.set(failed, r)
		send(r, syscall.SIGKILL)
		<-r.exited
		p.changed()
		return err
	}
	p.set(Ready, r)
	if !r.alive() { // it died before it could be marked ready
		p.died(r)
	}
	return nil
}

// Stop asks the process to end with SIGTERM, kills it if it does not in time,
// and returns after it is gone. Stopping a stopped process does nothing.
func (p *Process) Stop() error {
	p.ops.Lock()
	defer p.ops.Unlock()
	r := p.current()
	p.set(Stopped, r)
	if !r.alive() {
		return nil
	}
	send(r, syscall.SIGTERM)
	send(r, syscall.SIGCONT) // a paused process would not see the SIGTERM
	select {
	case <-r.exited:
	case <-time.After(p.opts.StopTimeout):
		send(r, syscall.SIGKILL)
		<-r.exited
	}
	p.changed()
	return nil
}

// Kill ends the process with SIGKILL and returns after it is gone.
func (p *Process) Kill() error {
	p.ops.Lock()
	defer p.ops.Unlock()
	r := p.current()
	p.set(Stopped, r)
	if !r.alive() {
		return nil
	}
	send(r, syscall.SIGKILL)
	<-r.exited
	p.changed()
	return nil
}

// Pause freezes the process with SIGSTOP: its ports stay open, nothing answers.
func (p *Process) Pause() error { return p.freeze(syscall.SIGSTOP, Paused) }

// Resume lets a paused process continue.
func (p *Process) Resume() error { return p.freeze(syscall.SIGCONT, Ready) }

func (p *Process) freeze(sig syscall.Signal, state State) error {
	p.ops.Lock()
	defer p.ops.Unlock()
	r := p.current()
	if !r.alive() {
		return fmt.Errorf("%s is not running", p.opts.Name)
	}
	send(r, sig)
	if state == Paused {
		awaitStopped(r.cmd.Process.Pid)
	}
	p.set(state, r)
	return nil
}

func (p *Process) spawn() (*run, error) {
	log, err := os.OpenFile(p.opts.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.Path(), p.opts.Args...)
	cmd.Env = p.opts.Env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	if err := launch(cmd); err != nil {
		return nil, err
	}
	return &run{cmd: cmd, started: time.Now(), log: size, exited: make(chan struct{})}, nil
}

// wait reaps the process, in a goroutine of its own that ends with it.
func (p *Process) wait(r *run) {
	err := r.cmd.Wait()
	if err == nil {
		err = errors.New("exit status 0")
	}
	r.err = err
	close(r.exited)
	p.died(r)
}

// died marks r as dead if it was ready. Otherwise Start or Stop, which know
// more, tell what happened.
func (p *Process) died(r *run) {
	p.mu.Lock()
	unexpected := p.run == r && (p.state == Ready || p.state == Paused)
	if unexpected {
		p.state = Died
	}
	p.mu.Unlock()
	if !unexpected {
		return
	}
	p.changed()
	if p.opts.Died != nil {
		go p.opts.Died(fmt.Errorf("%s died: %w%s", p.opts.Name, r.err, p.tail(r)))
	}
}

func (p *Process) awaitReady(ctx context.Context, r *run) error {
	if p.opts.Ready == nil {
		return nil
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := p.opts.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-r.exited:
			return fmt.Errorf("ended before it was ready: %w", r.err)
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (%w)", err, context.Cause(ctx))
		}
	}
}

// tail formats the last lines that r wrote to its log.
func (p *Process) tail(r *run) string {
	const maxBytes, maxLines = 8 << 10, 15
	file, err := os.Open(p.opts.Log)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	from := max(r.log, info.Size()-maxBytes)
	data, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	lines = lines[max(0, len(lines)-maxLines):]
	return fmt.Sprintf("; last lines of %s:\n  %s", p.opts.Log, strings.Join(lines, "\n  "))
}

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

func (p *Process) set(state State, r *run) {
	p.mu.Lock()
	p.state, p.run = state, r
	p.mu.Unlock()
	p.changed()
}

func (p *Process) changed() {
	if p.opts.Changed != nil {
		p.opts.Changed()
	}
}

// send ignores that the process may have ended meanwhile.
func send(r *run, sig os.Signal) { _ = r.cmd.Process.Signal(sig) }

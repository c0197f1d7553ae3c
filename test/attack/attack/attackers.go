package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/informerd/informerd/test/attack/hostile"
)

// attackers are the process of the hostile users. It ends when its input does, and so with
// this one, whatever becomes of that.
type attackers struct {
	cmd   *exec.Cmd
	input io.Closer
	begun chan struct{} // closed when they have told of something
	ended chan struct{}

	mu    sync.Mutex // guards all below
	tally hostile.Tally
	err   error // how it ended; read after ended
}

// startAttackers runs this very program as attackers, so much nicer than this process.
// Idle has them run when nothing else wants a processor.
func startAttackers(orders *hostile.Orders, nice int) (*attackers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command("nice", "-n", fmt.Sprint(nice), self)
	if nice >= Idle {
		command = exec.Command("chrt", "--idle", "0", self)
	}
	a := &attackers{
		cmd:   command,
		begun: make(chan struct{}), ended: make(chan struct{}), tally: hostile.Tally{},
	}
	a.cmd.Env = append(os.Environ(), hostile.Env+"=1")
	a.cmd.Stderr = os.Stderr
	input, err := a.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	a.input = input
	output, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start attackers: %w", err)
	}
	go a.read(output)
	return a, json.NewEncoder(input).Encode(orders)
}

func (a *attackers) read(output io.Reader) {
	defer close(a.ended)
	begun := sync.OnceFunc(func() { close(a.begun) })
	var err error
	for d := json.NewDecoder(output); err == nil; {
		var t hostile.Tally
		if err = d.Decode(&t); err == nil {
			a.mu.Lock()
			a.tally = t
			a.mu.Unlock()
			begun()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	err = errors.Join(err, a.cmd.Wait())
	a.mu.Lock()
	a.err = err
	a.mu.Unlock()
}

// wait waits until they attack.
func (a *attackers) wait(ctx context.Context) error {
	select {
	case <-a.begun:
		return nil
	case <-a.ended:
		return errors.New("attackers have ended before they attacked")
	case <-time.After(time.Minute):
		return errors.New("attackers have not attacked within a minute")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// done is what came of the attacks so far.
func (a *attackers) done() hostile.Tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tally
}

// stop ends them.
func (a *attackers) stop() error {
	_ = a.input.Close()
	select {
	case <-a.ended:
	case <-time.After(20 * time.Second):
		_ = a.cmd.Process.Kill()
		<-a.ended
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return fmt.Errorf("attackers: %w", a.err)
	}
	return nil
}

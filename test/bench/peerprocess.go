package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// peerProcess is a running peer as the bench sees it.
type peerProcess struct {
	*process
	orders  io.WriteCloser
	replies *bufio.Scanner
	out     *os.File
	first   reply         // what it said when it had synced
	wall    time.Duration // from its start until then
}

// startPeer starts a peer and waits until it is synced. stop or kill it.
func startPeer(ctx context.Context, name, kubeconfig string) (*peerProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startPeerProcess(ctx, "peer "+name, exec.Command(program, peerCommand, name, kubeconfig))
}

// startPeerProcess starts a program that takes orders as a peer does.
func startPeerProcess(ctx context.Context, name string, cmd *exec.Cmd) (*peerProcess, error) {
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	p := &peerProcess{orders: orders, replies: bufio.NewScanner(r), out: r}
	p.replies.Buffer(nil, 16<<20) // an answer is one line
	p.process, err = startProcess(ctx, name, cmd)
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	if p.first, err = p.reply(); err != nil {
		p.kill()
		return nil, err
	}
	p.wall = time.Since(p.started)
	return p, nil
}

// order gives one order and waits for what the peer replies.
func (p *peerProcess) order(words ...string) (reply, error) {
	if _, err := fmt.Fprintln(p.orders, strings.Join(words, " ")); err != nil {
		return reply{}, fmt.Errorf("order %s: %w\n%s", p.name, err, p.log)
	}
	return p.reply()
}

func (p *peerProcess) reply() (reply, error) {
	var r reply
	if !p.replies.Scan() {
		<-p.done
		return r, fmt.Errorf("%s ended without a reply: %w\n%s", p.name, errors.Join(p.err, p.replies.Err(), io.ErrUnexpectedEOF), p.log)
	}
	if err := json.Unmarshal(p.replies.Bytes(), &r); err != nil {
		return r, fmt.Errorf("%s replied %q: %w", p.name, p.replies.Bytes(), err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("%s: %s\n%s", p.name, r.Error, p.log)
	}
	return r, nil
}

// check fails if the peer does not hold all pods, or has not read all bytes.
func (p *peerProcess) check(d *dataset) error {
	switch {
	case p.first.Objects > 0 && p.first.Objects != d.Pods:
		return fmt.Errorf("%s holds %d of %d pods", p.name, p.first.Objects, d.Pods)
	case p.first.Bytes > 0 && p.first.Bytes != d.Bytes:
		return fmt.Errorf("%s read %d of %d bytes", p.name, p.first.Bytes, d.Bytes)
	case p.first.Objects == 0 && p.first.Bytes == 0:
		return fmt.Errorf("%s has nothing", p.name)
	}
	return nil
}

// stop ends the peer, which must end well.
func (p *peerProcess) stop() error {
	p.orders.Close()
	defer p.out.Close()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.process.kill()
	}
	if p.err != nil {
		return fmt.Errorf("stop %s: %w\n%s", p.name, p.err, p.log)
	}
	return nil
}

func (p *peerProcess) kill() {
	p.process.kill()
	p.out.Close()
}

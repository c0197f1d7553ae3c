package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// follower reads a watch and notes when each numbered change arrived. It decodes
// nothing: the API server's JSON lines and informerd's server-sent events both
// have one object on a line.
type follower struct {
	body io.Closer
	// number tells which change a line shows; false: none.
	number func(line []byte) (int, bool)
	// onEvent is called with each change as it arrives; nil: nobody is.
	onEvent func(n int, at time.Time, line []byte)

	mu      sync.Mutex // guards all below
	arrived map[int]time.Time
	ended   chan struct{} // closed when the stream is
	err     error         // why; valid after ended
}

// follow starts to read a watch of pods that a churn changes. It returns when the server has
// answered.
func follow(ctx context.Context, client *http.Client, url string, onEvent func(int, time.Time, []byte)) (*follower, error) {
	return followBy(ctx, client, url, changeOf, onEvent)
}

// followBy is follow of changes that have other numbers.
func followBy(ctx context.Context, client *http.Client, url string, number func([]byte) (int, bool), onEvent func(int, time.Time, []byte)) (*follower, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("watch %s: %s", url, resp.Status)
	}
	f := &follower{body: resp.Body, number: number, onEvent: onEvent, arrived: map[int]time.Time{}, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.err = f.read(resp.Body)
	}()
	return f, nil
}

func (f *follower) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), 16<<20)
	for lines.Scan() {
		at := time.Now()
		n, ok := f.number(lines.Bytes())
		if !ok {
			continue
		}
		f.mu.Lock()
		_, again := f.arrived[n]
		if !again {
			f.arrived[n] = at
		}
		f.mu.Unlock()
		if !again && f.onEvent != nil {
			f.onEvent(n, at, lines.Bytes())
		}
	}
	return lines.Err()
}

// changeOf finds the number of the change that an event shows. Where an
// annotation has a manager its name is in managedFields too, but not with a string
// as its value.
func changeOf(line []byte) (int, bool) {
	text, ok := stringAfter(line, `"`+changeNumber+`":"`)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// stringAfter is what follows prefix up to the next quote.
func stringAfter(line []byte, prefix string) (string, bool) {
	_, rest, ok := bytes.Cut(line, []byte(prefix))
	if !ok {
		return "", false
	}
	text, _, ok := bytes.Cut(rest, []byte(`"`))
	return string(text), ok
}

// count is how many changes have arrived.
func (f *follower) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.arrived)
}

// stop ends the watch. After it, arrived may be read.
func (f *follower) stop() {
	f.body.Close()
	<-f.ended
}

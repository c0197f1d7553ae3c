package history

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// line is one that `devcluster history` prints.
type line struct {
	Head      int64
	Compacted int64
	Progress  int64
	Key       string
	Revision  int64
	Deleted   bool
	Object    json.RawMessage
}

// Reader reads the history of a running devcluster into an epoch, by its command
// history.
type Reader struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // read after done
}

// StartReader begins to read into the epoch.
func StartReader(program, dir string, resources []Resource, e *Epoch) (*Reader, error) {
	ctx, cancel := context.WithCancel(context.Background())
	args := []string{"history", "--dir", dir}
	for _, r := range resources {
		args = append(args, "--prefix", r.Prefix)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start the reader of the history: %w", err)
	}
	r := &Reader{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		err := read(out, resources, e)
		if ctx.Err() == nil {
			r.err = errors.Join(errors.New("the reader of the history ended by itself"), err)
		}
		cancel()
		_ = cmd.Wait() // killed, or its error is known
	}()
	return r, nil
}

// Stop ends it.
func (r *Reader) Stop() { r.cancel(); <-r.done }

// Err is why it ended, nil while it runs.
func (r *Reader) Err() error {
	select {
	case <-r.done:
		return r.err
	default:
		return nil
	}
}

func read(in io.Reader, resources []Resource, e *Epoch) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		data, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		var l line
		if err := json.Unmarshal(data, &l); err != nil {
			return err
		}
		if err := e.tell(resources, l); err != nil {
			return err
		}
	}
}

func (e *Epoch) tell(resources []Resource, l line) error {
	if l.Progress > 0 {
		e.Progress(l.Progress)
	}
	if l.Key == "" {
		return nil
	}
	r, key, ok := KeyOf(resources, l.Key)
	if !ok {
		return nil
	}
	c := Change{Deleted: l.Deleted, Seen: time.Now()}
	if !l.Deleted {
		held, o, err := Read(r, l.Object)
		if err != nil {
			return fmt.Errorf("%s at revision %d: %w", l.Key, l.Revision, err)
		}
		if held != key {
			return fmt.Errorf("%s holds %s", l.Key, held)
		}
		c.Object = o
	}
	c.Version = l.Revision
	e.Add(r.Name(), key, c)
	return nil
}

// Wait waits until everything that was committed before the call is known.
func (e *Epoch) Wait(ctx context.Context) error {
	asked := time.Now()
	for {
		// A progress that came some time after the call was made after it.
		if _, reached := e.Head(); reached.After(asked.Add(500 * time.Millisecond)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the history does not go on: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

package audit

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxQueue bounds what waits to be written, in bytes: some ten thousand requests.
	maxQueue = 8 << 20
	// keepQueue is how much memory of it is kept when there is less to do.
	keepQueue = 1 << 20
	// drainTimeout is how long the end waits for what is not written yet. A disk or a pipe
	// that hangs must not hold up the process.
	drainTimeout = 5 * time.Second
)

// Standard is the name of a file that stands for the standard output.
const Standard = "-"

// Options configure a Log.
type Options struct {
	// File is the file that is appended to, or Standard. Required.
	File string
	// Stdout is what Standard stands for, default os.Stdout.
	Stdout io.Writer
	// MaxSize is the size in bytes that a file does not exceed: before it would, it is
	// renamed to File.1, which was renamed to File.2 before, and so on. 0: it grows, and
	// others rotate it. Of Standard nothing is rotated.
	MaxSize int64
	// MaxBackups is how many of those are kept, default 1.
	MaxBackups int
	// Omit are paths of requests that are not recorded.
	Omit []string
	// Log gets that records are missing, once each time. Default: discarded.
	Log *slog.Logger
}

// Log makes records and writes them. Open makes it, Run writes until its context ends;
// whoever answers requests must have ended before that.
type Log struct {
	options Options
	out     output

	written, dropped atomic.Uint64
	began            atomic.Int64 // when the write that goes on began, in Unix nanoseconds; 0: none does

	mu    sync.Mutex // guards queue, fault and cause
	queue []byte     // whole lines
	fault error      // of the last write, nil if it went well
	cause error      // why the last record that was dropped was
	wake  chan struct{}
}

// output is where lines are written.
type output interface {
	// write returns how much of p is written, as io.Writer does. Its error may be about
	// something else than p, all of which is written then.
	write(p []byte) (int, error)
	close() error
}

// Open opens the file, which is readable by its owner only. A symbolic link and what is
// no file are refused.
func Open(o Options) (*Log, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	o.MaxBackups = max(1, o.MaxBackups)
	l := &Log{options: o, wake: make(chan struct{}, 1)}
	if o.File == Standard {
		l.out = &stream{appender{Writer: o.Stdout}}
		return l, nil
	}
	f := &file{path: o.File, maxSize: o.MaxSize, maxBackups: o.MaxBackups}
	if err := f.open(); err != nil {
		return nil, err
	}
	l.out = f
	return l, nil
}

// Counts are how many events were written and dropped.
func (l *Log) Counts() (written, dropped uint64) { return l.written.Load(), l.dropped.Load() }

// put has an event written, or drops it. It never waits for that.
func (l *Log) put(e *Event) {
	memory := lines.Get().(*[]byte)
	defer lines.Put(memory)
	line := appendLine((*memory)[:0], e)
	*memory = line
	l.mu.Lock()
	full := len(l.queue)+len(line) > maxQueue
	if full {
		l.cause = errSlow
	} else {
		l.queue = append(l.queue, line...)
	}
	l.mu.Unlock()
	if full {
		l.dropped.Add(1)
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

var lines = sync.Pool{New: func() any { return new([]byte) }}

// Run writes until ctx ends, then what is left.
func (l *Log) Run(ctx context.Context) error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write(ctx)
	}()
	told := l.tell(ctx)
	select {
	case <-written:
	case <-time.After(drainTimeout):
		l.options.Log.Error("audit log does not end, what is not written is lost", "path", l.options.File, "duration", drainTimeout)
		return nil // whoever writes may do so for ever
	}
	told.look(time.Now())
	return l.out.close()
}

// write writes what there is until ctx has ended and nothing is left.
func (l *Log) write(ctx context.Context) {
	var batch []byte
	for {
		if batch = l.take(batch); len(batch) > 0 {
			l.writeBatch(batch)
			continue
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			if batch = l.take(batch); len(batch) > 0 {
				l.writeBatch(batch)
			}
			return
		}
	}
}

// take exchanges what waits for the memory of what was written.
func (l *Log) take(spare []byte) []byte {
	if cap(spare) > keepQueue {
		spare = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.queue
	l.queue = spare[:0]
	return batch
}

func (l *Log) writeBatch(batch []byte) {
	l.began.Store(time.Now().UnixNano())
	n, err := l.out.write(batch)
	l.began.Store(0)
	whole := bytes.Count(batch[:n], newline)
	missing := bytes.Count(batch, newline) - whole
	l.mu.Lock()
	l.fault = err
	if missing > 0 {
		l.cause = err
	}
	l.mu.Unlock()
	l.written.Add(uint64(whole))
	l.dropped.Add(uint64(missing)) // after its cause: whoever sees the one knows the other
}

var newline = []byte{'\n'}

// trouble is what was wrong with the last write, or is with the one that goes on.
func (l *Log) trouble(now time.Time) error {
	if began := l.began.Load(); began != 0 && now.Sub(time.Unix(0, began)) > hangsAfter {
		return errHangs
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// lastCause is why the last record that was dropped was.
func (l *Log) lastCause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// stream is an output that is never rotated, such as a pipe.
type stream struct{ appender }

func (s *stream) write(p []byte) (int, error) { return s.append(p) }

func (s *stream) close() error { return nil }

// appender writes whole lines, after the end of one that was cut off before.
type appender struct {
	io.Writer
	torn bool
}

// append returns how much of p was written.
func (a *appender) append(p []byte) (int, error) {
	if a.torn {
		if _, err := a.Write(newline); err != nil {
			return 0, err
		}
		a.torn = false
	}
	n, err := a.Write(p)
	a.torn = n > 0 && p[n-1] != '\n'
	return n, err
}

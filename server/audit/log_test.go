package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeOutput is written to as a test likes.
type fakeOutput struct {
	mu    sync.Mutex // guards all below
	lines bytes.Buffer
	fault error // instead of writing
	part  int   // of what is written before fault

	hang chan struct{} // if not nil, writing waits for it to be closed
}

func (f *fakeOutput) write(p []byte) (int, error) {
	if f.hang != nil {
		<-f.hang
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault != nil {
		f.lines.Write(p[:f.part])
		return f.part, f.fault
	}
	return f.lines.Write(p)
}

func (f *fakeOutput) close() error { return nil }

func (f *fakeOutput) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = err
}

// running is a Log that runs in a bubble.
type running struct {
	*Log
	t   *testing.T
	out *fakeOutput
	say *text
	end func()
}

func run(t *testing.T, out *fakeOutput) *running {
	log, say := logger()
	r := &running{Log: &Log{options: Options{File: "a.log", Log: log}, out: out, wake: make(chan struct{}, 1)}, t: t, out: out, say: say}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.end = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
	}
	return r
}

// ask makes the record of n requests, which must not take time.
func (r *running) ask(n int) {
	r.t.Helper()
	began := time.Now()
	for range n {
		r.Begin(request("/api/v1/pods?"+strings.Repeat("x=y&", 500))).End(200, 1, false)
	}
	if took := time.Since(began); took != 0 {
		r.t.Errorf("requests waited %v", took)
	}
}

func (r *running) said(want ...string) {
	r.t.Helper()
	var lines []string
	for line := range strings.Lines(r.say.String()) {
		lines = append(lines, strings.TrimSpace(line))
	}
	if len(lines) != len(want) {
		r.t.Errorf("said %q, want %d lines", lines, len(want))
		return
	}
	for i, text := range want {
		if !strings.Contains(lines[i], text) {
			r.t.Errorf("said %s, want %s", lines[i], text)
		}
	}
}

// TestNobodyWaits: neither a disk that hangs nor one that is slow holds up a request, nor
// does what waits grow. What is missing is counted, and told once.
func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &fakeOutput{hang: make(chan struct{})}
		r := run(t, out)
		r.ask(1)
		synctest.Wait() // it is being written
		const many = 5000
		r.ask(many)
		_, dropped := r.Counts()
		if len(r.queue) > maxQueue || dropped == 0 {
			t.Errorf("%d bytes wait, %d are dropped", len(r.queue), dropped)
		}
		time.Sleep(time.Minute)
		r.ask(10)
		time.Sleep(5 * time.Second)
		r.said(`level=ERROR msg="audit log is not written as it should be, records may be missing" path=a.log dropped=` + fmt.Sprint(dropped))
		close(out.hang)
		time.Sleep(time.Second)
		r.ask(7)
		time.Sleep(quietFor + 2*time.Second)
		written, dropped := r.Counts()
		if written+dropped != 1+many+10+7 {
			t.Errorf("%d are written, %d dropped", written, dropped)
		}
		r.said("records may be missing", fmt.Sprintf(`level=INFO msg="audit log is written again" path=a.log dropped=%d`, dropped))
		r.end()
		if got := len(decoded(t, out.lines.String())); uint64(got) != written {
			t.Errorf("%d lines, %d are counted", got, written)
		}
	})
}

// TestDiskFull: an outage that lasts is told once, with its cause, and its end; one that
// comes and goes is one.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &fakeOutput{}
		r := run(t, out)
		full := errors.New("no space left on device")
		for range 5 {
			out.fail(full)
			r.ask(2)
			time.Sleep(2 * time.Second)
			out.fail(nil)
			r.ask(1)
			time.Sleep(2 * time.Second)
		}
		r.said(`dropped=2 err="no space left on device"`)
		time.Sleep(quietFor)
		r.said("no space left", "written again\" path=a.log dropped=10")
		out.fail(full)
		r.ask(1)
		time.Sleep(2 * time.Second)
		r.said("no space left", "written again", `dropped=1 err="no space left on device"`)
		r.end()
		if written, dropped := r.Counts(); written != 5 || dropped != 11 {
			t.Errorf("%d are written, %d dropped", written, dropped)
		}
	})
}

// TestEnd: what was recorded before the end is written.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &fakeOutput{}
		r := run(t, out)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { r.ask(100) })
		}
		wg.Wait()
		r.end()
		if got := len(decoded(t, out.lines.String())); got != 1000 {
			t.Errorf("%d lines are written", got)
		}
		r.said()
	})
}

// TestEndDespiteHang: a disk that hangs does not hold up the end of the process.
func TestEndDespiteHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &fakeOutput{hang: make(chan struct{})}
		r := run(t, out)
		r.ask(1)
		began := time.Now()
		r.end()
		if took := time.Since(began); took != drainTimeout {
			t.Errorf("the end took %v", took)
		}
		r.said("what is not written is lost")
		close(out.hang)
	})
}

// halfWriter writes a part of what it is given, once.
type halfWriter struct {
	bytes.Buffer
	part int
}

func (h *halfWriter) Write(p []byte) (int, error) {
	if h.part > 0 && len(p) > h.part {
		n, _ := h.Buffer.Write(p[:h.part])
		h.part = 0
		return n, errors.New("no space left on device")
	}
	return h.Buffer.Write(p)
}

// TestTornLine: a line that was cut off spoils no other one.
func TestTornLine(t *testing.T) {
	h := &halfWriter{}
	l, err := Open(Options{File: Standard, Stdout: h, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(n int) {
		for range n {
			l.Begin(request("/")).End(200, 1, false)
		}
		l.writeBatch(l.take(nil))
	}
	ask(1)
	h.part = h.Len() + h.Len()/2
	ask(3) // of which one is written
	ask(2)
	whole, torn := 0, 0
	for line := range strings.Lines(h.String()) {
		if strings.HasSuffix(line, "}\n") {
			whole++
		} else if torn++; !strings.HasSuffix(line, "\n") {
			t.Errorf("not ended: %q", line)
		}
	}
	if written, dropped := l.Counts(); written != 4 || dropped != 2 || whole != 4 || torn != 1 {
		t.Errorf("%d are written, %d dropped: %d whole lines and %d torn", written, dropped, whole, torn)
	}
}

func BenchmarkRecord(b *testing.B) {
	l, err := Open(Options{File: Standard, Stdout: &fakeNull{}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	r := request("/v1/resources/pods/objects?namespace=shop&filter=object.spec.replicas+%3E+1&continue=abc", "User-Agent", "kubectl/v1.36.0 (linux/amd64) kubernetes/abcdef")
	b.ReportAllocs()
	for b.Loop() {
		record := l.Begin(r)
		record.By(User{Username: "jane", Groups: []string{"dev", "system:authenticated"}})
		record.About("list", "default", Object{Resource: "pods", Namespace: "shop", APIVersion: "v1"})
		record.Returned(12)
		record.End(200, 12345, false)
	}
	cancel()
	<-done
}

type fakeNull struct{}

func (*fakeNull) Write(p []byte) (int, error) { return len(p), nil }

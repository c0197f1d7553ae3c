package kubeapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// writeLog notes what is done to a client.
type writeLog struct {
	*httptest.ResponseRecorder
	writes  []int // their sizes
	largest []byte
	flushes int
	refuse  error
}

func (l *writeLog) Write(p []byte) (int, error) {
	l.writes = append(l.writes, len(p))
	if len(p) > len(l.largest) {
		l.largest = p
	}
	if l.refuse != nil {
		return 0, l.refuse
	}
	return l.ResponseRecorder.Write(p)
}

func (l *writeLog) FlushError() error { l.flushes++; return l.refuse }

var _ http.ResponseWriter = (*writeLog)(nil)

// TestBatch: events that wait leave in their order in one write, many of them in
// parts, and nothing is flushed twice.
func TestBatch(t *testing.T) {
	client := &writeLog{ResponseRecorder: httptest.NewRecorder()}
	b := newBatch(client)
	if err := b.flush(); err != nil || client.flushes != 1 || len(client.writes) != 0 {
		t.Errorf("the headers: error %v, %d flushes, writes %v", err, client.flushes, client.writes)
	}
	var want strings.Builder
	next := 0
	add := func(events, size int) {
		for range events {
			object := fmt.Sprintf(`{"n":%d,"padding":%q}`, next, strings.Repeat("x", size))
			next++
			fmt.Fprintf(&want, "{\"type\":\"MODIFIED\",\"object\":%s}\n", object)
			b.add(cache.Modified, []byte(object))
		}
	}
	add(3, 1000)
	if err := errors.Join(b.flush(), b.flush()); err != nil || client.flushes != 2 || len(client.writes) != 1 {
		t.Errorf("three events: error %v, %d flushes, writes %v", err, client.flushes, client.writes)
	}
	if b.memory != nil {
		t.Error("memory is held while there is nothing to write")
	}
	const events, size = 100, 3000
	add(events, size)
	if err := b.flush(); err != nil {
		t.Error(err)
	}
	if got, most := len(client.writes)-1, events*size/batchBytes+2; got > most || got < 2 {
		t.Errorf("%d events of %d bytes took %d writes, want at most %d", events, size, got, most)
	}
	for _, n := range client.writes {
		if n > batchBytes+2*size {
			t.Errorf("%d bytes were held", n)
		}
	}
	if got := client.Body.String(); got != want.String() {
		t.Errorf("%d bytes were written, or in another order than the %d added", len(got), want.Len())
	}
}

// TestLargeIsNotCopied: however many do not read the same large object, it is held once.
func TestLargeIsNotCopied(t *testing.T) {
	w := newWorld(t)
	o := w.pods.decode(t, `{"metadata":{"name":"large","namespace":"a","uid":"large","resourceVersion":"150"},"spec":{"text":"`+strings.Repeat("x", batchBytes)+`"}}`)
	var first []byte
	for range 3 {
		s := &stream{api: w.API}
		body, err := s.body(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = body
		}
		client := &writeLog{ResponseRecorder: httptest.NewRecorder()}
		b := newBatch(client)
		b.add(cache.Added, []byte(`{}`))
		b.add(cache.Added, body)
		b.add(cache.Added, []byte(`{}`))
		if &body[0] != &first[0] || client.largest == nil || &client.largest[0] != &first[0] {
			t.Error("it is held more than once")
		}
		if err := b.flush(); err != nil {
			t.Error(err)
		}
		want := `{"type":"ADDED","object":{}}` + "\n" + `{"type":"ADDED","object":` + string(body) + "}\n" + `{"type":"ADDED","object":{}}` + "\n"
		if got := client.Body.String(); got != want {
			t.Errorf("%d bytes were written, want %d", len(got), len(want))
		}
	}
}

// TestMessageIsWrittenAtOnce: what is written to a WebSocket by itself is a message.
func TestMessageIsWrittenAtOnce(t *testing.T) {
	client := &writeLog{ResponseRecorder: httptest.NewRecorder()}
	b := &batch{w: client, each: true}
	for _, size := range []int{1, batchBytes, 1} {
		b.add(cache.Added, make([]byte, size))
	}
	if err := b.flush(); err != nil || len(client.writes) != 3 || b.memory != nil {
		t.Errorf("error %v, writes %v, want three", err, client.writes)
	}
}

// TestBatchRefused: a client that cannot be written to is left alone, and the
// error is its own.
func TestBatchRefused(t *testing.T) {
	client := &writeLog{ResponseRecorder: httptest.NewRecorder(), refuse: errors.New("refused")}
	b := newBatch(client)
	for range 3 {
		b.add(cache.Added, make([]byte, batchBytes))
	}
	err := b.flush()
	known, ok := errors.AsType[*CutError](err)
	if !ok || !known.Client || !errors.Is(err, client.refuse) || len(client.writes) != 1 || client.flushes != 0 || b.memory != nil {
		t.Errorf("error %v, writes %v, %d flushes", err, client.writes, client.flushes)
	}
}

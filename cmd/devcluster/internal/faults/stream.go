package faults

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// stream is a request on its way back to the client.
type stream struct {
	proxy   *Proxy
	request request
	fault   *fault        // guarded by Proxy.mu; nil: none
	changed chan struct{} // Proxy.changed when fault was read, of the goroutine that serves
	events  int           // passed since the fault began
	bytes   int
}

// queue keeps what the API server sent and the client has not been given. It has
// no bound: a client from whom much is withheld must not slow the API server,
// which would end the watch.
type queue struct {
	mu     sync.Mutex // guards all below
	frames []frame
	err    error         // after the last frame
	more   chan struct{} // has a value when there may be news
}

func (q *queue) fill(next func() (frame, error)) {
	for {
		f, err := next()
		q.mu.Lock()
		if err == nil {
			q.frames = append(q.frames, f)
		}
		q.err = err
		q.mu.Unlock()
		select {
		case q.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (q *queue) take() (f frame, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) == 0 {
		return frame{}, false, q.err
	}
	f, q.frames = q.frames[0], q.frames[1:]
	return f, true, nil
}

// current is the fault in force. One that is new counts from here.
func (s *stream) current() *fault {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	if s.changed != s.proxy.changed {
		s.changed = s.proxy.changed
		s.events, s.bytes = 0, 0
	}
	return s.fault
}

// heal ends the present fault of the stream.
func (s *stream) heal() {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	if s.changed == s.proxy.changed {
		s.fault = nil
	}
}

// run passes on a watch, event by event.
func (s *stream) run(ctx context.Context, w http.ResponseWriter, resp *http.Response) {
	q := &queue{more: make(chan struct{}, 1)}
	var reader sync.WaitGroup
	defer reader.Wait()
	defer resp.Body.Close() // ends the reader
	reader.Go(func() { q.fill(frameReader(resp.Body, resp.Header.Get("Content-Type"))) })
	for {
		f := s.current()
		if f != nil && s.ends(w, f) {
			return
		}
		if f != nil && f.Withhold != nil && s.events >= f.Withhold.AfterEvents {
			if await(ctx, seconds(f.Withhold.Seconds), s.changed) {
				s.heal()
			}
			if ctx.Err() != nil {
				panic(http.ErrAbortHandler)
			}
			continue
		}
		event, ok, err := q.take()
		switch {
		case ok:
			if !s.pass(ctx, w, f, event) {
				return
			}
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			resetClient(w)
			return
		default:
			select {
			case <-q.more:
			case <-s.changed:
			case <-ctx.Done():
				panic(http.ErrAbortHandler)
			}
		}
	}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// ends carries out a cut or reset when its number of events or bytes is reached.
func (s *stream) ends(w http.ResponseWriter, f *fault) bool {
	end := f.end()
	if end == nil {
		return false
	}
	atOnce := end.AfterBytes == 0 && end.AfterEvents == 0
	if !atOnce && !reached(s.bytes, end.AfterBytes) && !reached(s.events, end.AfterEvents) {
		return false
	}
	f.finish(w)
	return true
}

// end is the early end that the fault is, if it is one.
func (f *fault) end() *End {
	if f.Reset != nil {
		return f.Reset
	}
	return f.Cut
}

// reached says whether there is a limit that n has reached.
func reached(n, limit int) bool { return limit > 0 && n >= limit }

// finish ends the response now.
func (f *fault) finish(w http.ResponseWriter) {
	flush(w)
	switch {
	case f.Reset != nil:
		resetClient(w)
	case !f.Cut.Clean:
		panic(http.ErrAbortHandler)
	}
}

// pass gives the client one event, as the fault has it. It returns false when the
// client is gone.
func (s *stream) pass(ctx context.Context, w http.ResponseWriter, f *fault, event frame) bool {
	if event.isObject() {
		s.events++
	}
	if f != nil {
		var ok bool
		if event, ok = s.distort(ctx, f, event); !ok {
			return ctx.Err() == nil
		}
		if end := f.end(); end != nil && reached(s.bytes+len(event.data), end.AfterBytes) {
			event.data = event.data[:end.AfterBytes-s.bytes]
		}
	}
	s.bytes += len(event.data)
	if _, err := w.Write(event.data); err != nil {
		return false
	}
	flush(w)
	return true
}

// distort returns the event that takes the place of this one, if any does.
func (s *stream) distort(ctx context.Context, f *fault, event frame) (frame, bool) {
	switch {
	case f.Delay != nil && f.Delay.Before != "response":
		await(ctx, milliseconds(f.Delay.Milliseconds), s.changed)
		return event, ctx.Err() == nil
	case f.Drop != nil && event.isObject():
		first := max(f.Drop.Event, 1)
		return event, s.events < first || s.events >= first+max(f.Drop.Count, 1)
	case f.Garble != nil && event.isObject() && s.events == max(f.Garble.Event, 1):
		end := len(event.data)
		if !event.protobuf {
			end-- // the line break
		}
		f.garble(event.data[event.payload:end])
	case f.Bookmark != nil && event.kind == "BOOKMARK":
		if raised, err := event.raise(f.Bookmark.Add); err == nil {
			return raised, true
		}
	}
	return event, true
}

// garble changes one byte, never into a line break by chance.
func (f *fault) garble(data []byte) {
	if len(data) == 0 {
		return
	}
	chance := rand.New(rand.NewPCG(f.seed, 1))
	at := chance.IntN(len(data))
	if f.Garble.Offset != nil {
		at = min(max(*f.Garble.Offset, 0), len(data)-1)
	}
	mask := f.Garble.Mask
	for mask == 0 || f.Garble.Mask == 0 && data[at]^mask == '\n' {
		mask = 1 << chance.IntN(8)
	}
	data[at] ^= mask
}

// body passes on an answer that is no stream of events.
func (s *stream) body(ctx context.Context, w http.ResponseWriter, resp *http.Response) {
	f := s.current()
	if f != nil && f.Withhold != nil {
		await(ctx, seconds(f.Withhold.Seconds), s.changed)
	}
	if f != nil && (f.Garble != nil || f.Truncate != nil) {
		f.spoil(w, resp)
		return
	}
	w.WriteHeader(resp.StatusCode)
	if f == nil || f.end() == nil {
		copyBody(w, resp.Body)
		return
	}
	want := int64(f.end().AfterBytes)
	if n, err := io.CopyN(w, resp.Body, want); n == want {
		f.finish(w)
	} else if !errors.Is(err, io.EOF) { // otherwise it was shorter
		resetClient(w)
	}
}

// spoil passes on an answer with a wrong byte, or half of it.
func (f *fault) spoil(w http.ResponseWriter, resp *http.Response) {
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		resetClient(w)
		return
	}
	w.WriteHeader(resp.StatusCode)
	if f.Garble != nil {
		f.garble(data)
	} else {
		data = data[:len(data)/2]
	}
	_, _ = w.Write(data)
}

// copyBody passes on each piece when it comes: it may be a log that is followed.
func copyBody(w http.ResponseWriter, body io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			flush(w)
		}
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			resetClient(w)
			return
		}
	}
}

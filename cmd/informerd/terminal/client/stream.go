package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Streams that broke off are opened again after firstPause, then after twice as long each
// time, up to lastPause. A server that says nothing for silence is gone: it comments every
// 15 seconds.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	silence    = 45 * time.Second
)

// Opened is the type of what comes before the events of each connection.
const Opened = "OPENED"

var errSilent = errors.New("the server has been silent for 45 seconds")

// Follow asks with watch=true and calls event with each event, until ctx ends or event
// returns an error. A stream that breaks off goes on where it was: informerd is told the id
// of the last event. What it refuses for good is returned. Each time it is opened event is
// called with Opened first, and the id that it goes on after; without one it begins anew, and
// nothing told before holds any more.
func (c *Client) Follow(ctx context.Context, path string, query url.Values, event func(Event) error) error {
	query = clone(query)
	query.Set("watch", "true")
	f := follower{client: c, path: path, query: query, event: event}
	pause := firstPause
	for {
		told := f.told
		err := f.run(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !f.mayGoOn(err):
			return err
		}
		if f.told > told {
			pause = firstPause
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("the server ended the stream")
		}
		c.warn(fmt.Sprintf("%v; opening it again", err))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

func clone(query url.Values) url.Values {
	all := url.Values{}
	for name, values := range query {
		all[name] = values
	}
	return all
}

// follower is one question that is followed over all its connections.
type follower struct {
	client *Client
	path   string
	query  url.Values
	event  func(Event) error
	last   string // the last id
	told   int    // how many events were
}

// stopError is what event returned.
type stopError struct{ error }

func (e stopError) Unwrap() error { return e.error }

// run opens the stream and reads it to its end.
func (f *follower) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var headers []string
	if f.last != "" {
		headers = []string{"Last-Event-ID", f.last}
	}
	resp, err := f.client.Get(ctx, f.path, f.query, headers...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mediaType != "text/event-stream" {
		return f.client.foreign(resp)
	}
	watchdog := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watchdog.Stop()
	if err := f.event(Event{Type: Opened, ID: f.last}); err != nil {
		return stopError{err}
	}
	events := newReader(heard{resp.Body, watchdog})
	for {
		e, err := events.next()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		if e.Type == "ERROR" {
			return f.ended(e.Data)
		}
		if err := f.event(e); err != nil {
			return stopError{err}
		}
		f.told++
		if e.ID != "" {
			f.last = e.ID
		}
	}
}

// ended is the error that a stream ends with.
func (f *follower) ended(data []byte) error {
	var e struct {
		Object metav1.Status `json:"object"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("read the end of the stream: %w", err)
	}
	return &StatusError{Server: f.client.Server, Status: e.Object}
}

// mayGoOn tells what passes from what does not. A server that was never reached is not
// waited for.
func (f *follower) mayGoOn(err error) bool {
	var stop stopError
	var foreign *ForeignError
	var refused *StatusError
	var unreachable *UnreachableError
	switch {
	case errors.As(err, &stop), errors.As(err, &foreign), errors.Is(err, errLineTooLong):
		return false
	case errors.As(err, &refused):
		switch refused.Code {
		case http.StatusGone, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusInternalServerError:
			return f.told > 0
		}
		return false
	case errors.As(err, &unreachable):
		return f.told > 0
	}
	return true
}

// heard puts off the watchdog whenever the server says anything.
type heard struct {
	io.Reader
	watchdog *time.Timer
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.watchdog.Reset(silence)
	}
	return n, err
}

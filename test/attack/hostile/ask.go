package hostile

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// ask asks and reads the answer to its end. Headers are pairs of names and values.
func (w *worker) ask(ctx context.Context, path string, headers ...string) outcome {
	return read(ctx)(w.begin(ctx, http.MethodGet, path, nil, headers...))
}

// read reads an answer to its end.
func read(ctx context.Context) func(*http.Response, error) outcome {
	return func(resp *http.Response, err error) outcome {
		if err != nil {
			return failed(ctx, err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return failed(ctx, err)
		}
		return statusOutcome(resp)
	}
}

func (w *worker) begin(ctx context.Context, method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	return w.beginAs(ctx, w.client, method, path, body, headers...)
}

func (w *worker) beginAs(ctx context.Context, client *http.Client, method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.URL+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	for n := 0; n+1 < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	return client.Do(r)
}

// failed is what an error of a request comes to.
func failed(ctx context.Context, err error) outcome {
	var waited net.Error
	switch {
	case ctx.Err() != nil, errors.As(err, &waited) && waited.Timeout():
		return left
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	}
	return cut
}

// filtered is a path with a filter.
func filtered(path, filter string) string { return path + "?filter=" + url.QueryEscape(filter) }

// oneOf is any of some texts.
func oneOf(texts ...string) string { return texts[rand.IntN(len(texts))] }

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// stream opens a stream and leaves it open without looking at it, whose client reads what
// comes nevertheless. It tells of the beginning, and returns what ended it.
func (w *worker) stream(ctx context.Context, path string) outcome {
	w.client.Timeout = 0
	resp, err := w.begin(ctx, http.MethodGet, path, nil)
	if err != nil {
		return failed(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, resp.Body)
		pause(ctx, time.Second)
	}
	w.tell(statusOutcome(resp))
	if _, err := io.Copy(io.Discard, resp.Body); err != nil && ctx.Err() == nil {
		return cut
	}
	return ""
}

// deafFor is how long the server may bear a client that does not read.
const deafFor = 45 * time.Second

// deaf asks on a connection of its own and reads the head of the answer at most. It tells
// of the answer, and returns how it ended.
func (w *worker) deaf(ctx context.Context, path string) outcome {
	conn, err := w.dial(ctx)
	if err != nil {
		return failed(ctx, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	host := strings.TrimPrefix(w.URL, "https://")
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, host, w.token); err != nil {
		return failed(ctx, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	head := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, head); err != nil {
		return failed(ctx, err)
	}
	w.tell(outcome(head[len("HTTP/1.1 "):]))
	if string(head[len("HTTP/1.1 "):]) != "200" {
		pause(ctx, time.Second)
		return ""
	}
	pause(ctx, deafFor)
	return left
}

// dial opens a connection whose client takes in little that it does not read.
func (w *worker) dial(ctx context.Context) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: time.Minute}
	plain, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(w.URL, "https://"))
	if err != nil {
		return nil, err
	}
	_ = plain.(*net.TCPConn).SetReadBuffer(4 << 10)
	trust := w.tls.Clone()
	trust.ServerName, trust.NextProtos = "127.0.0.1", []string{"http/1.1"}
	conn := tls.Client(plain, trust)
	if err := conn.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, err
	}
	return conn, nil
}

// drip is a body of so many bytes, of which one comes a second.
type drip struct {
	ctx  context.Context
	left int
}

func (d *drip) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	pause(d.ctx, time.Second)
	if d.ctx.Err() != nil {
		return 0, d.ctx.Err()
	}
	d.left--
	p[0] = ' '
	return 1, nil
}

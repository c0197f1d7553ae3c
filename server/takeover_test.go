package server

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestTakenOverUntilReturned: the request of a WebSocket goes on after its connection is
// closed, with a copy or a record of what was asked. Run waits for it.
func TestTakenOverUntilReturned(t *testing.T) {
	w := newWorld(t)
	if err := w.Listen(); err != nil {
		t.Fatal(err)
	}
	closed, going := make(chan struct{}), make(chan struct{})
	var returned atomic.Bool
	w.handler = w.instrument(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.takeOver(out)
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
		close(closed)
		<-going
		returned.Store(true)
	}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	conn, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-closed
	stop()
	time.AfterFunc(100*time.Millisecond, func() { close(going) })
	if err := <-done; err != nil || !returned.Load() {
		t.Errorf("Run() = %v, request at its end: %t", err, returned.Load())
	}
}

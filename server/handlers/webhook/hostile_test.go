package webhook

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// speak starts a server that reads one request of each connection and writes what answer says.
func speak(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				answer(c)
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return "http://" + l.Addr().String()
}

// TestSwitchedProtocols: a sink that answers 101, after which the connection is not HTTP any
// more and no timeout of a request ends it, holds up nobody.
func TestSwitchedProtocols(t *testing.T) {
	url := speak(t, func(c net.Conn) {
		_, _ = fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: rope\r\n\r\n")
	})
	s := open(t, url, func(c *Config) { c.Timeout = 500 * time.Millisecond })
	done := make(chan error, 1)
	go func() { done <- s.Deliver(context.Background(), delivery()) }()
	select {
	case err := <-done:
		wantRejected(t, err, "101")
	case <-time.After(30 * time.Second):
		t.Fatal("a delivery never ends")
	}
}

// TestEarlyHints: answers before the answer, without end, are ended.
func TestEarlyHints(t *testing.T) {
	url := speak(t, func(c net.Conn) {
		for {
			if _, err := fmt.Fprint(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"); err != nil {
				return
			}
		}
	})
	s := open(t, url, func(c *Config) { c.Timeout = 2 * time.Second })
	if err := s.Deliver(t.Context(), delivery()); err == nil {
		t.Fatal("it was taken")
	}
}

// TestEchoes: what a sink repeats of what it was sent, as error pages do, does not tell what is
// secret of it: the path and the query of the URL, and the values of headers from files.
func TestEchoes(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, "Cannot POST %s (%s) (%q) of %s %s, %s%s", q.URL.RequestURI(), q.URL.Path, q.URL.Query().Get("key"),
			q.Header.Get("Authorization"), strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "),
			strings.Repeat("x", 500), q.Header.Get("X-Key"))
	})
	s := open(t, r.URL+"/hooks/T0/s3%63ret?key=qu%2Fery", func(c *Config) {
		c.HeaderFiles = map[string]string{"Authorization": file(t, "Bearer t0ken-of-mine"), "X-Key": file(t, strings.Repeat("longkey", 200))}
	})
	err := s.Deliver(t.Context(), delivery())
	wantRejected(t, err, "404", "Cannot POST")
	for _, secret := range []string{"s3cret", "s3%63ret", "qu%2Fery", "qu/ery", "t0ken", "longkey"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s is told: %v", secret, err)
		}
	}
}

// TestGarbageEchoes is TestEchoes of what is no HTTP, which errors of net/http repeat.
func TestGarbageEchoes(t *testing.T) {
	url := speak(t, func(c net.Conn) {
		_, _ = fmt.Fprint(c, "HTTP/1.1 t0ken-of-mine what\r\n\r\n")
	})
	s := open(t, url, func(c *Config) {
		c.HeaderFiles = map[string]string{"Authorization": file(t, "Bearer t0ken-of-mine")}
	})
	if err := s.Deliver(t.Context(), delivery()); err == nil || strings.Contains(err.Error(), "t0ken") {
		t.Errorf("error %v", err)
	}
}

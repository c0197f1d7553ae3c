// Package sinktest has what the tests of all sinks need: a delivery, files with secrets, a
// server that behaves as it likes, and what an error is to be.
package sinktest

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/server/handlers"
)

// Delivery is a change of the Deployment shop/web.
func Delivery() *handlers.Delivery {
	return &handlers.Delivery{
		Handler: "h", ID: "h/uid-1/42", Transition: handlers.Changes, Cluster: "main",
		GVR:  schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-1", ResourceVersion: "42",
		Object: json.RawMessage(`{"kind":"Deployment","metadata":{"name":"web"}}`), Attempt: 3,
		Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Sequence: 7,
	}
}

// Named is a Delivery of another object.
func Named(name string) *handlers.Delivery {
	d := Delivery()
	d.Name, d.ID = name, "h/"+name+"/42"
	return d
}

// Deliver delivers d, which must be taken.
func Deliver(tb testing.TB, s handlers.Sink, d *handlers.Delivery) {
	tb.Helper()
	if err := s.Deliver(tb.Context(), d); err != nil {
		tb.Fatal(err)
	}
}

// Secret is in files and URLs of tests, and must be in no error.
const Secret = "s3cret"

func says(tb testing.TB, err error, words ...string) {
	tb.Helper()
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			tb.Errorf("error %q does not say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), Secret) {
		tb.Errorf("tells a secret: %v", err)
	}
}

// WantDown: err blames the sink, and says words.
func WantDown(tb testing.TB, err error, words ...string) {
	tb.Helper()
	if _, is := errors.AsType[*handlers.DownError](err); !is {
		tb.Fatalf("error is %T %v, want a DownError", err, err)
	}
	says(tb, err, words...)
}

// WantRejected: err blames the delivery, which is to be tried again or never, and says words.
func WantRejected(tb testing.TB, err error, never bool, words ...string) {
	tb.Helper()
	e, is := errors.AsType[*handlers.RejectedError](err)
	if !is || e.Never != never {
		tb.Fatalf("error is %T %+v, want a RejectedError, never: %v", err, err, never)
	}
	says(tb, err, words...)
}

// File is the path of a file with content.
func File(tb testing.TB, content string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "file")
	Write(tb, path, content)
	return path
}

// Write makes content what is in a file.
func Write(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Listen is the host and port of a server that deals with each connection by serve, and closes
// it then.
func Listen(tb testing.TB, serve func(net.Conn)) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var running sync.WaitGroup
	tb.Cleanup(func() { _ = l.Close(); running.Wait() })
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { serve(c); _ = c.Close() })
		}
	})
	return l.Addr().String()
}

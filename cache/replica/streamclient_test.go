package replica

import (
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// TestStreamsApart: streams that are open at a time each have a connection,
// though the server offers HTTP/2.
func TestStreamsApart(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.RemoteAddr)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client, err := newStreamClient(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}, NewLine(), ClusterConfig{}.Wrapped)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 3 {
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		buf := make([]byte, 100)
		n, err := resp.Body.Read(buf)
		if err != nil || resp.Proto != "HTTP/1.1" {
			t.Fatalf("%s, error %v", resp.Proto, err)
		}
		seen[string(buf[:n])] = true
	}
	if len(seen) != 3 {
		t.Errorf("3 streams came over %v", seen)
	}
}

// TestSilence: a connection lasts as long as it brings something now and then.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		go func() {
			for range 5 {
				time.Sleep(streamSilence - time.Second)
				_, _ = theirs.Write([]byte("x"))
			}
		}()
		conn, start := &heardConn{ours, streamSilence}, time.Now()
		got, err := io.ReadAll(conn)
		if string(got) != "xxxxx" || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read %q, error %v", got, err)
		}
		if took, want := time.Since(start), 6*streamSilence-5*time.Second; took != want {
			t.Errorf("ended after %v, want %v", took, want)
		}
	})
}

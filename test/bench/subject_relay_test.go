package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// TestRelay: what is asked of it is asked of the API server, and each line comes through
// before the next is there.
func TestRelay(t *testing.T) {
	next := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.Error(w, "no such thing", http.StatusNotFound)
			return
		}
		fmt.Fprintln(w, r.URL.RequestURI())
		out := http.NewResponseController(w)
		_ = out.Flush()
		for line := range next {
			fmt.Fprintln(w, line)
			_ = out.Flush()
		}
	}))
	defer server.Close()
	end := sync.OnceFunc(func() { close(next) })
	defer end()
	peer, err := startRelay(t.Context(), &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(peer.address + "/api/v1/pods?watch=true&resourceVersion=7")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the line is %q (%v), want %q", lines.Text(), lines.Err(), want)
		}
	}
	expect("/api/v1/pods?watch=true&resourceVersion=7")
	for _, line := range []string{"one", "two"} {
		next <- line
		expect(line)
	}
	end()
	if lines.Scan() {
		t.Errorf("after the end comes %q", lines.Text())
	}
	resp, err = http.Get(peer.address + "/missing")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %s, want the API server's", resp.Status)
	}
}

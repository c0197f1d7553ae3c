package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProfilesAddr: profiles are never served beyond this machine.
func TestProfilesAddr(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:6060": "", "[::1]:6060": "", "localhost:0": "", "127.9.9.9:1": "",
		":6060": "not a loopback address", "0.0.0.0:6060": "not a loopback address", "10.0.0.1:6060": "write 127.0.0.1:6060",
		"informerd.example.com:6060": "not a loopback address",
		"6060":                       "want host:port", "127.0.0.1": "want host:port", "127.0.0.1:x": "not a number", "127.0.0.1:00": "not a number", "127.0.0.1:70000": "not a number",
	} {
		err := CheckProfilesAddr(addr)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
		if p, err := ListenProfiles(addr, slog.New(slog.DiscardHandler)); want != "" && err == nil {
			t.Errorf("listens on %s", p.Addr())
			_ = p.listener.Close()
		} else if err == nil {
			_ = p.listener.Close()
		}
	}
}

// TestProfiles: they are served at an address of their own, to who is on this machine,
// until the end.
func TestProfiles(t *testing.T) {
	p, err := ListenProfiles("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(method, path, host string, headers ...string) (int, http.Header, string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+p.Addr()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(body)
	}
	for path, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "TestProfiles", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/cmdline": "test",
	} {
		code, header, body := ask(http.MethodGet, path, "localhost:6060")
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("GET %s = %d %.100s", path, code, body)
		}
		for name := range header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("GET %s answers %s", path, name)
			}
		}
	}
	for _, test := range []struct {
		method, path, host string
		headers            []string
		code               int
	}{
		{"GET", "/debug/pprof/", "evil.example.com", nil, 403},
		{"GET", "/debug/pprof/", "127.0.0.1.example.com", nil, 403},
		{"GET", "/debug/pprof/", "10.0.0.1", nil, 403},
		{"GET", "/debug/pprof/profile?seconds=1", "127.0.0.1", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/debug/pprof/profile?seconds=1", "127.0.0.1", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"GET", "/debug/pprof/cmdline", "[::1]:1", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"GET", "/debug/pprof/profile?seconds=301", "localhost", nil, 400},
		{"POST", "/debug/pprof/heap", "localhost", nil, 405},
		{"POST", "/debug/pprof/symbol", "localhost", nil, 200},
		{"GET", "/", "localhost", nil, 404},
		{"GET", "/metrics", "localhost", nil, 404},
	} {
		if code, _, body := ask(test.method, test.path, test.host, test.headers...); code != test.code {
			t.Errorf("%s %s of %s: %d %.100s, want %d", test.method, test.path, test.host, code, body, test.code)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run() = %v", err)
	}
	if _, err := client.Get("http://" + p.Addr() + "/debug/pprof/"); err == nil {
		t.Error("serves on after the end")
	}
}

// TestNoProfilesElsewhere: net/http/pprof enters itself into the default mux, which the
// server does not use.
func TestNoProfilesElsewhere(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=1"} {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost"
		w.Handler().ServeHTTP(rec, r)
		if rec.Code != http.StatusNotFound || strings.Contains(rec.Body.String(), "goroutine profile") {
			t.Errorf("GET %s = %d %.100s", path, rec.Code, rec.Body)
		}
	}
}

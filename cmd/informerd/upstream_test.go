package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cache/replica"
)

// TestUpstreamCredentials: informerd's own requests carry its credentials, those
// it passes on do not.
func TestUpstreamCredentials(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
	}))
	defer server.Close()
	ups := &upstreams{}
	if up := ups.get("east"); up != nil {
		t.Errorf("before connecting: %v", up)
	}
	if err := ups.connect("east", replica.ClusterConfig{REST: &rest.Config{Host: server.URL + "/prefix", BearerToken: "own", Impersonate: rest.ImpersonationConfig{UserName: "x"}}}); err != nil {
		t.Fatal(err)
	}
	up := ups.get("east")
	resp, err := up.Get(t.Context(), "/api/v1?limit=1", http.Header{"Accept": {"application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	base, transport := up.Passthrough()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base.JoinPath("/api/v1").String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err = transport.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(seen) != 2 || seen[0] != "/prefix/api/v1?limit=1 Bearer own" || seen[1] != "/prefix/api/v1 " {
		t.Errorf("the API server saw %q", seen)
	}
}

// TestUpstreamRedirect: informerd's own credentials go where they were meant to
// go and nowhere else.
func TestUpstreamRedirect(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path)
		http.Redirect(w, r, "/api/v1/secrets", http.StatusFound)
	}))
	defer server.Close()
	up, err := newUpstream(replica.ClusterConfig{REST: &rest.Config{Host: server.URL, BearerToken: "own"}}, replica.NewLine())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := up.Get(t.Context(), "/openapi/v3", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound || len(seen) != 1 {
		t.Errorf("answer %s, the API server saw %q", resp.Status, seen)
	}
}

// TestUpstreamRemoved: what is passed on to a cluster ends with it, however long it was to
// last.
func TestUpstreamRemoved(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	ups := &upstreams{}
	if err := ups.connect("east", replica.ClusterConfig{REST: &rest.Config{Host: server.URL}}); err != nil {
		t.Fatal(err)
	}
	base, transport := ups.get("east").Passthrough()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base.String()+"/log?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ups.remove("east")
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream ended well")
	}
	if resp, err := transport.RoundTrip(r); err == nil {
		_ = resp.Body.Close()
		t.Error("another request was answered")
	}
}

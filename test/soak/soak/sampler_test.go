package soak

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/informerd/informerd/test/soak/rig"
)

// TestSamplerRelists: a list, and the end of a resource, are told from nothing.
func TestSamplerRelists(t *testing.T) {
	var body atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, body.Load().(string))
	}))
	defer server.Close()
	s := newSampler(&rig.Informerd{Name: "first", URL: server.URL})
	const both = `{"items":[{"name":"pods","state":"live","counts":{"relists":1}},{"name":"widgets","state":"live","counts":{"relists":1}}]}`
	for _, step := range []struct {
		body          string
		pods, widgets bool
	}{
		{both, true, true}, // listed for the first time
		{both, false, false},
		{`{"items":[{"name":"pods","state":"live","counts":{"relists":2}},{"name":"widgets","state":"live","counts":{"relists":1}}]}`, true, false},
		{`{"items":[{"name":"pods","state":"live","counts":{"relists":2}}]}`, false, true},
		{`{"items":[{"name":"pods","state":"live","counts":{"relists":2}}]}`, false, false},
		{`{"items":[{"name":"pods","state":"live","counts":{"relists":2}},{"name":"widgets","state":"live","counts":{"relists":1}}]}`, false, true},
	} {
		body.Store(step.body)
		clear(s.lists)
		if _, ok := s.sample(t.Context()); !ok {
			t.Fatal("no sample")
		}
		now := time.Now()
		if pods, widgets := s.relisted("pods", now, s.last), s.relisted("widgets", now, s.last); pods != step.pods || widgets != step.widgets {
			t.Errorf("%s: pods %v, widgets %v; want %v, %v", step.body, pods, widgets, step.pods, step.widgets)
		}
	}
}

// TestSamplerEndOfUnlisted: the end of a resource is told from nothing, too, where the process
// began with what was saved of it and never listed it.
func TestSamplerEndOfUnlisted(t *testing.T) {
	var body atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, body.Load().(string))
	}))
	defer server.Close()
	s := newSampler(&rig.Informerd{Name: "first", URL: server.URL})
	for _, text := range []string{`{"items":[{"name":"widgets","state":"warm","counts":{}}]}`, `{"items":[]}`} {
		body.Store(text)
		if _, ok := s.sample(t.Context()); !ok {
			t.Fatal("no sample")
		}
	}
	if now := time.Now(); !s.relisted("widgets", now, s.last) || len(s.ends["widgets"]) != 1 {
		t.Errorf("told %v", s.ends)
	}
}

// TestSamplerAsked: what happened while a sample was answered may not be in it.
func TestSamplerAsked(t *testing.T) {
	const takes = 100 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"items":[]}`)
		w.(http.Flusher).Flush()
		time.Sleep(takes)
	}))
	defer server.Close()
	s := newSampler(&rig.Informerd{Name: "first", URL: server.URL})
	asked := time.Now()
	if _, ok := s.sample(t.Context()); !ok {
		t.Fatal("no sample")
	}
	if at := asked.Add(takes / 2); !s.relisted("pods", at, at) {
		t.Error("not relisted, and nobody has looked since")
	}
}

// TestSamplerRestarts: what a process did after its last sample is not known.
func TestSamplerRestarts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"items":[{"name":"pods","state":"warm","counts":{}}]}`)
	}))
	defer server.Close()
	s := newSampler(&rig.Informerd{Name: "first", URL: server.URL})
	for _, c := range []struct {
		process   string // of the sample before
		restarted bool
	}{{"first.1", true}, {"first.0", false}} {
		s.from, s.restarts = c.process, nil
		if _, ok := s.sample(t.Context()); !ok {
			t.Fatal("no sample")
		}
		now := s.last
		if got := s.restarted(now.Add(-time.Second), now); got != c.restarted {
			t.Errorf("after %s: restarted %v", c.process, got)
		}
		if got := s.ended("pods", now); got != c.restarted {
			t.Errorf("after %s: ended %v", c.process, got)
		}
		if s.relisted("pods", now, now) {
			t.Errorf("after %s: relisted, and nothing was counted", c.process)
		}
	}
}

// TestAuditorListed: a question for one object is no list.
func TestAuditorListed(t *testing.T) {
	a := &auditor{}
	for uri, listed := range map[string]bool{
		"/api/v1/pods":                           true,
		"/api/v1/pods?limit=500":                 true,
		"/api/v1/pods?limit=1&resourceVersion=5": false,
		"/api/v1/pods?limit=1":                   false,
	} {
		a.asked = nil
		a.line([]byte(`{"verb":"list","requestURI":"`+uri+`","requestReceivedTimestamp":"2026-01-01T00:00:20Z","objectRef":{"resource":"pods"},"responseStatus":{"code":200}}`),
			func(time.Time, string, string) {})
		at := time.Date(2026, 1, 1, 0, 0, 40, 0, time.UTC)
		if got := a.listed("pods", at, at.Add(time.Second)); got != listed {
			t.Errorf("%s: listed %v", uri, got)
		}
		if a.listed("pods", at.Add(time.Minute), at.Add(2*time.Minute)) || a.listed("pods", at.Add(-2*time.Minute), at.Add(-time.Minute)) {
			t.Errorf("%s: listed at another time", uri)
		}
	}
}

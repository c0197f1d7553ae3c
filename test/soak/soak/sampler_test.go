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

package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Of benchPods, each app has as many.
const (
	benchPods = 1000
	benchApp  = 50
)

// filledWorld is a world of pods of some kilobytes.
func filledWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	padding := fmt.Sprintf(`"annotations":{"padding":%q},"labels"`, strings.Repeat("0123456789abcdef", 300))
	var pods []string
	for i := range benchPods {
		p := pod("a", fmt.Sprintf("pod-%04d", i), fmt.Sprintf("app-%d", i/benchApp), "n1", i+1)
		pods = append(pods, strings.Replace(p, `"labels"`, padding, 1))
	}
	w.pods.replace(t, "2000", pods...)
	return w
}

// discard is a client that reads nothing and counts.
type discard struct {
	header http.Header
	code   int
	bytes  int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(code int)        { d.code = code }
func (d *discard) Write(b []byte) (int, error) { d.bytes += len(b); return len(b), nil }

// listApp asks for the pods of one app in full.
func (w *world) listApp(t testing.TB) int {
	r := httptest.NewRequest(http.MethodGet, "/v1/resources/pods/indexes/label/app=app-7", nil)
	r.Host = "localhost:8080"
	d := &discard{header: http.Header{}}
	w.Handler().ServeHTTP(d, r)
	if d.bytes < benchApp*4000 {
		t.Fatalf("an answer has %d bytes, code %d", d.bytes, d.code)
	}
	return d.bytes
}

// BenchmarkIndexQuery answers with 50 objects in full, as all that is done for
// them but the network.
func BenchmarkIndexQuery(b *testing.B) {
	w := filledWorld(b)
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(w.listApp(b)))
	}
}

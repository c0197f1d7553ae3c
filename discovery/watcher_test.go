package discovery

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const initialEnd = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`

// readStream reads body as a watch that begins with initial events.
func readStream(body io.Reader) (*watcher[crdSpec], error) {
	w := newWatcher[crdSpec](nil, crdsPath, "Established", func() {}, slog.New(slog.DiscardHandler))
	s := stream[crdSpec]{watcher: w, initial: map[string]row[crdSpec]{}, late: time.NewTimer(time.Hour)}
	return w, s.read(&http.Response{Body: io.NopCloser(body)})
}

func TestStream(t *testing.T) {
	added := `{"type":"ADDED","object":{"metadata":{"name":"as.g","uid":"u","generation":3},` +
		`"spec":{"group":"g","names":{"plural":"as"},"versions":[{"name":"v1","served":true}]},` +
		`"status":{"conditions":[{"type":"Established","status":"True"}]}}}`
	for name, tt := range map[string]struct {
		body    string
		rows    int
		version string
		known   bool
		is      func(error) bool
	}{
		"initial events":       {added + initialEnd, 1, "7", true, func(err error) bool { return err == nil }},
		"none":                 {initialEnd, 0, "7", true, func(err error) bool { return err == nil }},
		"ends too soon":        {added, 0, "", false, func(err error) bool { return errors.Is(err, io.EOF) && !errors.Is(err, errCut) }},
		"cut in a later event": {added + initialEnd + added[:40], 1, "7", true, func(err error) bool { return errors.Is(err, errCut) }},
		"deleted": {added + initialEnd + `{"type":"DELETED","object":{"metadata":{"name":"as.g","resourceVersion":"9"}}}`,
			0, "9", true, func(err error) bool { return err == nil }},
		"bookmark": {initialEnd + `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}`,
			0, "8", true, func(err error) bool { return err == nil }},
		"expired": {initialEnd + `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}`,
			0, "7", true, apierrors.IsResourceExpired},
		"garbage":      {initialEnd + `}`, 0, "7", true, func(err error) bool { return err != nil && !errors.Is(err, errCut) }},
		"unknown type": {initialEnd + `{"type":"NEWS","object":{}}`, 0, "7", true, func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := readStream(strings.NewReader(tt.body))
			if !tt.is(err) {
				t.Errorf("read() = %v", err)
			}
			got := w.current()
			if len(got.rows) != tt.rows || got.known != tt.known || w.resourceVersion != tt.version {
				t.Errorf("rows = %+v, known = %v, resourceVersion = %q", got.rows, got.known, w.resourceVersion)
			}
			if r, ok := got.rows["as.g"]; ok && (r.uid != "u" || r.generation != 3 || !r.ready || !r.spec.serves([]string{"v1"})) {
				t.Errorf("row = %+v", r)
			}
		})
	}
}

// TestCutStreams: a stream that is cut is resumed soon, and less and less often as
// long as it is cut as soon as it was accepted.
func TestCutStreams(t *testing.T) {
	w := newWatcher[crdSpec](nil, crdsPath, "Established", func() {}, slog.New(slog.DiscardHandler))
	w.resourceVersion = "7"
	for n := range 10 {
		want := min(retryFirst/5<<n, retryLast)
		if got := w.settle(errCut, time.Millisecond); got < want/2 || got > want*3/2 {
			t.Errorf("pause %v after %d cuts, want about %v", got, n+1, want)
		}
	}
	if got := w.settle(errCut, time.Minute); got > retryFirst/5*3/2 || w.resourceVersion != "7" {
		t.Errorf("pause %v after a stream of a minute, to resume from %q", got, w.resourceVersion)
	}
}

// BenchmarkStream reads CRDs with a schema of half a megabyte each.
func BenchmarkStream(b *testing.B) {
	property := map[string]any{"type": "object", "description": strings.Repeat("words ", 20), "format": "int32"}
	properties := map[string]any{}
	for i := range 2500 {
		properties[strings.Repeat("p", 20)+string(rune('a'+i%26))+time.Duration(i).String()] = property
	}
	event, err := json.Marshal(map[string]any{"type": "ADDED", "object": map[string]any{
		"metadata": map[string]any{"name": "as.g"},
		"spec":     map[string]any{"versions": []any{map[string]any{"name": "v1", "schema": properties}}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	body := strings.Repeat(string(event), 10) + initialEnd
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readStream(strings.NewReader(body)); err != nil {
			b.Fatal(err)
		}
	}
}

package audit

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text is what several goroutines write.
type text struct {
	mu sync.Mutex // guards all below
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// logger logs to a text without times.
func logger() (*slog.Logger, *text) {
	t := &text{}
	return slog.New(slog.NewTextHandler(t, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), t
}

// request is one with headers in pairs.
func request(target string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// decoded are lines as maps. Each must be a whole one.
func decoded(t *testing.T, lines string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(lines) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || !strings.HasSuffix(line, "}\n") {
			t.Fatalf("no line: %q, %v", line, err)
		}
		all = append(all, m)
	}
	return all
}

// recorded is what is written of one request.
func recorded(t *testing.T, r *http.Request, note func(*Record)) string {
	t.Helper()
	out := &text{}
	l, err := Open(Options{File: Standard, Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	record := l.Begin(r)
	note(record)
	l.writeBatch(l.take(nil))
	return out.String()
}

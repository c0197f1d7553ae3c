package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/informerd/informerd/server/handlers/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	delivery = sinktest.Delivery
	file     = sinktest.File
	write    = sinktest.Write
	wantDown = sinktest.WantDown
)

// wantRejected: the delivery is to be tried again.
func wantRejected(t *testing.T, err error, words ...string) {
	t.Helper()
	sinktest.WantRejected(t, err, false, words...)
}

// request is one that a receiver got.
type request struct {
	*http.Request
	body []byte
}

// receiver is a server that notes what it gets and answers with answer.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []request
}

func receive(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.got = append(r.got, request{q, body})
		r.mu.Unlock()
		answer(w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// open makes a sink for a server of this machine.
func open(t *testing.T, url string, change func(*Config)) *Sink {
	t.Helper()
	c := Config{URL: url, AllowPrivate: []string{"127.0.0.1"}}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

package server

import (
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/reply"
)

const (
	// fullShare is the share of the memory limit from which questions that may need
	// much are refused, in percent: what is left is for the copies, which have to go
	// on, and for the answers under way.
	fullShare = 85
	// memoryFresh is how long a look at the memory is good for.
	memoryFresh = 100 * time.Millisecond
)

// memory says whether the process has any to spare. The limit is that of Go's runtime,
// which is GOMEMLIMIT, or what the program has set.
type memory struct {
	limit func() int64
	// short is called when there is none. It reports whether it has given some back.
	short func() bool

	mu      sync.Mutex // guards all below
	looked  time.Time
	full    bool
	samples []metrics.Sample
}

func newMemory(short func() bool) *memory {
	m := &memory{limit: func() int64 { return debug.SetMemoryLimit(-1) }, short: short}
	// What would be left if garbage were collected now. What is garbage already is no
	// reason to refuse anybody.
	for _, name := range []string{"/gc/heap/live:bytes", "/memory/classes/heap/stacks:bytes", "/memory/classes/os-stacks:bytes", "/memory/classes/metadata/other:bytes"} {
		m.samples = append(m.samples, metrics.Sample{Name: name})
	}
	return m
}

// isFull reports whether nothing large should be begun.
func (m *memory) isFull(now time.Time) bool {
	limit := m.limit()
	if limit == math.MaxInt64 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.looked) < memoryFresh {
		return m.full
	}
	if m.looked, m.full = now, m.isUsed(limit); m.full && m.short() {
		runtime.GC() // which says what is left; it is long until memory can be given back again
		m.full = m.isUsed(limit)
	}
	return m.full
}

func (m *memory) isUsed(limit int64) bool {
	metrics.Read(m.samples)
	var used uint64
	for _, s := range m.samples {
		used += s.Value.Uint64()
	}
	return used > uint64(limit)/100*fullShare
}

// forgetColumns gives back what is only kept to answer sooner.
func (s *Server) forgetColumns() (any bool) {
	for _, r := range s.Caches.Resources() {
		if r.View().ForgetColumns() {
			any = true
		}
	}
	return any
}

// spareMemory refuses what may need much while there is little left.
func (s *Server) spareMemory(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := s.memoryLeft(); err != nil {
			return err
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

func (s *Server) memoryLeft() error {
	if !s.memory.isFull(time.Now()) {
		return nil
	}
	return statusError(retryAfter(reply.Failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		"informerd is short of memory: single objects are answered, lists and streams again when there is more"), 5))
}

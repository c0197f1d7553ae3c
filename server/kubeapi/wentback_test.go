package kubeapi

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// questions counts what the API server was asked.
func (u *fakeUpstream) questions() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.asked)
}

// TestUnansweredIsLetRest: however many clients want to know whether a version ever was,
// an API server that fails is asked once a second, and one that hangs is not waited for
// by one client after the other.
func TestUnansweredIsLetRest(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		api := New(Options{Caches: w, Upstream: func(string) Upstream { return w.upstream }, Admit: w.Admit, Stopping: t.Context()})
		failing := true
		var mu sync.Mutex
		w.upstream.answer = func(r *http.Request) *http.Response {
			mu.Lock()
			fails := failing
			mu.Unlock()
			if !fails {
				<-r.Context().Done()
			}
			return jsonResponse(http.StatusInternalServerError, `{"kind":"Status","status":"Failure","reason":"InternalError","code":500}`)
		}
		ask := func(n int) {
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					if back, err := api.WentBack(t.Context(), w.pods.View(), "500"); back || err == nil {
						t.Errorf("%v, %v, and nobody can tell", back, err)
					}
				})
			}
			all.Wait()
		}
		for range 10 { // for five seconds
			ask(100)
			time.Sleep(500 * time.Millisecond)
		}
		if n := w.upstream.questions(); n == 0 || n > 5 {
			t.Errorf("asked %d times in 5 s, want once a second", n)
		}

		mu.Lock()
		failing = false
		mu.Unlock()
		time.Sleep(unansweredPause)
		began := time.Now()
		ask(1)
		if took := time.Since(began); took != presentTimeout {
			t.Errorf("waited %v for who hangs, want %v", took, presentTimeout)
		}
		for range 50 { // one after the other, as a watch of many resources does
			ask(1)
		}
		if took := time.Since(began); took != presentTimeout {
			t.Errorf("51 questions took %v, want %v", took, presentTimeout)
		}
	})
}

// TestAskedOnce: an answer to a question that was asked after the version was heard of is
// proof. The new history may have passed the version by the next one.
func TestAskedOnce(t *testing.T) {
	w := newWorld(t)
	asked := 0
	w.upstream.set(func(*http.Request) *http.Response {
		asked++
		return jsonResponse(http.StatusOK, fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"}}`, 400+100*asked))
	})
	if back, err := w.WentBack(t.Context(), w.pods.View(), "550"); !back || err != nil || asked != 1 {
		t.Errorf("%v, %v after %d questions, want true after one", back, err, asked)
	}
	if back, err := w.WentBack(t.Context(), w.pods.View(), "550"); back || err != nil {
		t.Errorf("%v, %v, want false", back, err)
	}
}

// TestNobodyToAsk: where nobody ever can tell, clients are not kept waiting.
func TestNobodyToAsk(t *testing.T) {
	w := newWorld(t)
	aggregated := *w.pods.View()
	aggregated.Spec.Aggregated = true
	if back, err := w.WentBack(t.Context(), &aggregated, "500"); back || err != nil {
		t.Errorf("aggregated: %v, %v", back, err)
	}
	alone := New(Options{Caches: w, Admit: w.Admit, Stopping: t.Context()})
	if back, err := alone.WentBack(t.Context(), w.pods.View(), "500"); back || err != nil {
		t.Errorf("without an API server: %v, %v", back, err)
	}
}

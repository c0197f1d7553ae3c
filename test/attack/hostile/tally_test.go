package hostile

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"
)

func TestTally(t *testing.T) {
	counted := newTally()
	for _, o := range []outcome{"403", "403", "200", left} {
		counted.count("navigate", o)
	}
	first := counted.all()
	counted.count("navigate", "403")
	counted.count("scrape", "429")
	all := counted.all()
	if want := (Tally{"navigate": {"403": 2, "200": 1, "left": 1}}); !reflect.DeepEqual(first, want) {
		t.Errorf("first %v, want %v", first, want)
	}
	if want := (Tally{"navigate": {"403": 1}, "scrape": {"429": 1}}); !reflect.DeepEqual(all.Since(first), want) {
		t.Errorf("since then %v, want %v", all.Since(first), want)
	}
	if want := (Tally{"navigate": {"200": 1}}); !reflect.DeepEqual(all.Unexpected(), want) {
		t.Errorf("unexpected %v, want %v", all.Unexpected(), want)
	}
	if all.Of("403") != 3 || all.Of("429") != 1 || all.Of("500") != 0 {
		t.Errorf("of %v", all)
	}
}

// TestAttacks: each says what it does and what may come of it, and no name is there twice.
func TestAttacks(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attacks {
		if seen[a.name] || Does(a.name) == "" || a.workers == 0 || a.once == nil || len(a.want) == 0 {
			t.Errorf("%+v", a)
		}
		seen[a.name] = true
		for _, bad := range []string{"500", "502", string(refused), "0"} {
			if Expected(a.name, bad) {
				t.Errorf("%s may lead to %s", a.name, bad)
			}
		}
	}
	if !Expected("navigate", "429") || Expected("navigate", "503 without Retry-After") || Does("none") != "" || Expected("none", "200") {
		t.Error("what may always be, or never")
	}
}

// TestOrders: they go from one process to another.
func TestOrders(t *testing.T) {
	want := Orders{URL: "https://127.0.0.1:1", CA: []byte("pem"), Tokens: []string{"a", "b"}, Namespace: "n", Resource: "r", Path: "/p", Deep: "d", Wide: "w", Only: []string{"grow"}, Share: 0.5, Wait: time.Second}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Orders
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if share(400, 0) != 400 || share(400, 0.1) != 40 || share(4, 0.1) != 1 {
		t.Errorf("shares %d %d %d", share(400, 0), share(400, 0.1), share(4, 0.1))
	}
}

// TestWaited: who has waited for long enough went away, and was not cut off.
func TestWaited(t *testing.T) {
	ended := make(chan struct{}) // an answer that ended when the client goes might still reach it
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/begun" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		}
		<-ended
	}))
	defer server.Close()
	defer close(ended)
	client := server.Client()
	client.Timeout = 50 * time.Millisecond
	w := &worker{Orders: &Orders{URL: server.URL}, client: client}
	for path, want := range map[string]outcome{"/never": left, "/begun": left} {
		if got := w.ask(t.Context(), path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	client.Timeout = time.Minute
	if got := w.ask(t.Context(), "/cut"); got != cut {
		t.Errorf("%q where the server has ended it", got)
	}
}

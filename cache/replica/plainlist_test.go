package replica

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
	"github.com/klauspost/compress/gzip"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestListsPlainly(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for name, c := range map[string]struct {
		server string
		source *source
		want   bool
	}{
		"encodes by object":       {"v1.33.0", &source{}, true},
		"with the vendor's words": {"v1.36.3-gke.1234+x", &source{}, true},
		"of a later year":         {"v2.0.0", &source{}, true},
		"encodes as a whole":      {"v1.32.9", &source{}, false},
		"of an unknown version":   {"somebody's", &source{}, false},
		"not asked yet":           {"", &source{}, false},
		"a list broke off":        {"v1.36.3", &source{noPlain: true}, false},
		"knows no streaming":      {"v1.30.0", &source{noStreaming: true}, true},
		"knows nothing well":      {"v1.30.0", &source{noStreaming: true, noPlain: true}, true},
		"events":                  {"v1.36.3", &source{spec: cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "events"}}}}, false},
		"new events":              {"v1.36.3", &source{spec: cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}}}}, false},
		"somebody's events":       {"v1.36.3", &source{spec: cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "events"}}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.source
			if s.spec.GVR.Resource == "" {
				s.spec.GVR = pods
			}
			s.cluster = &cluster{servers: servers{version: c.server}}
			if got := s.listsPlainly(); got != c.want {
				t.Errorf("listsPlainly() = %v, want %v", got, c.want)
			}
		})
	}
}

// TestPlainList: the first list is one of the latest version, compressed unless
// the kubeconfig does not want that, in one piece.
func TestPlainList(t *testing.T) {
	for _, compression := range []bool{true, false} {
		t.Run(fmt.Sprintf("compression %v", compression), func(t *testing.T) {
			api := newFakeAPI(t)
			api.noCompression = !compression
			churn(api, rand.New(rand.NewPCG(21, 22)), 2000)
			var mu sync.Mutex
			var asked []string
			api.fault = func(_ http.ResponseWriter, r *http.Request, verb string) bool {
				if verb == "list" {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, r.URL.RawQuery+" "+r.Header.Get("Accept-Encoding"))
				}
				return false
			}
			r := startRig(t, api, Options{})
			r.becomes(t, cache.Live)
			r.equal(t)
			want := " gzip"
			if !compression {
				want = " identity"
			}
			mu.Lock()
			defer mu.Unlock()
			if len(asked) != 1 || asked[0] != want || api.count("watchlist") != 0 {
				t.Errorf("lists %q, streaming lists %d; want one list %q", asked, api.count("watchlist"), want)
			}
		})
	}
}

// TestBrokenListIsStreamed: a plain list that the server cuts off, as it does
// after a minute, is not asked for again and again.
func TestBrokenListIsStreamed(t *testing.T) {
	for name, fault := range map[string]func(w http.ResponseWriter){
		"cut": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}},`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"cut while compressed": func(w http.ResponseWriter) {
			z := gzip.NewWriter(w)
			fmt.Fprint(z, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}},`)
			_ = z.Flush()
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"too late": func(w http.ResponseWriter) { status(w, http.StatusGatewayTimeout, "Timeout") },
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			churn(api, rand.New(rand.NewPCG(23, 24)), 100)
			api.fault = func(w http.ResponseWriter, _ *http.Request, verb string) bool {
				if verb != "list" {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				fault(w)
				return true
			}
			r := startRig(t, api, Options{})
			r.becomes(t, cache.Live)
			r.equal(t)
			if lists, streams := api.count("list"), api.count("watchlist"); lists != 1 || streams != 1 {
				t.Errorf("%d lists and %d streaming lists, want one of each", lists, streams)
			}
		})
	}
}

// TestListFails: what is no fault of the list itself leaves it a plain one.
func TestListFails(t *testing.T) {
	api := newFakeAPI(t)
	churn(api, rand.New(rand.NewPCG(25, 26)), 100)
	left := 3
	api.fault = func(w http.ResponseWriter, _ *http.Request, verb string) bool {
		api.mu.Lock()
		defer api.mu.Unlock()
		if verb != "list" || left == 0 {
			return false
		}
		left--
		status(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		return true
	}
	r := startRig(t, api, Options{})
	r.becomes(t, cache.Live)
	r.equal(t)
	if lists, streams := api.count("list"), api.count("watchlist"); lists != 4 || streams != 0 {
		t.Errorf("%d lists and %d streaming lists, want four and none", lists, streams)
	}
}

// TestStopDuringList: no goroutine is left that a list keeps waiting.
func TestStopDuringList(t *testing.T) {
	api := newFakeAPI(t)
	begun := make(chan struct{})
	api.fault = func(w http.ResponseWriter, r *http.Request, verb string) bool {
		if verb != "list" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[`)
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
		return true
	}
	r := startRig(t, api, Options{})
	<-begun
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func listSource(t *testing.T) *source {
	t.Helper()
	store, err := cache.NewStore(fakeSpec, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &source{spec: fakeSpec, store: store, count: &counters{}, log: slog.New(slog.DiscardHandler)}
}

// TestDecodeList: all items of a list of many batches arrive in their order,
// less those that cannot be decoded, which are counted.
func TestDecodeList(t *testing.T) {
	const items, bad = 3000, 7
	var list strings.Builder
	list.WriteString(`{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[`)
	for n := range items {
		if n > 0 {
			list.WriteByte(',')
		}
		value := strings.Repeat("x", n%1000)
		if n == items/2 {
			value = strings.Repeat("y", 1<<20)
		}
		fmt.Fprintf(&list, `{"metadata":{"namespace":"a","name":"p%06d","resourceVersion":"%d"},"spec":{"value":%q}}`, n, n+1, value)
	}
	for range bad {
		list.WriteString(`,{"metadata":{}}`)
	}
	list.WriteString(`]}`)

	s := listSource(t)
	got, err := s.decodeList(rawjson.NewListReader(iotest.HalfReader(strings.NewReader(list.String())), 0))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != items || s.count.undecoded.Load() != bad {
		t.Fatalf("%d items, %d refused; want %d and %d", len(got), s.count.undecoded.Load(), items, bad)
	}
	for n, o := range got {
		obj := o.(listed).obj
		if want := fmt.Sprintf("p%06d", n); obj.Name() != want {
			t.Fatalf("item %d is %s, want %s", n, obj.Name(), want)
		}
		plain, err := obj.JSON()
		if err != nil || !bytes.Contains(plain, []byte(`"namespace":"a"`)) || len(plain) != obj.Size() {
			t.Fatalf("item %d is %.100s, %v", n, plain, err)
		}
	}

	broken := errors.New("reset")
	half := io.MultiReader(strings.NewReader(list.String()[:list.Len()/2]), iotest.ErrReader(broken))
	if _, err := s.decodeList(rawjson.NewListReader(half, 0)); !errors.Is(err, broken) {
		t.Errorf("decodeList() = %v, want the error of the connection", err)
	}
	if _, err := s.decodeList(rawjson.NewListReader(strings.NewReader(list.String()[:list.Len()/2]), 0)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("decodeList() = %v, want unexpected EOF", err)
	}
}

func TestUnpacked(t *testing.T) {
	text := strings.Repeat(`{"a":1}`, 10000)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(text))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		body []byte
		want string
		err  error
	}{
		"plain":     {[]byte(text), text, nil},
		"packed":    {packed.Bytes(), text, nil},
		"cut":       {packed.Bytes()[:packed.Len()-8], text, io.ErrUnexpectedEOF},
		"empty":     {nil, "", nil},
		"one byte":  {[]byte("{"), "{", nil},
		"only half": {[]byte{0x1f, 0x8b}, "", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			var got []byte
			r, err := unpacked(iotest.OneByteReader(bytes.NewReader(c.body)))
			if err == nil {
				got, err = io.ReadAll(r)
			}
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("unpacked() = %.40q, %v; want %.40q, %v", got, err, c.want, c.err)
			}
		})
	}
}

// TestListedTakesNoMemory: what wraps an object of a list for the Reflector is no memory of its own.
func TestListedTakesNoMemory(t *testing.T) {
	items, obj := make([]runtime.Object, 1), new(cache.Object)
	if n := testing.AllocsPerRun(100, func() { items[0] = listed{obj} }); n != 0 {
		t.Errorf("%v allocations for each object", n)
	}
}

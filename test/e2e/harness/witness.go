package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Witness counts up a number in a ConfigMap, over and over, and reads it from
// informerds. It holds every answer to what its headers say: whatever was
// acknowledged before the age of the answer is in it, one that is live is no older
// than a lease, and the number never falls.
type Witness struct {
	namespace, name string
	cancel          context.CancelFunc
	running         sync.WaitGroup

	mu        sync.Mutex // guards all below
	written   []write
	attempted int
	faults    []string
	readers   []*reading
}

// write is when a number was acknowledged.
type write struct {
	number int
	at     time.Time
}

// reading is what was read from one informerd.
type reading struct {
	informerd *Informerd
	run       int // of informerd: what it showed in the one before does not bind it
	last      int
	answers   map[string]int // by state, or by status if it is not 200
	oldest    float64        // age of an answer
}

const (
	// MostLease is the longest time for which a proof makes a copy live.
	MostLease = 75 * time.Second
	// readEvery is how often each informerd is read.
	readEvery = 50 * time.Millisecond
)

// Witness begins to write through c, with a pause after each write, until the end of
// the test. Writes that fail are repeated.
func (c *Cluster) Witness(tb testing.TB, namespace string, pause time.Duration) *Witness {
	tb.Helper()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	client := c.Dynamic.Resource(gvr).Namespace(namespace)
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"number": "0"}}}
	o.SetGenerateName("witness-")
	created, err := client.Create(tb.Context(), o, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Witness{namespace: namespace, name: created.GetName(), cancel: cancel}
	tb.Cleanup(w.stop)
	w.running.Go(func() {
		for number := 1; wait(ctx, pause); number++ {
			w.mu.Lock()
			w.attempted = number
			w.mu.Unlock()
			patch := fmt.Sprintf(`{"data":{"number":"%d"}}`, number)
			once, cancel := context.WithTimeout(ctx, 5*time.Second)
			_, err := client.Patch(once, w.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			cancel()
			if err == nil {
				w.mu.Lock()
				w.written = append(w.written, write{number, time.Now()})
				w.mu.Unlock()
			}
		}
	})
	return w
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Read begins to read from informerds that show the object already.
func (w *Witness) Read(tb testing.TB, informerds ...*Informerd) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	for _, i := range informerds {
		Eventually(tb, time.Minute, "the object of the witness", func() error {
			return i.Read(w.path(), &Object{})
		})
		r := &reading{informerd: i, run: i.runs, answers: map[string]int{}}
		w.mu.Lock()
		w.readers = append(w.readers, r)
		stop := w.cancel
		w.cancel = func() { cancel(); stop() }
		w.mu.Unlock()
		w.running.Go(func() {
			for wait(ctx, readEvery) {
				w.read(r)
			}
		})
	}
}

func (w *Witness) path() string {
	return "/v1/resources/configmaps/objects/" + w.namespace + "/" + w.name
}

// read reads once. An informerd that does not run answers nothing.
func (w *Witness) read(r *reading) {
	asked := time.Now()
	a, err := r.informerd.Get(w.path())
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	state := a.Header.Get("Informerd-State")
	if a.Status != http.StatusOK {
		r.answers[strconv.Itoa(a.Status)]++
		if a.Status != http.StatusServiceUnavailable {
			w.faultLocked("%d for an object that is there: %.200s", a.Status, a.Body)
		}
		return
	}
	r.answers[state]++
	var o struct{ Data struct{ Number string } }
	number := 0
	if err = json.Unmarshal(a.Body, &o); err == nil {
		number, err = strconv.Atoi(o.Data.Number)
	}
	if err != nil {
		w.faultLocked("it answers %.200s: %v", a.Body, err)
		return
	}
	if number > w.attempted {
		w.faultLocked("%d was never written", number)
	}
	if run := r.informerd.runs; run != r.run {
		r.run, r.last = run, 0
	}
	if number < r.last {
		w.faultLocked("%d after %d, %s", number, r.last, state)
	}
	r.last = number
	age, err := strconv.ParseFloat(a.Header.Get("Informerd-Age"), 64)
	if err != nil {
		if state == "live" {
			w.faultLocked("live without an age: %q", a.Header.Get("Informerd-Age"))
		}
		return
	}
	r.oldest = max(r.oldest, age)
	if state == "live" && age > MostLease.Seconds() {
		w.faultLocked("live with an age of %.3f s", age)
	}
	if least := w.acknowledgedLocked(asked.Add(-time.Duration(age * float64(time.Second)))); number < least {
		w.faultLocked("%s of age %.3f s has %d, and %d was acknowledged before that", state, age, number, least)
	}
}

// acknowledgedLocked is the last number acknowledged before a moment.
func (w *Witness) acknowledgedLocked(before time.Time) int {
	for n := len(w.written) - 1; n >= 0; n-- {
		if w.written[n].at.Before(before) {
			return w.written[n].number
		}
	}
	return 0
}

func (w *Witness) faultLocked(format string, args ...any) {
	if len(w.faults) < 20 {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

func (w *Witness) stop() {
	w.mu.Lock()
	cancel := w.cancel
	w.mu.Unlock()
	cancel()
	w.running.Wait()
}

// Stop ends writing and reading, and fails the test for every answer that was wrong.
func (w *Witness) Stop(tb testing.TB) {
	tb.Helper()
	w.stop()
	for n, r := range w.readers {
		tb.Logf("reader %d: answers %v, the oldest of age %.1f s; %d of %d numbers acknowledged", n, r.answers, r.oldest, len(w.written), w.attempted)
		if len(r.answers) == 0 {
			tb.Errorf("reader %d has no answer", n)
		}
	}
	for _, fault := range w.faults {
		tb.Error(fault)
	}
}

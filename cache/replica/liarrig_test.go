package replica

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inBubble runs a test under a clock of its own, with the times of production. Minutes
// pass in an instant.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	if raceDetector {
		t.Skip("Go's runtime crashes in bubbles under the race detector: make unit-once")
	}
	synctest.Test(t, test)
}

// deceived is a factory on a liar, in a bubble.
type deceived struct {
	*Factory
	l       *liar
	t       *testing.T
	records *records
	stop    func()
}

// specOf is a resource of the liar.
func specOf(resource string) cache.Spec {
	spec := fakeSpec
	spec.Drop = nil
	if resource == "pods" {
		return spec
	}
	spec.GVR = schema.GroupVersionResource{Version: "v1", Resource: resource}
	spec.Kind, spec.Singular, spec.ShortNames = resource, resource, nil
	return spec
}

// deceive starts a factory; it is stopped with the test at the latest. The liar is
// reached until then.
func deceive(t *testing.T, l *liar, options Options, specs ...cache.Spec) *deceived {
	t.Helper()
	listening := l.listen()
	d := &deceived{l: l, t: t, records: &records{}}
	options.Log = slog.New(slog.NewTextHandler(d.records, &slog.HandlerOptions{Level: slog.LevelInfo}))
	d.Factory = NewFactory(options)
	if len(specs) == 0 {
		specs = []cache.Spec{specOf("pods")}
	}
	if err := d.Apply("c", specs); err != nil {
		t.Fatal(err)
	}
	if err := d.Connect("c", l.config()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Log("stopped:", err)
		}
		listening()
	})
	t.Cleanup(d.stop)
	return d
}

// said fails the test unless a message was logged so many times.
func (d *deceived) said(message string, times int) {
	d.t.Helper()
	lines, _ := d.records.since(0)
	n := 0
	for _, line := range lines {
		if strings.Contains(line, `msg="`+message+`"`) {
			n++
		}
	}
	if n != times {
		d.t.Errorf("logged %d times %q, want %d", n, message, times)
	}
}

// records counts lines of the log and when they were written.
type records struct {
	mu    sync.Mutex
	lines []string
	at    []time.Time
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(p))
	r.at = append(r.at, time.Now())
	return len(p), nil
}

// since are the lines after the first n, and when each was written.
func (r *records) since(n int) (lines []string, at []time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines[n:]), slices.Clone(r.at[n:])
}

func (r *records) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

func (d *deceived) of(resource string) *Informer {
	i, err := d.Informer(specOf(resource).Resource)
	if err != nil {
		d.t.Fatal(err)
	}
	return i
}

func (d *deceived) pods() *Informer { return d.of("pods") }

// within waits until something holds.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// becomes waits until all resources are in a state.
func (d *deceived) becomes(limit time.Duration, state cache.State) {
	d.t.Helper()
	within(d.t, limit, "all "+string(state), func() bool {
		for _, i := range d.Informers() {
			if i.View().State != state {
				return false
			}
		}
		return true
	})
}

// equal waits until the pods are those of etcd.
func (d *deceived) equal(limit time.Duration) {
	d.t.Helper()
	var diff string
	deadline := time.Now().Add(limit)
	for {
		if v := d.pods().View(); v.Readable() {
			if diff = cmp.Diff(d.l.truth("pods"), held(v.Store(inside.Cache))); diff == "" {
				return
			}
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("not equal within %v (-etcd +copy):\n%s\n%+v", limit, diff, d.pods().Status())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// isTrue fails unless what a store holds now was the state of etcd at its version, in
// some history.
func (d *deceived) isTrue(resource string, version string, objects map[string]string) {
	d.t.Helper()
	v, err := strconv.Atoi(version)
	if err != nil {
		d.t.Errorf("an answer of version %q", version)
		return
	}
	all := d.l.truths(resource, v)
	for _, truth := range all {
		if maps.Equal(truth, objects) {
			return
		}
	}
	if d.t.Failed() {
		return // the first one says it
	}
	d.t.Errorf("an answer at %s that never was true (-etcd +answer):\n%s", version, cmp.Diff(all[len(all)-1], objects))
}

func describeAll(objects []*cache.Object) map[string]string {
	out := map[string]string{}
	for _, o := range objects {
		out[o.Key().String()] = describe(o)
	}
	return out
}

func numbered(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i))
	}
	return all
}

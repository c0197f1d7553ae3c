package health

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/follow/followtest"
)

// TestAskedAtOnce: questions, changes and the passing of time do not disturb each other.
func TestAskedAtOnce(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	now := noon
	w.index.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(10 * time.Second)
		return now
	}
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 60 {
				a := w.ask(func(q *Query) { q.Statuses = Statuses })
				if n := a.Summary[Good] + a.Summary[Unknown] + a.Summary[Progressing] + a.Summary[Bad]; len(a.Items) > n {
					t.Errorf("%d items of %d objects", len(a.Items), n)
				}
				w.index.Stats(t.Context())
				_, _ = w.index.AskObject(t.Context(), ObjectQuery{Resource: schema.GroupResource{Resource: "pods"}, Key: cache.Key{Namespace: "a", Name: "x1"}, Sight: cache.WholeSight()})
			}
		})
	}
	for n := range 300 {
		phase := []string{"Pending", "Failed", "Succeeded"}[n%3]
		w.Put("pods", fmt.Sprint("a/x", n%7), made("v1 Pod", time.Duration(n)*time.Second, fmt.Sprintf(`"status":{"phase":%q}`, phase)))
	}
	asking.Wait()
}

// TestAnotherKind: a resource whose kind has become another one is judged by the rule of
// that.
func TestAnotherKind(t *testing.T) {
	kind := "Widget"
	pods := followtest.NewResource(t, cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}}, Kind: kind, Namespaced: true, Watch: true})
	next := followtest.NewResource(t, cache.Spec{Resource: pods.Spec().Resource, Kind: "Job", Namespaced: true, Watch: true})
	const job = `{"apiVersion":"batch/v1","kind":%q,"metadata":{"name":"x","namespace":"a","uid":"u","resourceVersion":"5"},"status":{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Complete","status":"True"},{"type":"Ready","status":"False","reason":"Error"}]}}`
	for _, r := range []*followtest.Resource{pods, next} {
		o, err := r.Store().Decode(fmt.Appendf(nil, job, r.Spec().Kind), "batch/v1", r.Spec().Kind)
		if err != nil {
			t.Fatal(err)
		}
		r.Store().Apply("", cache.Added, o)
	}
	at := pods
	x := NewIndex(func() []follow.Resource { return []follow.Resource{at} })
	for want, r := range map[Status]*followtest.Resource{Bad: pods, Good: next} {
		at = r
		a, err := x.Ask(t.Context(), Query{Sight: cache.WholeSight()})
		if err != nil || a.Summary[want] != 1 {
			t.Errorf("as a %s it is %v (%v), want %s", r.Spec().Kind, a.Summary, err, want)
		}
	}
}

// TestAllocations: a pod that is good costs few allocations, and nothing that grows with
// its size.
func TestAllocations(t *testing.T) {
	w := newWorld(t)
	raw, err := w.Decode("pods", "a/b", podBody(t, 1, false)).JSON()
	if err != nil {
		t.Fatal(err)
	}
	judge := JudgeOf(schema.GroupKind{Kind: "Pod"})
	if n := testing.AllocsPerRun(100, func() { judge.Judge(raw, noon) }); n > 10 {
		t.Errorf("%v allocations for a pod of %d bytes, want at most 10", n, len(raw))
	}
}

// TestRevision: it stays as long as an answer does.
func TestRevision(t *testing.T) {
	w := newWorld(t)
	now := noon
	w.index.now = func() time.Time { return now }
	revision := func() uint64 {
		r, err := w.index.Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	last := revision()
	for name, change := range map[string]func(){
		"an object":           func() { w.Put("pods", "a/x", made("v1 Pod", time.Minute, `"status":{"phase":"Pending"}`)) },
		"one that is good":    func() { w.Put("configmaps", "a/x", "") },
		"the time":            func() { now = now.Add(time.Hour) },
		"a state":             func() { w.Resource("nodes").State = cache.Stale },
		"a deletion":          func() { w.Delete("configmaps", "a/x") },
		"all from the outset": func() { w.index.Close() },
	} {
		if name == "the time" || name == "a deletion" {
			w.Put("pods", "a/y", made("v1 Pod", 0, fmt.Sprintf(`"status":{"phase":"Pending","startTime":%q}`, now.Format(time.RFC3339))))
			w.Put("configmaps", "a/x", "")
			last = revision()
		}
		if again := revision(); again != last {
			t.Errorf("before %s: %d, and then %d", name, last, again)
		}
		change()
		next := revision()
		if next == last {
			t.Errorf("%s has changed, and the revision is the same", name)
		}
		last = revision()
	}
}

// TestLeftBehind: a pod that was evicted stays, and another one has its place. What owns
// both is as good as it says, until it lacks one.
func TestLeftBehind(t *testing.T) {
	w := newWorld(t)
	set := func(ready int) {
		w.Put("replicasets.apps", "a/web", made("apps/v1 ReplicaSet", time.Hour, fmt.Sprintf(`"spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":%d,"availableReplicas":%d,"fullyLabeledReplicas":2}`, ready, ready)))
	}
	set(2)
	w.Put("pods", "a/web-1", "{"+ownedBy("replicasets.apps", "apps/v1", "ReplicaSet", "a/web")+`,"status":{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}}`)
	if a := w.ask(); len(a.Items) != 0 || a.Summary[Bad] != 0 {
		t.Errorf("with all its pods ready: %q, %v", a.text(), a.Summary)
	}
	set(1)
	if a := w.ask(); len(a.Items) != 1 || a.Items[0].Reason != "Evicted" {
		t.Errorf("with one of two pods ready: %q", a.text())
	}
}

package server

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestReadAheadAnswers: an answer ahead of the snapshot is, but for its tag, the one that is given
// afterwards, in every shape.
func TestReadAheadAnswers(t *testing.T) {
	targets := []string{}
	for _, base := range []string{"/v1/resources/pods/indexes/node/n1", "/v1/resources/pods/objects?namespace=a", "/v1/resources/pods/objects?index=image:registry.example/shop/web:1.2",
		"/v1/resources/pods/indexes/node/", "/v1/resources/pods/indexes/node/none", "/v1/resources/pods/indexes/nod/n1", "/v1/resources/pods/objects?index=nod:n1",
		"/v1/resources/pods/indexes/label/app=web", "/v1/resources/pods/indexes/namespace/a", "/v1/resources/pods/indexes/owner/x", "/v1/resources/pods/objects?namespace=none"} {
		sep := "?"
		if slices.Contains([]byte(base), '?') {
			sep = "&"
		}
		for _, p := range []string{"", "view=table", "output=csv", "output=yaml", "output=table", "output=ndjson", "view=metadata", "count=true", "groupBy=spec.nodeName", "groupBy=spec.nodeName&agg=count()", "agg=count()",
			"facets=spec.nodeName,metadata.labels.app", "facet=spec.nodeName", "sort=-metadata.name", "sort=metadata.creationTimestamp", "pretty=true", "fields=metadata.name,spec.nodeName", "filter=object.spec.nope%20==%201",
			"filter=health(object)%20==%20%22Good%22", "sort=health", "view=health", "resourceVersion=0", "limit=0", "fieldSelector=spec.nodeName=n1", "fieldSelector=metadata.name=one", "labelSelector=app=web", "labelSelector=app!=web", "explain=false", "watch=false", "namespace=a", "namespace=*"} {
			targets = append(targets, base+sep+p)
		}
	}
	ok := 0
	for _, target := range targets {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := newWorld(t)
			w.pods.set(cache.Warm, "the rest is being read")
			proof := time.Now().Add(-time.Minute)
			w.pods.status.Proof = proof
			want := w.do(t, method, target, "Accept", "*/*")
			w.pods.set(cache.Syncing, "starting")
			asked := 0
			w.pods.ahead = func(q cache.Query) *cache.View {
				pinned := q.Pinned()
				if len(pinned) == 0 {
					return nil
				}
				asked++
				store, err := cache.NewStore(w.pods.spec, cache.StoreOptions{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(store.Close)
				found, err := w.pods.store.Select(t.Context(), cache.Query{Terms: pinned[:1]})
				if err != nil {
					found = &cache.Result{}
				}
				var objects []string
				for _, o := range found.Objects {
					j, _ := o.JSON()
					objects = append(objects, string(j))
				}
				part := &fakeResource{spec: w.pods.spec, store: store}
				part.replace(t, "100", objects...)
				v := &cache.View{Spec: w.pods.spec, State: cache.Warm, Reason: "the rest is being read", Since: then, Proof: proof}
				return v.Hold(store)
			}
			got := w.do(t, method, target, "Accept", "*/*")
			if asked == 0 {
				continue
			}
			if got.Code == 200 {
				ok++
			}
			if got.Code != want.Code || got.Body.String() != want.Body.String() {
				t.Errorf("%s %s: ahead %d %s\nafterwards %d %s", method, target, got.Code, got.Body, want.Code, want.Body)
			}
			for name := range want.Header() {
				if !slices.Contains([]string{"Etag", "Age", "Informerd-Age", "Warning"}, name) && !slices.Equal(got.Header()[name], want.Header()[name]) {
					t.Errorf("%s %s: %s is %q, afterwards %q", method, target, name, got.Header()[name], want.Header()[name])
				}
			}
			if tag := got.Header().Get("ETag"); tag != "" {
				if tag == want.Header().Get("ETag") {
					t.Errorf("%s: the same tag %s", target, tag)
				}
				w.pods.set(cache.Warm, "")
				if again := w.do(t, method, target, "If-None-Match", tag); again.Code == http.StatusNotModified {
					t.Errorf("%s: 304 of the tag of an answer ahead", target)
				}
			}
		}
	}
	if ok < 100 {
		t.Errorf("%d answers were compared", ok)
	}
}

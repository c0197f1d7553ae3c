package replica

import (
	"net/http"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// TestAgeOfASecondTier: what another informerd answers is as old as it says.
func TestAgeOfASecondTier(t *testing.T) {
	asked := time.Now()
	for name, c := range map[string]struct {
		header http.Header
		want   time.Time
	}{
		"an API server":       {http.Header{}, asked},
		"a live informerd":    {http.Header{cache.StateHeader: {"live"}, cache.AgeHeader: {"12.500"}}, asked.Add(-12500 * time.Millisecond)},
		"one without a proof": {http.Header{cache.StateHeader: {"warm"}}, time.Time{}},
	} {
		if got := (&answer{header: c.header}).proof(asked); !got.Equal(c.want) {
			t.Errorf("%s: proven at %v, want %v", name, got, c.want)
		}
	}
	for annotation, want := range map[string]time.Duration{"3.250": 3250 * time.Millisecond, cache.AgeUnknown: 24 * time.Hour, "-1": 24 * time.Hour} {
		if got := toldAge(map[string]string{cache.AgeAnnotation: annotation}); got != want {
			t.Errorf("%q is %v, want %v", annotation, got, want)
		}
	}
	if got := toldAge(nil); got != 0 {
		t.Errorf("no annotation is %v", got)
	}
}

// TestBegins: each namespace begins by itself, and nothing begins anew that was never
// there, or has versions of its own.
func TestBegins(t *testing.T) {
	spec := specOf("pods")
	store, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	store.SetSources([]string{"a", "b"})
	store.Replace("a", nil, "10")
	aggregated := spec
	aggregated.Aggregated = true
	for name, c := range map[string]struct {
		source *source
		want   bool
	}{
		"listed":              {&source{namespace: "a", spec: spec, store: store, after: time.Now()}, false},
		"not listed":          {&source{namespace: "b", spec: spec, store: store, after: time.Now()}, true},
		"the first":           {&source{namespace: "b", spec: spec, store: store}, false},
		"an aggregated API's": {&source{namespace: "b", spec: aggregated, store: store, after: time.Now()}, false},
	} {
		if got := c.source.begins(); got != c.want {
			t.Errorf("%s: begins() = %v", name, got)
		}
	}
}

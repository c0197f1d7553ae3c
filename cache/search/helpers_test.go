package search

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/follow/followtest"
	"github.com/informerd/informerd/cache/internal/brief"
)

// TestMain has every text overwritten that was to be used no longer, so that one that was kept all
// the same is another one.
func TestMain(m *testing.M) {
	brief.Released = func(room []byte) {
		for i := range room {
			room[i] = '?'
		}
	}
	goleak.VerifyTestMain(m)
}

// world is a cluster of live resources, and its Search.
type world struct {
	*followtest.Cluster
	search *Search
}

func newWorld(tb testing.TB, opts Options) *world {
	tb.Helper()
	w := &world{Cluster: &followtest.Cluster{TB: tb}}
	for _, line := range []string{"pods Pod po", "configmaps ConfigMap cm", "secrets Secret", "services Service svc", "namespaces Namespace ns",
		"deployments.apps Deployment deploy", "clusterroles.rbac.authorization.k8s.io ClusterRole"} {
		f := strings.Fields(line)
		w.Add(cache.Spec{Resource: cache.Resource{GVR: schema.ParseGroupResource(f[0]).WithVersion("v1")}, Kind: f[1], Singular: strings.ToLower(f[1]),
			ShortNames: f[2:], Namespaced: f[1] != "Namespace" && f[1] != "ClusterRole", Watch: true})
	}
	w.search = w.newSearch(opts)
	return w
}

func (w *world) newSearch(opts Options) *Search {
	w.TB.Helper()
	s, err := New(func() []follow.Resource { return followtest.Followed[follow.Resource](w.Cluster) }, opts)
	if err != nil {
		w.TB.Fatal(err)
	}
	return s
}

// find asks and returns the hits as "resource id", the best first.
func (w *world) find(question string) ([]string, *Answer) {
	w.TB.Helper()
	return w.findAs(cache.WholeSight(), question)
}

func (w *world) findAs(sight cache.Sight, question string, change ...func(*Query)) ([]string, *Answer) {
	w.TB.Helper()
	terms, err := Parse(question)
	if err != nil {
		w.TB.Fatalf("Parse(%q): %v", question, err)
	}
	q := Query{Terms: terms, Limit: 1000, Highlights: true, Sight: sight}
	for _, c := range change {
		c(&q)
	}
	a, err := w.search.Find(w.TB.Context(), q)
	if err != nil {
		w.TB.Fatalf("Find(%q): %v", question, err)
	}
	var hits []string
	for _, h := range a.Hits {
		hits = append(hits, h.Resource+" "+h.Key.String())
	}
	return hits, a
}

package replica

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// TestRestrictedStartsWarm: whoever may read some namespaces only resumes them,
// and gets the others when the rights come.
func TestRestrictedStartsWarm(t *testing.T) {
	api, db := newFakeAPI(t), newMemory()
	rng := rand.New(rand.NewPCG(31, 32))
	churn(api, rng, 100)
	api.known = []string{"team-a"}
	api.deny = func(_, namespace string) bool { return namespace != "team-a" }
	mine := func() map[string]string {
		truth := api.truth()
		maps.DeleteFunc(truth, func(key, _ string) bool { return !strings.HasPrefix(key, "team-a/") })
		return truth
	}
	first := startRig(t, api, Options{Snapshots: db})
	first.becomes(t, cache.Live)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	churn(api, rng, 50)
	api.set(func(f *fakeAPI) { f.requests = nil })
	second := startRig(t, api, Options{Snapshots: db})
	second.becomes(t, cache.Live)
	eventually(t, "what may be read", func() bool { return maps.Equal(mine(), held(second.pods().store())) })
	if s := second.pods().Status(); s.SnapshotDrops != 0 || api.count("list")+api.count("watchlist") != 0 {
		t.Errorf("drops %d (%s), requests %v; want no drop and no list", s.SnapshotDrops, s.SnapshotReason, api.requests)
	}
	api.set(func(f *fakeAPI) { f.deny = nil })
	second.equal(t)
	second.becomes(t, cache.Live)
}

// TestForbiddenIsAskedFirst: a resource that may not be read in all namespaces is
// not said to be forbidden before it is known that it may be read in none.
func TestForbiddenIsAskedFirst(t *testing.T) {
	api := newFakeAPI(t)
	asked, answer := make(chan struct{}, 100), make(chan struct{})
	api.known = []string{"team-a"}
	api.deny = func(_, namespace string) bool { return namespace != "team-a" }
	api.reviewing = func() {
		asked <- struct{}{}
		<-answer
	}
	r := startRig(t, api, Options{})
	<-asked
	if s := r.pods().Status(); s.State != cache.Syncing || !strings.Contains(s.Reason, "forbidden") {
		t.Errorf("while the rights are asked for the state is %s (%s), want %s and why", s.State, s.Reason, cache.Syncing)
	}
	close(answer)
	r.becomes(t, cache.Live)

	api.set(func(f *fakeAPI) { f.deny, f.reviewing = func(string, string) bool { return true }, nil })
	startRig(t, api, Options{}).becomes(t, cache.Forbidden)
}

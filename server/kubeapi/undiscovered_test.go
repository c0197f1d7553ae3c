package kubeapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/informerd/informerd/cache"
)

// outcome is the code of an answer, 0 for one that has to wait for discovery.
func (w *world) outcome(target, accept string) int {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept", accept)
	rec := httptest.NewRecorder()
	err := w.ask(rec, r)
	if errors.Is(err, cache.ErrNotSynced) {
		return 0
	}
	if err != nil {
		return int(statusOf(err).Code)
	}
	return rec.Code
}

// TestUndiscovered: as long as the cluster has not told which resources it has,
// one that is not known may be there, and a client must not remember that there
// are none.
func TestUndiscovered(t *testing.T) {
	t.Parallel() // it waits, for seconds
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, test := range []struct {
		target, accept      string
		cold, warm, settled int
	}{
		{"/api/v1/namespaces/a/pods/one", typeJSON, 0, 200, 200},
		{"/api/v1/pods", typeJSON, 0, 200, 200},
		{"/api/v1/pods?watch=1&timeoutSeconds=1", typeJSON, 0, 200, 200},
		{"/api/v1/services", typeJSON, 0, 0, 404},
		{"/apis/apps/v1/namespaces/a/deployments/web", typeJSON, 0, 0, 404},
		{"/api", typeJSON, 0, 200, 200},
		{"/apis", typeJSON, 0, 200, 200},
		{"/api", aggregated, 0, 200, 200},
		{"/apis", aggregated, 0, 200, 200},
		{"/api/v1", typeJSON, 0, 200, 200},
		{"/apis/apps", typeJSON, 0, 0, 404},
		{"/apis/apps/v1", typeJSON, 0, 0, 404},
		{"/apis/messaging.example.com/v1", typeJSON, 0, 200, 200},
	} {
		w := newWorld(t)
		known := w.resources
		w.clusters[0].Discovered, w.resources = false, nil
		if got := w.outcome(test.target, test.accept); got != test.cold {
			t.Errorf("GET %s = %d while nothing is known, want %d", test.target, got, test.cold)
		}
		w.resources = known
		if got := w.outcome(test.target, test.accept); got != test.warm {
			t.Errorf("GET %s = %d while only a snapshot is known, want %d", test.target, got, test.warm)
		}
		w.clusters[0].Discovered = true
		if got := w.outcome(test.target, test.accept); got != test.settled {
			t.Errorf("GET %s = %d when all is known, want %d", test.target, got, test.settled)
		}
		w.clusters = nil
		if got := w.outcome(test.target, test.accept); got != 0 {
			t.Errorf("GET %s = %d before there is a cluster", test.target, got)
		}
	}
}

// TestUndiscoveredIsPassedOn: the API server knows what it has.
func TestUndiscoveredIsPassedOn(t *testing.T) {
	w := newWorld(t)
	w.clusters[0].Discovered, w.modes.Passthrough = false, PassReads
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(299, "passed on") })
	if got := w.outcome("/api/v1/services", typeJSON); got != 299 {
		t.Errorf("the answer is %d", got)
	}
}

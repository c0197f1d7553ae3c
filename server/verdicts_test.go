package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// sick is a shop whose pod cannot pull its image, though its Deployment says that all is
// well.
func sick(t testing.TB) *world {
	w := shop(t)
	w.pods.apply(t, cache.Modified, `{"metadata":{"name":"shop-1-x","namespace":"a","uid":"uid-shop-1-x","resourceVersion":"8","labels":{"app":"shop"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"shop-1","uid":"uid-shop-1","controller":true}]},
		"status":{"phase":"Pending","conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}],
		"containerStatuses":[{"name":"main","state":{"waiting":{"reason":"ImagePullBackOff","message":"not found"}}}]}}`)
	const controlled = `{"metadata":{"name":"shop-1","namespace":"a","uid":"uid-shop-1","resourceVersion":"9","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"shop","uid":"uid-shop","controller":true}]},
		"spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"availableReplicas":1,"fullyLabeledReplicas":1}}`
	for _, r := range w.caches.resources {
		switch r.spec.GVR.Resource {
		case "replicasets":
			r.apply(t, cache.Modified, controlled)
		case "deployments":
			r.apply(t, cache.Modified, `{"metadata":{"name":"shop","namespace":"a","uid":"uid-shop","resourceVersion":"9"},"spec":{"replicas":1},
				"status":{"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1,"conditions":[{"type":"Available","status":"True"}]}}`)
		}
	}
	return w
}

func ids(items []healthItem) (all []string) {
	for _, i := range items {
		all = append(all, fmt.Sprintf("%s %s %s", i.ID, i.Status, i.Reason))
	}
	return all
}

func TestHealth(t *testing.T) {
	w := sick(t)
	const deployment = "deployments.apps/a/shop bad ImagePullBackOff"
	for query, want := range map[string][]string{
		"?status=bad":                                    {deployment},
		"?all=true&status=bad":                           {deployment, "replicasets.apps/a/shop-1 bad ImagePullBackOff", "pods/a/shop-1-x bad ImagePullBackOff"},
		"?status=bad&resources=pods":                     {"pods/a/shop-1-x bad ImagePullBackOff"},
		"?status=bad&resources=*.apps&namespace=a":       {deployment},
		"?status=bad&namespace=b":                        nil,
		"?status=bad&labelSelector=app%3Dshop":           {"pods/a/shop-1-x bad ImagePullBackOff"},
		"?status=bad,progressing&limit=1":                {deployment},
		"?status=good&resources=services&namespace=a":    {"services/a/shop good ", "services/a/typo good "},
		"?status=progressing&resources=pods&namespace=b": {"pods/b/three progressing NotReady"},
	} {
		var got healthAnswer
		w.getJSON(t, "/v1/health"+query, &got)
		if !slices.Equal(ids(got.Items), want) || got.Kind != "HealthList" || got.Metadata.Truncated != strings.Contains(query, "limit") {
			t.Errorf("%s: %q, want %q", query, ids(got.Items), want)
		}
	}
	var got healthAnswer
	h := w.getJSON(t, "/v1/health", &got)
	item := got.Items[0]
	if item.Affected != 1 || item.Cause == nil || item.Cause.ID != "pods/a/shop-1-x" || item.Message != "1 of 1 replicas are ready: ImagePullBackOff: container main: not found" ||
		!item.Since.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the first item is %+v of %+v", item, item.Cause)
	}
	if want := (healthCounts{Good: 3, Progressing: 3, Bad: 3, Unknown: 1}); got.Summary != want {
		t.Errorf("summary = %+v, want %+v", got.Summary, want)
	}
	if want := (healthCounts{Progressing: 3, Bad: 1}); got.Resources[slices.IndexFunc(got.Resources, func(r resourceHealthCounts) bool { return r.Resource == "pods" })].healthCounts != want {
		t.Errorf("resources = %+v", got.Resources)
	}
	if want := []unansweredItem{{Resource: "secrets", State: cache.Forbidden, Reason: "secrets is forbidden"}}; !slices.Equal(got.Unanswered, want) {
		t.Errorf("unanswered = %+v, want %+v", got.Unanswered, want)
	}
	if rec := w.get(t, "/v1/health", "If-None-Match", h.Get("ETag")); rec.Code != http.StatusNotModified {
		t.Errorf("code = %d with the tag of the same answer, want 304", rec.Code)
	}
}

func TestHealthOfOne(t *testing.T) {
	w := sick(t)
	var got objectHealth
	w.getJSON(t, "/v1/health/deployments.apps/a/shop", &got)
	if got.Kind != "Health" || got.Item.ID != "deployments.apps/a/shop" || got.Item.Status != "bad" || got.Item.Cause.ID != "pods/a/shop-1-x" {
		t.Errorf("item = %+v", got.Item)
	}
	var children []string
	for _, c := range got.Children {
		children = append(children, c.ID+" "+c.Status+" "+c.Reason)
	}
	if want := []string{"pods/a/shop-1-x bad ImagePullBackOff", "replicasets.apps/a/shop-1 bad ImagePullBackOff"}; !slices.Equal(children, want) {
		t.Errorf("children = %q, want %q", children, want)
	}
	w.getJSON(t, "/v1/health/deployments.apps/a/shop?limit=1", &got)
	if len(got.Children) != 1 || got.Metadata.Remaining != 1 || !got.Metadata.Truncated {
		t.Errorf("with a limit: %+v", got)
	}
	got = objectHealth{}
	w.getJSON(t, "/v1/health/services/a/shop", &got)
	if got.Item.Status != "good" || got.Item.Cause != nil {
		t.Errorf("a Service is %+v", got.Item)
	}
}

func TestHealthMistakes(t *testing.T) {
	w := sick(t)
	for target, want := range map[string]struct {
		code   int
		reason metav1.StatusReason
		text   string
	}{
		"/v1/health?status=sad":                  {400, metav1.StatusReasonBadRequest, `sad\" is not one of: bad, progressing, unknown, good`},
		"/v1/health?status=bad,":                 {400, metav1.StatusReasonBadRequest, "empty part"},
		"/v1/health?limit=0":                     {400, metav1.StatusReasonBadRequest, "from 1 to 5000"},
		"/v1/health?resources=pots":              {404, metav1.StatusReasonNotFound, "did you mean pods"},
		"/v1/health?resources=events":            {400, metav1.StatusReasonBadRequest, "events have no health"},
		"/v1/health?namespace=[":                 {400, metav1.StatusReasonBadRequest, "not a glob"},
		"/v1/health?labelSelector=a==b==c":       {400, metav1.StatusReasonBadRequest, "labelSelector"},
		"/v1/health?all=maybe":                   {400, metav1.StatusReasonBadRequest, "neither true nor false"},
		"/v1/health?watch=true&pretty=true":      {400, metav1.StatusReasonBadRequest, "one line"},
		"/v1/health?cluster=west":                {400, metav1.StatusReasonBadRequest, "west"},
		"/v1/health?cluster=west&cluster=east":   {400, metav1.StatusReasonBadRequest, "given 2 times"},
		"/v1/health?statuses=bad":                {400, metav1.StatusReasonBadRequest, "did you mean status"},
		"/v1/health/deployments.apps/a/gone":     {404, metav1.StatusReasonNotFound, "not found"},
		"/v1/health/deployments.apps/-/shop":     {400, metav1.StatusReasonBadRequest, "namespaced"},
		"/v1/health/secrets/a/s":                 {503, metav1.StatusReasonServiceUnavailable, "forbidden"},
		"/v1/health/deployments.apps/a/shop?q=x": {400, metav1.StatusReasonBadRequest, "unknown parameter"},
	} {
		rec := w.get(t, target)
		if rec.Code != want.code || !strings.Contains(rec.Body.String(), want.text) {
			t.Errorf("%s: %d %s, want %d %s", target, rec.Code, rec.Body, want.code, want.text)
		}
	}
}

// TestHealthStream: the whole answer comes again when it has changed, at most once a
// second, and not otherwise.
func TestHealthStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sick(t)
		written, _ := w.stream(t, "/v1/health?watch=true&status=bad&resources=pods&timeoutSeconds=60")
		time.Sleep(10 * time.Second)
		if n := strings.Count(written(), "event: HEALTH\n"); n != 1 {
			t.Fatalf("told %d times of what did not change", n)
		}
		for n := range 10 { // within a second
			w.pods.apply(t, cache.Modified, pod("a", "one", "x", fmt.Sprint("n", n), 300+n))
		}
		w.pods.apply(t, cache.Deleted, `{"metadata":{"name":"shop-1-x","namespace":"a","uid":"uid-shop-1-x","resourceVersion":"400"}}`)
		time.Sleep(10 * time.Second)
		events := strings.Split(strings.TrimSpace(written()), "event: HEALTH\n")[1:]
		if len(events) != 2 {
			t.Fatalf("%d events, want 2:\n%s", len(events), written())
		}
		var told struct {
			Type   string
			Object healthAnswer
		}
		data, _, _ := strings.Cut(strings.TrimPrefix(events[1], "data: "), "\n")
		if err := json.Unmarshal([]byte(data), &told); err != nil || told.Type != "HEALTH" || len(told.Object.Items) != 0 || told.Object.Summary.Bad != 0 {
			t.Errorf("%+v (%v)", told, err)
		}
	})
}

// TestHealthStreamFollowsRights: what may be seen no longer is out of the next event.
func TestHealthStreamFollowsRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := jane()
		w := newGuarded(t, user)
		written, _ := w.stream(t, "/v1/health?watch=true&timeoutSeconds=60")
		time.Sleep(3 * time.Second)
		before := written()
		if !strings.Contains(before, `"pods/a/one"`) || strings.Contains(before, "hidden") || strings.Contains(before, "three") {
			t.Fatalf("at first:\n%s", before)
		}
		user.Grant(podsResource, cache.NewScope([]string{"b"}, nil))
		time.Sleep(1500 * time.Millisecond)
		if text := strings.TrimPrefix(written(), before); !strings.Contains(text, `"pods/b/three"`) || strings.Contains(text, `"pods/a/one"`) {
			t.Errorf("by other rights:\n%s", text)
		}
	})
}

func TestHealthMetrics(t *testing.T) {
	w := sick(t)
	const bad = `informerd_health_objects{resource=pods,status=bad}`
	if _, there := scrape(t, w)[bad]; there {
		t.Error("counts are there before anybody asked")
	}
	w.getJSON(t, "/v1/health", &healthAnswer{})
	for want, change := range []func(){
		func() {
			w.pods.apply(t, cache.Deleted, `{"metadata":{"name":"shop-1-x","namespace":"a","uid":"uid-shop-1-x","resourceVersion":"400"}}`)
		}, func() {},
	} {
		if got := scrape(t, w)[bad]; got != float64(1-want) {
			t.Errorf("%s is %v, want %d", bad, got, 1-want)
		}
		change()
	}
	if got := scrape(t, w)[`informerd_health_objects{resource=pods,status=progressing}`]; got != 3 {
		t.Errorf("%v pods are progressing, want 3", got)
	}
}

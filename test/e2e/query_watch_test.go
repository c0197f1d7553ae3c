package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/informerd/informerd/test/e2e/harness"
)

// watchable are the questions of all tables that a stream can answer. Order and
// pages are of lists. A stream whose filter asks for the time answers as of its
// beginning, which a list made later cannot be compared with.
func watchable() []question {
	var all []question
	for _, q := range slices.Concat(selections(), manyKinds(), shapes()) {
		grouped := slices.Contains(q.form, "groupBy") || slices.Contains(q.form, "agg")
		if q.ordered || q.clock() {
			continue
		}
		var form []string
		for n := 0; n+1 < len(q.form); n += 2 {
			if name := q.form[n]; name == "output" || name == "pretty" || !grouped && (name == "sort" || name == "limit") {
				continue
			}
			form = append(form, q.form[n:n+2]...)
		}
		q.form = form
		all = append(all, q)
	}
	return all
}

func (q question) clock() bool {
	return slices.ContainsFunc(q.form, func(s string) bool { return strings.Contains(s, "age(") || strings.HasSuffix(s, "now") })
}

// parameter is the value of a parameter, "" if there is none.
func (q question) parameter(name string) string {
	for n := 0; n+1 < len(q.form); n += 2 {
		if q.form[n] == name {
			return q.form[n+1]
		}
	}
	return ""
}

// whole is the event in which the answer is told whole; "" for objects.
func (q question) whole() string {
	switch {
	case q.parameter("groupBy") != "", q.parameter("agg") != "":
		return "GROUPS"
	case q.parameter("facets") != "":
		return "FACETS"
	}
	return ""
}

// TestQueriesWatched holds every question open while objects come, change and go
// everywhere, and compares what each stream made of it with the API server's own
// lists.
func TestQueriesWatched(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	told := newTruth(t, c, i)
	questions := watchable()
	t.Logf("%d questions", len(questions))
	if len(questions) < 60 {
		t.Errorf("only %d questions can be watched", len(questions))
	}
	open := map[int]*harness.Follower{}
	for n, q := range questions {
		open[n] = harness.Follow(t, i, q.url())
	}
	before := map[int]int{} // how many whole answers each told
	for n, f := range open {
		f.Wait(t)
		_, before[n] = f.Whole("")
	}
	newQueryChurn(t, c).run()

	// Each question is compared with lists made after the churn, all with the
	// same lists; what differs yet is compared with the next.
	followers := open
	err := harness.Poll(3*time.Minute, func() error {
		told.anew()
		var differ error
		left := map[int]*harness.Follower{}
		for n, f := range open {
			err := questions[n].sameAs(f, told)
			if _, wholes := f.Whole(""); err == nil && len(f.Changes()) == 0 && wholes == before[n] {
				err = errors.New("it saw no change") // the cluster's controllers may take a moment
			}
			if err != nil {
				left[n] = f
				differ = errors.Join(differ, fmt.Errorf("%s: %w", questions[n].url(), err))
			}
		}
		open = left
		return differ
	})
	if err != nil {
		t.Errorf("%d of %d streams differ from the API server: %v", len(open), len(questions), err)
	}
	for _, f := range followers {
		f.CheckFaults(t)
	}
}

// sameAs compares what was built from a stream with the truth.
func (q question) sameAs(f *harness.Follower, told *truth) error {
	want, err := q.want(told)
	if err != nil {
		return err
	}
	var got []string
	switch q.whole() {
	case "GROUPS":
		answer, _ := f.Whole("GROUPS")
		for _, item := range each(answer, "items") {
			got = append(got, groupLine(item.(map[string]any)))
		}
		return q.compare(got, want)
	case "FACETS":
		answer, _ := f.Whole("FACETS")
		var all []facet
		data, err := json.Marshal(answer["facets"])
		if err == nil {
			err = json.Unmarshal(data, &all)
		}
		if err != nil {
			return err
		}
		return q.compare(facetLines(all), want)
	}
	for _, o := range f.Objects() {
		got = append(got, o.Canonical())
	}
	objects, err := told.called(want)
	if err != nil {
		return err
	}
	for n, o := range objects {
		want[n] = q.shown(o).Canonical()
	}
	q.form = nil // objects are compared whole
	return q.compare(got, want)
}

// called are the objects of names.
func (t *truth) called(names []string) ([]harness.Object, error) {
	all, err := t.of()
	byName := map[string]harness.Object{}
	for _, o := range all {
		byName[name(o)] = o
	}
	objects := make([]harness.Object, len(names))
	for n, name := range names {
		if objects[n] = byName[name]; objects[n] == nil && err == nil {
			err = fmt.Errorf("%s was listed twice and differently", name)
		}
	}
	return objects, err
}

// shown is what the question asks of an object.
func (q question) shown(o harness.Object) harness.Object {
	o = harness.Kept(o)
	if q.parameter("view") == "metadata" {
		return harness.Object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
	}
	if q.parameter("fields") == "" {
		return o
	}
	parts := map[string]any{}
	for _, p := range append(strings.Split(q.parameter("fields"), ","), "apiVersion", "kind") {
		if v := valueAt(o, path(p)...); v != nil {
			_ = unstructured.SetNestedField(parts, v, path(p)...) // p leads through objects only
		}
	}
	return harness.Object(parts)
}

// queryChurn changes objects of several kinds so that they enter and leave what
// the questions select.
type queryChurn struct {
	testing.TB
	cluster *harness.Cluster
	made    []madeObject
}

type madeObject struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// newQueryChurn deletes all that it made at the end of the test.
func newQueryChurn(tb testing.TB, c *harness.Cluster) *queryChurn {
	q := &queryChurn{TB: tb, cluster: c}
	tb.Cleanup(func() {
		for _, m := range q.made {
			q.patch(m, `{"metadata":{"finalizers":null}}`)
			q.delete(m)
		}
	})
	return q
}

var (
	churnedPods   = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	churnedDeploy = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	churnedQueues = schema.GroupVersionResource{Group: "messaging.example.com", Version: "v1", Resource: "queues"}
	churnedKinds  = map[schema.GroupVersionResource]string{
		churnedPods: "Pod", churnedDeploy: "Deployment", churnedQueues: "Queue", configMaps: "ConfigMap",
	}
)

// patiently is the context of one request; those at the end of a test outlive
// its own.
func patiently() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

func (q *queryChurn) create(gvr schema.GroupVersionResource, namespace, name, text string) madeObject {
	q.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		q.Fatalf("%s: %v", text, err)
	}
	m := madeObject{gvr, namespace, fmt.Sprintf("%s-%d", name, fresh())}
	u := &unstructured.Unstructured{Object: o}
	u.SetGroupVersionKind(gvr.GroupVersion().WithKind(churnedKinds[gvr]))
	u.SetName(m.name)
	ctx, cancel := patiently()
	defer cancel()
	if _, err := q.cluster.Dynamic.Resource(gvr).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{}); err != nil {
		q.Fatal(err)
	}
	q.made = append(q.made, m)
	return m
}

func (q *queryChurn) patch(m madeObject, text string, subresource ...string) {
	q.Helper()
	kind := types.StrategicMergePatchType
	if m.gvr == churnedQueues { // custom resources have no merge keys
		kind = types.MergePatchType
	}
	ctx, cancel := patiently()
	defer cancel()
	_, err := q.cluster.Dynamic.Resource(m.gvr).Namespace(m.namespace).
		Patch(ctx, m.name, kind, []byte(text), metav1.PatchOptions{}, subresource...)
	if err != nil && !apierrors.IsNotFound(err) {
		q.Errorf("patch %v with %s: %v", m, text, err)
	}
}

func (q *queryChurn) delete(m madeObject) {
	q.Helper()
	ctx, cancel := patiently()
	defer cancel()
	now := int64(0)
	err := q.cluster.Dynamic.Resource(m.gvr).Namespace(m.namespace).Delete(ctx, m.name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		q.Errorf("delete %v: %v", m, err)
	}
}

func (q *queryChurn) run() {
	for range 3 {
		q.churnPods()
		q.churnDeployments()
		q.churnQueues()
		q.churnDeleting()
	}
}

// churnPods: no scheduler and no kubelet takes these, so they are what is
// written. They go through phases, images, labels and namespaces.
func (q *queryChurn) churnPods() {
	const pod = `{"metadata":{"labels":{"app.kubernetes.io/name":"cart","app.kubernetes.io/part-of":"shop"}},"spec":{"schedulerName":"nobody",
		"containers":[{"name":"a","image":"registry.example.com/shop/cart:1","resources":{"requests":{"cpu":"150m","memory":"600Mi"}}},
		{"name":"b","image":"registry.example.com/mirror/redis:8.0.1","resources":{"requests":{"cpu":"1","memory":"600Mi"}}}]}}`
	stays := q.create(churnedPods, "shop", "churned", pod)
	changes := q.create(churnedPods, "shop", "churned", pod)
	goes := q.create(churnedPods, "payments", "churned", pod)
	q.patch(changes, `{"status":{"phase":"Running"}}`, "status")
	q.patch(goes, `{"status":{"phase":"Running"}}`, "status")
	q.patch(changes, `{"spec":{"containers":[{"name":"a","image":"registry.example.com/other:2"},{"name":"b","image":"registry.example.com/other:3"}]}}`)
	q.patch(changes, `{"metadata":{"labels":{"app.kubernetes.io/name":"tart","app.kubernetes.io/part-of":null}}}`)
	q.patch(stays, `{"metadata":{"annotations":{"example.com/touched":"yes"}}}`)
	q.delete(goes)
}

// churnDeployments: the controllers of the cluster do the rest. There is no node
// for the pods, so that their replicas stay unavailable.
func (q *queryChurn) churnDeployments() {
	const deployment = `{"metadata":{"labels":{"app.kubernetes.io/part-of":"payments"}},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"churned"}},
		"template":{"metadata":{"labels":{"app":"churned"}},"spec":{"nodeSelector":{"example.com/nowhere":"yes"},"containers":[{"name":"a","image":"registry.example.com/shop/churned:1"}]}}}}`
	grows := q.create(churnedDeploy, "payments", "churned", deployment)
	goes := q.create(churnedDeploy, "payments", "churned", deployment)
	q.patch(grows, `{"spec":{"replicas":3}}`)
	q.patch(goes, `{"spec":{"replicas":2}}`)
	q.patch(grows, `{"metadata":{"labels":{"app.kubernetes.io/part-of":"shop"}},"spec":{"replicas":4}}`)
	q.delete(goes)
}

func (q *queryChurn) churnQueues() {
	enters := q.create(churnedQueues, "payments", "churned", `{"spec":{"engine":"nats"}}`)
	leaves := q.create(churnedQueues, "shop", "churned", `{"metadata":{"labels":{"engine":"kafka","app.kubernetes.io/part-of":"shop"}},"spec":{"engine":"kafka"}}`)
	goes := q.create(churnedQueues, "payments", "churned", `{"metadata":{"labels":{"engine":"kafka"}},"spec":{"engine":"kafka"}}`)
	q.patch(enters, `{"metadata":{"labels":{"engine":"kafka"}},"spec":{"engine":"kafka"}}`)
	q.patch(leaves, `{"metadata":{"labels":{"engine":"nats","app.kubernetes.io/part-of":null}},"spec":{"engine":"nats"}}`)
	q.delete(goes)
}

// churnDeleting leaves one object that waits for its finalizer, and lets another
// go.
func (q *queryChurn) churnDeleting() {
	const held = `{"metadata":{"finalizers":["example.com/held"],"labels":{"app.kubernetes.io/part-of":"shop"}}}`
	waits, goes := q.create(configMaps, "shop", "churned", held), q.create(configMaps, "payments", "churned", held)
	q.delete(waits)
	q.delete(goes)
	q.patch(goes, `{"metadata":{"finalizers":null}}`)
}

package server

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
)

// drained is a world with a node "n9", a pod of a budget on it, and one without a controller.
func drained(t *testing.T, user access.Asker) *world {
	w := newWorld(t, func(o *Options) {
		if user != nil {
			o.Access = func(*http.Request) (access.Asker, error) { return user, nil }
		}
	})
	budgets := newResource(t, spec("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true), cache.Live)
	budgets.replace(t, "200", `{"metadata":{"name":"db","namespace":"a","uid":"pdb","resourceVersion":"9"},"spec":{"selector":{"matchLabels":{"app":"db"}}},"status":{"currentHealthy":1,"desiredHealthy":1}}`)
	w.caches.resources = append(w.caches.resources, budgets)
	for _, r := range w.caches.resources {
		if r.spec.GVR.Resource == "nodes" {
			r.apply(t, cache.Added, `{"metadata":{"name":"n9","uid":"n9","resourceVersion":"9"}}`)
		}
	}
	for _, p := range []string{
		`{"metadata":{"name":"db-0","namespace":"a","uid":"db-0","resourceVersion":"9","labels":{"app":"db"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"db","uid":"db","controller":true}]},"spec":{"nodeName":"n9"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`,
		`{"metadata":{"name":"bare","namespace":"b","uid":"bare","resourceVersion":"9"},"spec":{"nodeName":"n9"},"status":{"phase":"Running"}}`,
	} {
		w.pods.apply(t, cache.Added, p)
	}
	return w
}

func TestDrain(t *testing.T) {
	w := drained(t, nil)
	var a drainAnswer
	w.getJSON(t, "/v1/drain/n9", &a)
	if a.Kind != "Drain" || a.Node != "n9" || a.Partial || a.BudgetsUnknown || a.Summary["blocked"] != 1 || a.Summary["lost"] != 1 || len(a.Summary) != 6 ||
		len(a.Items) != 2 || a.Items[0].ID != "pods/a/db-0" || a.Items[0].Controller != "StatefulSet/db" || a.Items[1].Fate != "lost" {
		t.Errorf("%+v", a)
	}
	wantStatus(t, w.get(t, "/v1/drain/none"), 404, metav1.StatusReasonNotFound, `nodes "none" not found`)
	wantStatus(t, w.get(t, "/v1/drain/n9?limit=1"), 400, metav1.StatusReasonBadRequest, "unknown parameter")
}

// TestDrainShowsWhatMayBeSeen: and says that there may be more.
func TestDrainShowsWhatMayBeSeen(t *testing.T) {
	budgets := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	whole := cache.WholeScope()
	for name, test := range map[string]struct {
		user *accesstest.User
		code int
		want string
	}{
		"nothing":        {accesstest.NewUser("jane"), 403, ""},
		"pods alone":     {accesstest.NewUser("jane").Grant(podsResource, whole), 403, ""},
		"nodes alone":    {accesstest.NewUser("jane").Grant(nodesResource, whole), 403, ""},
		"another node":   {accesstest.NewUser("jane").Grant(nodesResource, cache.NewScope(nil, map[string][]string{"": {"n1"}})).Grant(podsResource, whole), 404, ""},
		"no budgets":     {accesstest.NewUser("jane").Grant(nodesResource, whole).Grant(podsResource, whole), 200, "[pods/b/bare lost pods/a/db-0 interrupted] false true"},
		"a namespace":    {accesstest.NewUser("jane").Grant(nodesResource, whole).Grant(podsResource, inA).Grant(budgets, inA), 200, "[pods/a/db-0 blocked] true false"},
		"other budgets":  {accesstest.NewUser("jane").Grant(nodesResource, whole).Grant(podsResource, inA).Grant(budgets, cache.NewScope([]string{"b"}, nil)), 200, "[pods/a/db-0 interrupted] true true"},
		"all that it is": {accesstest.NewUser("jane").Grant(nodesResource, whole).Grant(podsResource, whole).Grant(budgets, whole), 200, "[pods/a/db-0 blocked pods/b/bare lost] false false"},
	} {
		w := drained(t, test.user)
		rec := w.get(t, "/v1/drain/n9")
		if rec.Code != test.code {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
			continue
		}
		if test.code != 200 {
			continue
		}
		var a drainAnswer
		w.getJSON(t, "/v1/drain/n9", &a)
		var got []string
		for _, i := range a.Items {
			got = append(got, i.ID+" "+string(i.Fate))
		}
		if text := fmt.Sprintf("%v %t %t", got, a.Partial, a.BudgetsUnknown); text != test.want {
			t.Errorf("%s: %s, want %s", name, text, test.want)
		}
	}
}

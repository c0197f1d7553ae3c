package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
)

// world is a cluster with pods and budgets.
type world struct{ *followtest.Cluster }

func newWorld(t *testing.T) world {
	w := world{&followtest.Cluster{TB: t}}
	w.Add(cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}, Kind: "Pod", Namespaced: true, Watch: true})
	w.Add(cache.Spec{Resource: cache.Resource{GVR: schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}}, Kind: "PodDisruptionBudget", Namespaced: true, Watch: true})
	return w
}

// pod is one of app, named like its controller "Kind/name" with a dash more; "" has none.
type podOf struct {
	id, node, controller string
	waits                bool   // it is not ready
	more, status         string // JSON
}

func (w world) pod(p podOf) {
	_, name, _ := strings.Cut(p.id, "/")
	app := strings.TrimRight(name, "-0123456789")
	owners := "[]"
	if kind, of, ok := strings.Cut(p.controller, "/"); ok {
		owners = fmt.Sprintf(`[{"apiVersion":"apps/v1","kind":%q,"name":%q,"uid":"uid-%s","controller":true}]`, kind, of, p.controller)
	}
	ready := map[bool]string{false: "True", true: "False"}[p.waits]
	status := p.status
	if status == "" {
		status = fmt.Sprintf(`"phase":"Running","conditions":[{"type":"Ready","status":%q}]`, ready)
	}
	w.Put("pods", p.id, fmt.Sprintf(`{"metadata":{"labels":{"app":%q},"ownerReferences":%s},"spec":{"nodeName":%q%s},"status":{%s}}`, app, owners, p.node, p.more, status))
}

func (w world) budget(id, app, more string, allowed, healthy, desired int) {
	w.Put("poddisruptionbudgets.policy", id, fmt.Sprintf(`{"spec":{"selector":{"matchLabels":{"app":%q}}%s},"status":{"disruptionsAllowed":%d,"currentHealthy":%d,"desiredHealthy":%d}}`, app, more, allowed, healthy, desired))
}

func (w world) readers() Readers {
	whole := cache.WholeScope()
	return Readers{Pods: w.Resource("pods").View().Reader(whole), Budgets: w.Resource("poddisruptionbudgets.policy").View().Reader(whole), Knows: whole.Namespace}
}

func (w world) foresee(t *testing.T, r Readers) (*Answer, []string) {
	t.Helper()
	a, err := Foresee(t.Context(), "n1", r)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	counted := 0
	for _, p := range a.Pods {
		line := fmt.Sprintf("%s %s", p.Fate, p.Key)
		if p.Controller != "" {
			line += " of " + p.Controller
		}
		if p.LosesData {
			line += " with data"
		}
		if p.Reason != "" {
			line += ": " + p.Reason
		}
		all = append(all, line)
	}
	for _, f := range Fates {
		counted += a.Counts[f]
	}
	if counted != len(a.Pods) {
		t.Errorf("counted %v of %d pods", a.Counts, len(a.Pods))
	}
	return a, all
}

func TestForesee(t *testing.T) {
	w := newWorld(t)
	w.pod(podOf{id: "a/web-1", node: "n1", controller: "ReplicaSet/web"})
	w.pod(podOf{id: "a/web-2", node: "n2", controller: "ReplicaSet/web"})
	w.pod(podOf{id: "a/lone-1", node: "n1", controller: "StatefulSet/lone", more: `,"volumes":[{"emptyDir":{}}]`})
	w.pod(podOf{id: "a/pair-1", node: "n1", controller: "ReplicaSet/pair"}) // whose other one is here, too
	w.pod(podOf{id: "a/pair-2", node: "n1", controller: "ReplicaSet/pair"})
	w.pod(podOf{id: "a/half-1", node: "n1", controller: "ReplicaSet/half"}) // whose other one is not ready
	w.pod(podOf{id: "a/half-2", node: "n2", controller: "ReplicaSet/half", waits: true})
	w.pod(podOf{id: "a/bad-1", node: "n1", controller: "ReplicaSet/bad", waits: true}) // which serves nobody anyway
	w.pod(podOf{id: "a/bare", node: "n1"})
	w.pod(podOf{id: "a/agent-1", node: "n1", controller: "DaemonSet/agent", more: `,"volumes":[{"emptyDir":{}}]`})
	w.pod(podOf{id: "a/run-1", node: "n1", controller: "Job/run", waits: true})
	w.pod(podOf{id: "a/done-1", node: "n1", controller: "Job/done", status: `"phase":"Succeeded"`})
	w.pod(podOf{id: "b/elsewhere-1", node: "n2"})
	w.Put("pods", "kube-system/etcd-n1", `{"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[{"kind":"Node","name":"n1","uid":"n","controller":true}]},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}`)
	_, got := w.foresee(t, w.readers())
	want := []string{
		"lost a/bare: nothing makes it again: kubectl drain deletes it with --force only",
		"interrupted a/half-1 of ReplicaSet/half: no other pod of ReplicaSet half is ready on another node",
		"interrupted a/lone-1 of StatefulSet/lone with data: no other pod of StatefulSet lone is ready on another node",
		"interrupted a/pair-1 of ReplicaSet/pair: no other pod of ReplicaSet pair is ready on another node",
		"interrupted a/pair-2 of ReplicaSet/pair: no other pod of ReplicaSet pair is ready on another node",
		"moves a/bad-1 of ReplicaSet/bad",
		"moves a/run-1 of Job/run: its Job begins it anew",
		"moves a/web-1 of ReplicaSet/web",
		"finished a/done-1 of Job/done: it has ended",
		"stays a/agent-1 of DaemonSet/agent: it belongs to a DaemonSet, which runs it on every node",
		"stays kube-system/etcd-n1 of Node/n1: the kubelet makes it from a file on the node",
	}
	if !slices.Equal(got, want) {
		t.Errorf("foreseen:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestBudgets: what the API server refuses to evict, and why.
func TestBudgets(t *testing.T) {
	for name, test := range map[string]struct {
		budgets func(w world)
		pod     podOf
		want    string
	}{
		"none":       {func(w world) {}, podOf{}, "moves "},
		"of another": {func(w world) { w.budget("a/x", "db", "", 0, 1, 1) }, podOf{}, "moves "},
		"of another namespace": {func(w world) { w.budget("b/x", "web", "", 0, 1, 1) }, podOf{},
			"moves "},
		"allows":  {func(w world) { w.budget("a/x", "web", "", 2, 3, 1) }, podOf{}, "moves "},
		"refuses": {func(w world) { w.budget("a/x", "web", "", 0, 2, 2) }, podOf{}, "blocked PodDisruptionBudget x allows no disruption: 2 healthy, 2 needed"},
		"one at a time": {func(w world) {
			w.pod(podOf{id: "a/web-8", node: "n1", controller: "ReplicaSet/web"})
			w.budget("a/x", "web", "", 1, 3, 2)
		}, podOf{}, "moves PodDisruptionBudget x lets 1 go at a time, and 2 are here"},
		"two": {func(w world) {
			w.budget("a/x", "web", "", 5, 5, 1)
			w.budget("a/y", "web", "", 5, 5, 1)
		}, podOf{}, "blocked it has several PodDisruptionBudgets, of which Kubernetes takes one at most: x, y"},
		"not ready, not enough others": {func(w world) { w.budget("a/x", "web", "", 0, 1, 2) }, podOf{waits: true}, "blocked PodDisruptionBudget x allows no disruption: 1 healthy, 2 needed"},
		"not ready, enough others":     {func(w world) { w.budget("a/x", "web", "", 0, 2, 2) }, podOf{waits: true}, "moves "},
		"not ready, always":            {func(w world) { w.budget("a/x", "web", `,"unhealthyPodEvictionPolicy":"AlwaysAllow"`, 0, 1, 2) }, podOf{waits: true}, "moves "},
		"pending":                      {func(w world) { w.budget("a/x", "web", "", 0, 1, 2) }, podOf{status: `"phase":"Pending"`}, "moves "},
		"everything":                   {func(w world) { w.Put("poddisruptionbudgets.policy", "a/x", `{"spec":{"selector":{}},"status":{}}`) }, podOf{}, "blocked PodDisruptionBudget x allows no disruption: 0 healthy, 0 needed"},
		"nothing":                      {func(w world) { w.Put("poddisruptionbudgets.policy", "a/x", `{"spec":{},"status":{}}`) }, podOf{}, "moves "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := test.pod
			p.id, p.node, p.controller = "a/web-1", "n1", "ReplicaSet/web"
			w.pod(p)
			w.pod(podOf{id: "a/web-9", node: "n2", controller: "ReplicaSet/web"})
			test.budgets(w)
			a, _ := w.foresee(t, w.readers())
			for _, p := range a.Pods {
				if got := string(p.Fate) + " " + p.Reason; p.Key.Name == "web-1" && got != test.want {
					t.Errorf("%q, want %q", got, test.want)
				}
			}
		})
	}
}

// TestWithoutBudgets: what is not known is said not to be, and only of namespaces that matter.
func TestWithoutBudgets(t *testing.T) {
	w := newWorld(t)
	w.pod(podOf{id: "a/web-1", node: "n1", controller: "ReplicaSet/web"})
	w.budget("a/x", "web", "", 0, 1, 1)
	r := w.readers()
	r.Budgets = nil
	if a, _ := w.foresee(t, r); !a.BudgetsUnknown || a.Counts[Blocked] != 0 {
		t.Errorf("without budgets: %+v", a)
	}
	r = w.readers()
	r.Knows = func(ns string) bool { return ns == "b" }
	if a, _ := w.foresee(t, r); !a.BudgetsUnknown || a.Counts[Blocked] != 0 {
		t.Errorf("with those of another namespace: %+v", a)
	}
	r.Knows = func(ns string) bool { return ns == "a" }
	if a, _ := w.foresee(t, r); a.BudgetsUnknown || a.Counts[Blocked] != 1 {
		t.Errorf("with those of its namespace: %+v", a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Foresee(ctx, "n1", r); err == nil {
		t.Error("it goes on after nobody waits for it any more")
	}
}

// TestOddNames: a node is no part of a selector.
func TestOddNames(t *testing.T) {
	w := newWorld(t)
	w.pod(podOf{id: "a/web-1", node: `n,x=\y`})
	a, err := Foresee(t.Context(), `n,x=\y`, w.readers())
	if err != nil || len(a.Pods) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err = Foresee(t.Context(), "n", w.readers()); err != nil || len(a.Pods) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

package health

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

var modelKinds = map[string]string{
	"pods": "Pod", "deployments.apps": "Deployment", "replicasets.apps": "ReplicaSet", "jobs.batch": "Job", "cronjobs.batch": "CronJob", "widgets.example.com": "Widget",
	"nodes": "Node", "configmaps": "ConfigMap", "certificates.cert-manager.io": "Certificate",
}

// owners are of which resource those may be that own others.
var owners = map[string][]string{
	"pods": {"replicasets.apps", "jobs.batch", "widgets.example.com", "nodes"}, "replicasets.apps": {"deployments.apps"}, "jobs.batch": {"cronjobs.batch"}, "deployments.apps": {"widgets.example.com"},
}

// step changes one object.
func (w *world) step(r random, m model) {
	resource := pick(r, slices.Sorted(maps.Keys(modelKinds))...)
	if r.IntN(3) == 0 {
		resource = "pods"
	}
	kind := modelKinds[resource]
	id := pick(r, "a/", "b/", "c/") + fmt.Sprint("n", r.IntN(6))
	if kind == "Node" {
		_, id, _ = strings.Cut(id, "/")
	}
	key := resource + " " + id
	if r.IntN(4) == 0 {
		if _, ok := m[key]; ok {
			delete(m, key)
			w.Delete(resource, id)
		}
		return
	}
	spec, status := r.parts(kind)
	switch { // so that history is met
	case kind == "CronJob" && r.IntN(4) > 0:
		status["lastSuccessfulTime"] = r.time()
	case kind == "Job" && r.IntN(3) == 0:
		status["conditions"] = []any{fields{"type": "Failed", "status": "True", "lastTransitionTime": r.time()}}
	case kind == "Job" && r.maybe():
		status["conditions"] = []any{fields{"type": "Complete", "status": "True"}}
	case kind == "Pod" && r.IntN(4) == 0:
		status["phase"] = "Failed"
	case kind == "Pod" && r.maybe(): // most pods are well
		status = fields{"phase": "Running", "conditions": []any{fields{"type": "Ready", "status": "True", "lastTransitionTime": r.time()}}}
	}
	t := &thing{resource: resource, id: id, uid: fmt.Sprint("uid-", key, "-", r.IntN(2)), app: pick(r, "x", "y")}
	t.uid = strings.ReplaceAll(t.uid, " ", "-")
	metadata := fields{"uid": t.uid, "creationTimestamp": r.time(), "labels": fields{"app": t.app}}
	if of := owners[resource]; len(of) > 0 && r.IntN(4) > 0 {
		metadata["ownerReferences"], t.owner, t.holder = r.owner(pick(r, of...), id)
	}
	o := fields{"metadata": metadata, "spec": spec, "status": status}
	raw, err := json.Marshal(o)
	if err != nil {
		w.TB.Fatal(err)
	}
	w.Put(resource, id, string(raw))
	group := schema.ParseGroupResource(resource).Group
	o["apiVersion"], o["kind"] = strings.TrimPrefix(group+"/v1", "/"), kind
	if t.raw, err = json.Marshal(o); err != nil {
		w.TB.Fatal(err)
	}
	m[key] = t
}

// owner is a reference to a controller, and what the model makes of it.
func (r random) owner(resource, of string) (references []any, owner, uid string) {
	id := fmt.Sprint("n", r.IntN(6))
	if resource != "nodes" {
		id = of[:2] + id
	}
	uid = fmt.Sprint("uid-", resource, "-", id, "-", r.IntN(2))
	group := schema.ParseGroupResource(resource).Group
	controller := r.IntN(5) > 0
	references = []any{fields{"apiVersion": strings.TrimPrefix(group+"/v1", "/"), "kind": modelKinds[resource], "name": keyOf(id).Name, "uid": uid, "controller": controller}}
	if !controller || resource == "nodes" {
		return references, "", uid
	}
	return references, resource + " " + id + " " + uid, uid
}

// sight is what somebody may see, as a Sight and as a function.
func (r random) sight() (cache.Sight, func(resource, id string) bool) {
	if r.maybe() {
		return cache.WholeSight(), func(string, string) bool { return true }
	}
	scopes := map[schema.GroupResource]cache.Scope{}
	for resource := range modelKinds {
		switch r.IntN(4) {
		case 0:
			scopes[schema.ParseGroupResource(resource)] = cache.WholeScope()
		case 1:
			scopes[schema.ParseGroupResource(resource)] = cache.NewScope([]string{"a", "b"}, nil)
		case 2:
			scopes[schema.ParseGroupResource(resource)] = cache.NewScope(nil, map[string][]string{"": {"n1", "n2", "n3"}})
		}
	}
	return cache.NewSight(scopes), func(resource, id string) bool { return scopes[schema.ParseGroupResource(resource)].Sees(keyOf(id)) }
}

// query is a question, as a Query and as a function.
func (r random) query() (Query, func(o *told) bool) {
	q := Query{Limit: 1000, All: r.maybe()}
	if r.IntN(3) == 0 {
		q.Statuses = pick(r, []Status{Bad}, []Status{Good, Unknown}, []Status{Progressing}, Statuses)
	}
	if r.IntN(3) == 0 {
		q.Namespaces = []string{"[ab]"}
	}
	var names []string
	if r.IntN(3) == 0 {
		names = pick(r, []string{"pods"}, []string{"deployments.apps", "jobs.batch"}, []string{})
		q.Resources = []schema.GroupResource{}
		for _, n := range names {
			q.Resources = append(q.Resources, schema.ParseGroupResource(n))
		}
	}
	if r.IntN(4) == 0 {
		q.Labels = labels.SelectorFromSet(labels.Set{"app": "x"})
	}
	return q, func(o *told) bool {
		return (q.Labels == nil || o.app == "x") && (q.Namespaces == nil || o.id[0] == 'a' || o.id[0] == 'b') && (q.Resources == nil || slices.Contains(names, o.resource))
	}
}

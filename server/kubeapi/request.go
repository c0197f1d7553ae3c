package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// request is what a path asks for, in the terms of the API server.
type request struct {
	cluster string
	parts   []string // of the path, less the cluster's prefix
	health  bool     // only whether it is answered is asked

	// The rest is for objects only; resource is "" for documents.
	group, version string
	resource       string
	subresource    string
	namespace      string
	name           string
	// byPath: the path begins with /watch/, a form from before the parameter
	// watch existed.
	byPath bool
	watch  bool
}

func (q *request) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: q.group, Version: q.version, Resource: q.resource}
}

// path is that of the API server.
func (q *request) path() string { return "/" + strings.Join(q.parts, "/") }

// healthPaths are asked whether a server answers, as by Headlamp of each of its clusters.
// Without a cluster in front of them they are not the API's.
var healthPaths = []string{"healthz", "livez"}

// parse reads the path of r.
func (a *API) parse(r *http.Request) (*request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	q := &request{}
	named := "/"+parts[0] == ClustersPrefix && len(parts) >= 2
	if named {
		q.cluster, parts = parts[1], parts[2:]
	}
	q.parts = parts
	if err := a.locate(r.Context(), q); err != nil {
		return nil, err
	}
	// Nothing is served at them, and whoever resolves them on the way to the API
	// server would ask for something else than was judged here.
	if slices.Contains(parts, ".") || slices.Contains(parts, "..") {
		return nil, errNoPath(r.URL.Path)
	}
	if q.health = len(parts) == 1 && named && slices.Contains(healthPaths, parts[0]); q.health {
		return q, nil
	}
	if len(parts) == 0 || !slices.Contains(Prefixes, "/"+parts[0]) {
		return nil, errNoPath(r.URL.Path)
	}
	q.objects()
	q.watch = q.resource != "" && isRead(r.Method) && (q.byPath || q.name == "" && asksWatch(r))
	return q, nil
}

// locate checks the cluster that was named, or takes the only one there is.
func (a *API) locate(ctx context.Context, q *request) error {
	clusters := a.Caches.Clusters()
	var names []string
	for _, c := range clusters {
		if c.Name == q.cluster {
			return nil
		}
		names = append(names, c.Name)
	}
	if q.cluster == "" && len(names) == 1 {
		q.cluster = names[0]
		return nil
	}
	if len(names) == 0 {
		return fmt.Errorf("%w: no cluster is known yet", cache.ErrNotSynced)
	}
	// Whoever is nobody in a cluster is not told that there is one.
	names = slices.DeleteFunc(names, func(name string) bool { return access.Stranger(ctx, access.From(ctx), name) })
	return errNoCluster(q.cluster, names)
}

// undiscovered is why a cluster may have resources that are not known, nil if it
// has none: what is not found is absent only then. Ask before looking, see
// cache.ClusterStatus.NotDiscovered.
func (a *API) undiscovered(cluster string) error {
	for _, c := range a.Caches.Clusters() {
		if c.Name == cluster {
			return c.NotDiscovered()
		}
	}
	return nil // locate refuses other clusters
}

// objects reads a path that leads to objects:
//
//	/api/v1[/watch][/namespaces/{ns}]/{resource}[/{name}[/{subresource}...]]
//	/apis/{group}/{version}[/watch][/namespaces/{ns}]/{resource}...
func (q *request) objects() {
	rest := q.parts
	switch {
	case rest[0] == "api" && len(rest) > 2:
		q.version, rest = rest[1], rest[2:]
	case rest[0] == "apis" && len(rest) > 3:
		q.group, q.version, rest = rest[1], rest[2], rest[3:]
	default:
		return
	}
	if rest[0] == "watch" && len(rest) > 1 {
		q.byPath, rest = true, rest[1:]
	}
	if rest[0] == "namespaces" && len(rest) > 2 && rest[2] != "status" && rest[2] != "finalize" {
		q.namespace, rest = rest[1], rest[2:]
	}
	q.resource = rest[0]
	if len(rest) > 1 {
		q.name = rest[1]
	}
	if len(rest) > 2 {
		q.subresource = strings.Join(rest[2:], "/")
	}
}

// asksWatch reports whether the parameters of r ask for a watch.
func asksWatch(r *http.Request) bool { return flag(r, "watch") }

// flag reads a parameter as the API server does: it counts unless it says no.
func flag(r *http.Request, name string) bool {
	values := r.URL.Query()[name]
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// Streams reports whether the answer to r may be a stream, whose parts must
// leave at once: compression would hold them back.
func Streams(r *http.Request) bool {
	return asksWatch(r) || strings.Contains(r.URL.Path, "/watch/") || flag(r, "follow")
}

package server

import (
	"errors"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/graph"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/reply"
)

const (
	maxDepth      = 5
	defaultDepth  = 3
	maxGraphNodes = 5000
)

// graphAnswer is the surroundings of an object. docs/graph.md says what the
// fields mean.
type graphAnswer struct {
	Kind       string           `json:"kind"`
	APIVersion string           `json:"apiVersion"`
	Root       string           `json:"root"`
	Truncated  bool             `json:"truncated"`
	Nodes      []graphNode      `json:"nodes"`
	Edges      []graphEdge      `json:"edges"`
	Unanswered []unansweredItem `json:"unanswered"`
}

type graphNode struct {
	ID        string      `json:"id"`
	Resource  string      `json:"resource"`
	Kind      string      `json:"kind,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	UID       string      `json:"uid,omitempty"`
	State     cache.State `json:"state,omitempty"`
	Depth     int         `json:"depth"`
	Missing   bool        `json:"missing,omitempty"`
	Unknown   bool        `json:"unknown,omitempty"`
	Hub       bool        `json:"hub,omitempty"`
}

type graphEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Edge string `json:"edge"`
	Why  string `json:"why"`
}

// nodeOf shows a node.
func nodeOf(n graph.Node) graphNode {
	return graphNode{
		ID: string(appendNodeID(nil, &n)), Resource: n.Resource, Kind: n.Kind,
		Namespace: n.Key.Namespace, Name: n.Key.Name, UID: n.UID,
		State: n.State, Depth: n.Depth, Missing: n.Missing, Unknown: n.Unknown, Hub: n.Hub,
	}
}

// appendNodeID writes the id of a node: the end of its paths in the API, unless another
// object of the same name has taken them.
func appendNodeID(dst []byte, n *graph.Node) []byte {
	dst = appendObjectID(dst, n.Resource, n.Key)
	if n.UID != "" && (n.Missing || n.Unknown) {
		dst = append(append(dst, '@'), n.UID...)
	}
	return dst
}

func graphAnswerOf(a *graph.Answer) *graphAnswer {
	out := &graphAnswer{
		Kind: "Graph", APIVersion: apiVersion, Truncated: a.Truncated,
		Edges: []graphEdge{}, Unanswered: unansweredItems(a.Unanswered),
	}
	for _, n := range a.Nodes {
		out.Nodes = append(out.Nodes, nodeOf(n))
	}
	out.Root = out.Nodes[0].ID
	for _, e := range a.Edges {
		out.Edges = append(out.Edges, graphEdge{out.Nodes[e.From].ID, out.Nodes[e.To].ID, e.Edge, e.Why})
	}
	return out
}

func (s *Server) getGraph(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	show, err := parseShow(p)
	if err != nil {
		return err
	}
	if err := negotiate(w, r, show.mediaType()); err != nil {
		return err
	}
	res, err := s.lookup(r)
	if err != nil {
		return err
	}
	spec := res.Spec()
	key, err := objectKey(r, spec)
	if err != nil {
		return err
	}
	g, err := s.relations.graph(spec.Cluster)
	if err != nil {
		return err
	}
	q, err := s.parseGraphQuery(p, spec, key, g.Edges())
	if err != nil {
		return err
	}
	missing, err := s.checkKnown(r.Context(), spec.Cluster)
	if err != nil {
		return err
	}
	if q.Sight, err = s.sight(r.Context(), spec.Cluster, cache.List); err != nil {
		return err
	}
	if gr := spec.GVR.GroupResource(); !q.Sight.Of(gr).Touches(key.Namespace) {
		return access.Forbidden(access.From(r.Context()), access.Attributes{
			Cluster: spec.Cluster, Verb: string(cache.List), Group: gr.Group, Version: spec.GVR.Version, Resource: gr.Resource, Namespace: key.Namespace,
		}, "")
	}
	found, err := g.Walk(r.Context(), q)
	if found != nil {
		if !found.View.Readable() {
			return notReadable(w, found.View)
		}
		setFreshness(w.Header(), found.View, found.Version)
	}
	if errors.Is(err, cache.ErrNotFound) {
		return notFound("%s %q not found", spec.Name(), key)
	}
	if err != nil {
		return err
	}
	answer := graphAnswerOf(found)
	answer.Unanswered = append(answer.Unanswered, missing...)
	audit.From(r.Context()).Returned(len(answer.Nodes))
	return show.write(w, r, answer)
}

func (s *Server) parseGraphQuery(p params, spec cache.Spec, key cache.Key, edges []string) (q graph.Query, err error) {
	q = graph.Query{Resource: spec.GVR.GroupResource(), Key: key}
	var errs [6]error
	q.Depth, errs[0] = p.between("depth", defaultDepth, 1, maxDepth)
	q.Limit, errs[1] = p.between("limit", graph.DefaultLimit, 1, maxGraphNodes)
	q.Direction, errs[2] = parseDirection(p)
	q.Kinds, errs[3] = s.resourceNames(p, "kinds", spec.Cluster)
	q.Through, errs[4] = s.resourceNames(p, "through", spec.Cluster)
	q.Edges, errs[5] = parseEdges(p, edges)
	return q, firstError(errs[:])
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func parseDirection(p params) (graph.Direction, error) {
	v, err := p.oneOf("direction", "both", "both", "in", "out")
	return map[string]graph.Direction{"in": graph.In, "out": graph.Out}[v], err
}

func parseEdges(p params, known []string) ([]string, error) {
	names, err := p.words("edges")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, invalid("edges", "there are no edges %q; there are: %s", name, strings.Join(known, ", "))
		}
	}
	return names, err
}

func (s *Server) listDangling(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	cluster, err := s.clusterOf(r.Context(), p)
	if err != nil {
		return err
	}
	var errs [4]error
	var q graph.DanglingQuery
	q.Namespaces, errs[0] = parseNamespaces(p)
	q.Kinds, errs[1] = s.resourceNames(p, "kinds", cluster)
	q.Limit, errs[2] = p.count("limit")
	pretty, err := p.flag("pretty")
	if errs[3] = err; firstError(errs[:]) != nil {
		return firstError(errs[:])
	}
	g, err := s.relations.graph(cluster)
	if err != nil {
		return err
	}
	missing, err := s.checkKnown(r.Context(), cluster)
	if err != nil {
		return err
	}
	if q.Sight, err = s.sight(r.Context(), cluster, cache.List); err != nil {
		return err
	}
	found, err := g.Dangling(r.Context(), q)
	if err != nil {
		return err
	}
	audit.From(r.Context()).Returned(len(found.Items))
	list, err := newDanglingParts(found, missing)
	switch {
	case err != nil:
		return err
	case !pretty && isUnstored(r):
		return writeOut(w, r, typeJSON, list.write)
	}
	body := list.json()
	if pretty {
		if body, err = reply.AppendIndented(nil, body, ""); err != nil {
			return err
		}
	}
	return writeTaggedBody(w, r, body)
}

// isUnstored reports whether the one who asks keeps no answer, and so needs no tag of it: one
// that is a tag of all that is answered is known only when all of it is made.
func isUnstored(r *http.Request) bool {
	for _, value := range r.Header.Values("Cache-Control") {
		for directive := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(directive), "no-store") {
				return r.Header.Get("If-None-Match") == ""
			}
		}
	}
	return false
}

// parseNamespaces reads globs over namespaces.
func parseNamespaces(p params) ([]string, error) {
	for _, ns := range p.Values["namespace"] {
		if ns == "" {
			return nil, invalid("namespace", "empty; leave it out for all namespaces")
		}
		if _, err := path.Match(ns, ""); err != nil {
			return nil, invalid("namespace", "%q is not a glob: %v", ns, err)
		}
	}
	return p.Values["namespace"], nil
}

// writeTagged answers with one value and a tag of what it says.
func writeTagged(w http.ResponseWriter, r *http.Request, value any, pretty bool) error {
	body, err := reply.JSON(value, pretty)
	if err != nil {
		return err
	}
	return writeTaggedBody(w, r, body)
}

// writeTaggedBody is writeTagged of a value as JSON.
func writeTaggedBody(w http.ResponseWriter, r *http.Request, body []byte) error {
	if notModified(w, r, bodyTag(r, body)) {
		return nil
	}
	return writeBody(w, r, append(body, '\n'))
}

func bodyTag(r *http.Request, body []byte) string {
	return etag(r, strconv.FormatUint(xxhash.Sum64(body), 16))
}

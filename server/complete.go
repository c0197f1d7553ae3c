package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/complete"
	"github.com/informerd/informerd/cache/rawjson"
)

const maxProposals = 1000

// completionList are proposals. Sampled is absent where an index answered.
type completionList struct {
	list[completionItem]
	Sampled *sampleOf `json:"sampled,omitempty"`
}

type completionItem struct {
	Value   string `json:"value"`
	Kind    string `json:"kind,omitempty"`
	Objects int    `json:"objects"`
}

// sampleOf says how many objects were looked at, and out of how many.
type sampleOf struct {
	Objects int `json:"objects"`
	Of      int `json:"of"`
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	what, err := p.oneOf("for", "", "resources", "paths", "values")
	if err == nil && what == "" {
		err = invalid("for", "required; one of: resources, paths, values")
	}
	if err != nil {
		return err
	}
	q := complete.Query{Prefix: p.Get("prefix")}
	var errs [3]error
	var pretty bool
	q.Limit, errs[0] = p.between("limit", complete.DefaultLimit, 1, maxProposals)
	pretty, errs[1] = p.flag("pretty")
	errs[2] = checkCompletion(p, what)
	if err := firstError(errs[:]); err != nil {
		return err
	}
	clusters, err := s.clustersAsked(r.Context(), p)
	if err != nil {
		return err
	}
	var found []*complete.Answer
	var lacks, away error // why a cluster of several has nothing to propose
	err = askEach(r.Context(), clusters, func(unansweredItem) {}, func(cluster string) error {
		out := w
		if len(clusters) > 1 {
			out = aside{w, http.Header{}}
		}
		some, err := s.completeIn(out, r, cluster, what, q)
		if isAway(err) {
			away = err
		}
		if len(clusters) > 1 && (isOwn(err) || isUnknownResource(err)) {
			lacks = err
			return nil
		}
		if err == nil {
			found = append(found, some)
		}
		return err
	})
	if err == nil && len(found) == 0 {
		err = cmp.Or(away, lacks) // one that does not answer may have it
	}
	if err != nil {
		return err
	}
	return writeTagged(w, r, completionAnswer(q.Merge(found, what == "values")), pretty)
}

// isUnknownResource reports whether a cluster has no resource that a parameter names.
func isUnknownResource(err error) bool {
	bad, ok := errors.AsType[*cache.InvalidError](err)
	return ok && bad.Parameter == "resource"
}

// aside takes headers of one of several answers, which say nothing of all.
type aside struct {
	http.ResponseWriter
	header http.Header
}

func (a aside) Header() http.Header { return a.header }

// completeIn completes from what one cluster has.
func (s *Server) completeIn(w http.ResponseWriter, r *http.Request, cluster, what string, q complete.Query) (*complete.Answer, error) {
	if what == "resources" {
		return s.completeResources(r.Context(), cluster, q)
	}
	return s.completeObjects(w, r, cluster, q)
}

// checkCompletion wants what is needed for a completion, and nothing else.
func checkCompletion(p params, what string) error {
	needs := map[string][]string{"paths": {"resource"}, "values": {"resource", "path"}}[what]
	for _, name := range []string{"resource", "path"} {
		needed := false
		for _, n := range needs {
			needed = needed || n == name
		}
		switch {
		case needed && p.Get(name) == "":
			return invalid(name, "required with for=%s", what)
		case !needed && p.Has(name):
			return invalid(name, "not possible together with for=%s", what)
		}
	}
	return nil
}

func (s *Server) completeResources(ctx context.Context, cluster string, q complete.Query) (*complete.Answer, error) {
	if _, err := s.checkKnown(ctx, cluster); err != nil {
		return nil, err
	}
	var views []*cache.View
	for _, r := range s.relations.resources(cluster) {
		views = append(views, r.View())
	}
	sight, err := s.sight(ctx, cluster, cache.List)
	if err != nil {
		return nil, err
	}
	return complete.Resources(views, sight, q), nil
}

// completeObjects completes from the objects of a resource.
func (s *Server) completeObjects(w http.ResponseWriter, r *http.Request, cluster string, q complete.Query) (*complete.Answer, error) {
	p := paramsOf(r)
	res, err := s.Caches.Lookup(cluster, p.Get("resource"))
	if errors.Is(err, cache.ErrUnknownResource) {
		return nil, invalid("resource", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	recordResource(r, res.Spec())
	readable, err := readableOf(w, r, res, nil, cache.List)
	if err != nil {
		return nil, err
	}
	setFreshness(w.Header(), readable.view, readable.reader.Version())
	if !p.Has("path") {
		possible, err := s.schemas.of(r.Context(), readable.view.Spec)
		if err != nil {
			s.log.Debug("no schema to complete paths from", "gvr", readable.view.Spec.Resource.String(), "err", err)
		}
		return complete.Paths(r.Context(), readable.reader, possible, q)
	}
	path, err := rawjson.ParsePath(p.Get("path"))
	if err != nil {
		return nil, invalid("path", "%v", err)
	}
	return complete.Values(r.Context(), readable.reader, path, q)
}

func completionAnswer(found *complete.Answer) *completionList {
	a := &completionList{list: list[completionItem]{Kind: "CompletionList", APIVersion: apiVersion, Items: []completionItem{}}}
	a.Metadata.Truncated = found.Truncated
	for _, i := range found.Items {
		a.Items = append(a.Items, completionItem(i))
	}
	if found.Objects > 0 {
		a.Sampled = &sampleOf{found.Sampled, found.Objects}
	}
	return a
}

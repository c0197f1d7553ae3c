package server

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/reply"
)

func (s *Server) listObjects(w http.ResponseWriter, r *http.Request) error {
	if s.asksSeveral(r) {
		return s.listOfSeveral(w, r)
	}
	q, err := parseQuery(paramsOf(r))
	if err != nil {
		return err
	}
	return s.answer(w, r, q, func() (*viewed, error) { return s.lookupFor(w, r, q) })
}

// answer gives the objects that q selects of the resource in the path, as a list or as a
// stream. find finds it, and refuses what may not be seen.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, q *query, find func() (*viewed, error)) error {
	switch {
	case q.watch && q.summary.Grouped:
		return s.watchGroups(w, r, q, func() ([]*viewed, error) {
			res, err := find()
			return []*viewed{res}, err
		})
	case q.watch:
		return s.watchObjects(w, r, q, find)
	}
	if err := negotiate(w, r, q.output.mediaType()); err != nil {
		return err
	}
	res, err := find()
	if err != nil {
		return err
	}
	if err := checkNamespaces(w, res, q.Namespaces); err != nil {
		return err
	}
	if err = waitVersion(r.Context(), res.reader, q.version, q.wait); q.version != "" {
		err = afterWait(r.Context(), err, res.stillSeen)
	}
	if err != nil {
		return err
	}
	// A client only has the tag of an answer that was whole, and would be whole
	// again. A page that continues has none: its token expires, and a client
	// sent back to it by 304 would never get another.
	setFreshness(w.Header(), res.view, res.reader.Version())
	if q.token == "" && !q.explain && !q.timely() && notModified(w, r, revisionTag(r, res, res.reader.Revision())) {
		return nil
	}
	if !q.needsAll() {
		page, err := res.reader.Page(r.Context(), q.Query, q.limit, q.token)
		if err != nil {
			return err
		}
		return s.writePage(w, r, res, q, page, nil)
	}
	found, err := res.reader.Select(r.Context(), q.Query)
	if err != nil {
		return err
	}
	setFreshness(w.Header(), res.view, found.Version)
	return s.answerFound(w, r, res, q, found)
}

// needsAll reports whether it takes more than the objects of one page to answer.
func (q *query) needsAll() bool {
	return q.token == "" && (q.summary.Grouped || len(q.summary.Facets) > 0)
}

// answerFound shapes what was found of one resource.
func (s *Server) answerFound(w http.ResponseWriter, r *http.Request, res *viewed, q *query, found *cache.Result) error {
	if q.explain {
		return explainOne(w, r, q, explain(res, found, len(found.Objects)))
	}
	if q.summary.Grouped {
		setAnswered(w.Header(), r, res, q, found)
		defer found.Release()
		l, err := q.groupList(r.Context(), foundOf(res, found), listMeta{ResourceVersion: found.Version, FilterErrors: faultsOf(found.Faults)})
		if err != nil {
			return err
		}
		return writeList(w, r, l, q.groupView())
	}
	facets, err := q.facets(r.Context(), foundOf(res, found))
	if err != nil {
		return err
	}
	return s.writePage(w, r, res, q, res.reader.FirstPage(q.Query, found, q.limit), facets)
}

func (s *Server) writePage(w http.ResponseWriter, r *http.Request, res *viewed, q *query, page *cache.Page, facets []facet) error {
	if q.explain {
		return explainOne(w, r, q, explain(res, &page.Result, len(page.Objects)+page.Remaining))
	}
	setAnswered(w.Header(), r, res, q, &page.Result)
	if page.Continue != "" || q.token != "" {
		w.Header().Del("ETag")
	}
	l := objectList(r.Context(), res.view, page, q.view)
	l.Facets = facets
	if q.table {
		if err := s.rows(r.Context(), l, page.Objects, func(*cache.Object) *viewed { return res }, false, q.view); err != nil {
			return err
		}
	}
	return writeList(w, r, l, q.view)
}

// setAnswered says in headers what an answer is of.
func setAnswered(h http.Header, r *http.Request, res *viewed, q *query, found *cache.Result) {
	setFreshness(h, res.view, found.Version)
	setFaults(h, found.Faults)
	h.Del("ETag")
	if !q.timely() {
		h.Set("ETag", revisionTag(r, res, found.Revision))
	}
}

// revisionTag is of an answer about all that may be seen of a resource.
func revisionTag(r *http.Request, res *viewed, revision uint64) string {
	return etag(r, fmt.Sprintf("%s-%d%s", res.reader.Epoch(), revision, res.mark()))
}

func (s *Server) getObject(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	version, err := parseVersion(p)
	if err != nil {
		return err
	}
	wait, err := p.wait()
	if err != nil {
		return err
	}
	if err := checkTimeout(p); err != nil {
		return err
	}
	v, err := parseView(p)
	if err != nil {
		return err
	}
	if v.table {
		return invalid("view", "table is of lists")
	}
	if v.lines {
		return invalid("pretty", "items is of lists")
	}
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	found, err := s.lookup(r)
	if err != nil {
		return err
	}
	key, err := objectKey(r, found.Spec())
	if err != nil {
		return err
	}
	res, err := seeObject(r.Context(), found, key)
	if err != nil {
		return err
	}
	if res.reader == nil {
		return notReadable(w, res.view)
	}
	for _, m := range res.view.Missing {
		if m.Namespace == key.Namespace {
			return namespaceMissing(w, res.view, m)
		}
	}
	if err = waitVersion(r.Context(), res.reader, version, wait); version != "" {
		err = afterWait(r.Context(), err, func(ctx context.Context) error {
			_, err := seeObject(ctx, found, key) // other rights that show it, too, give the same answer
			return err
		})
	}
	if err != nil {
		return err
	}
	object, at, revision, ok := res.reader.GetAt(key)
	setFreshness(w.Header(), res.view, at)
	if !ok && !res.reader.Covers(key.Namespace) {
		return statusError(withCause(reply.Failure(http.StatusNotFound, metav1.StatusReasonNotFound,
			fmt.Sprintf("%s %q is not here and may exist: the configuration selects only some of them", res.view.Spec.Name(), key)), "NotWatched", ""))
	}
	if !ok {
		return notFound("%s %q not found", res.view.Spec.Name(), key)
	}
	if notModified(w, r, objectTag(r, res, object, revision)) {
		return nil
	}
	body, err := (&encoder{view: v}).append(nil, 0, object)
	if err != nil {
		return err
	}
	if v.pretty {
		if body, err = reply.AppendIndented(nil, body, ""); err != nil {
			return err
		}
	}
	audit.From(r.Context()).Returned(1)
	return writeBody(w, r, append(body, '\n'))
}

// objectTag is made of the object's own version: it outlives changes of other
// objects. Those of some aggregated API servers have none.
func objectTag(r *http.Request, res *viewed, o *cache.Object, revision uint64) string {
	if o.ResourceVersion() == "" {
		return revisionTag(r, res, revision)
	}
	return etag(r, fmt.Sprintf("%s-%s-%s", res.reader.Epoch(), o.UID(), o.ResourceVersion()))
}

// seeObject is see for one object, which may be got or listed. The answer where it may
// not is the same whether it exists or not.
func seeObject(ctx context.Context, res Resource, key cache.Key) (*viewed, error) {
	for _, verb := range []cache.Verb{cache.List, cache.Get} {
		v, err := see(ctx, res, verb)
		if err != nil {
			return nil, err
		}
		if v.scope.Sees(key) {
			return v, nil
		}
	}
	who := access.From(ctx)
	return nil, access.Forbidden(who, attributes(res.Spec(), cache.Get, key), "")
}

// objectKey reads the last two parts of the path; the namespace of objects at
// cluster scope is written "-".
func objectKey(r *http.Request, spec cache.Spec) (cache.Key, error) {
	namespace, err := pathValue(r, "namespace")
	if err != nil {
		return cache.Key{}, err
	}
	name, err := pathValue(r, "name")
	if err != nil {
		return cache.Key{}, err
	}
	if spec.Namespaced && namespace == "-" {
		return cache.Key{}, invalid("path", "%s are namespaced: name the namespace instead of -", spec.Name())
	}
	if !spec.Namespaced && namespace != "-" {
		return cache.Key{}, invalid("path", "%s have no namespace: write objects/-/%s", spec.Name(), name)
	}
	if namespace == "-" {
		namespace = ""
	}
	return cache.Key{Namespace: namespace, Name: name}, nil
}

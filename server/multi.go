package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/summary"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/reply"
)

// kindState says of one resource of a question whether it was answered, and how
// fresh the answer is.
type kindState struct {
	Cluster         string      `json:"cluster,omitempty"`
	Resource        string      `json:"resource"`
	Kind            string      `json:"kind,omitempty"`
	State           cache.State `json:"state"`
	Answered        bool        `json:"answered"`
	Reason          string      `json:"reason,omitempty"`
	ResourceVersion string      `json:"resourceVersion,omitempty"`
	Objects         int         `json:"objects"`

	FilterErrors *filterErrors `json:"filterErrors,omitempty"`

	missing string // namespaces of it that are not answered
}

// namer names resources, with their cluster where states are of several.
func namer(states []kindState) func(kindState) string {
	several := slices.ContainsFunc(states, func(s kindState) bool { return s.Cluster != states[0].Cluster })
	return func(s kindState) string {
		if several {
			return s.Cluster + "/" + s.Resource
		}
		return s.Resource
	}
}

func newKindState(view *cache.View) kindState {
	var missing []string
	for _, m := range view.Missing {
		missing = append(missing, m.Namespace)
	}
	return kindState{
		Cluster: view.Spec.Cluster, Resource: view.Spec.Name(), Kind: view.Spec.Kind,
		State: view.State, Reason: view.Reason, missing: strings.Join(missing, " "),
	}
}

// queryKinds answers one question about many resources.
func (s *Server) queryKinds(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	q, err := parseQuery(p)
	if err != nil {
		return err
	}
	if err := q.nameKinds(p); err != nil {
		return err
	}
	q.severalClusters = true
	q.Reads = q.reads()
	switch {
	case q.watch && q.summary.Grouped:
		return s.watchGroups(w, r, q, func() ([]*viewed, error) {
			return s.see(r.Context(), p, q)
		})
	case q.watch:
		return s.watchKinds(w, r, q)
	}
	if err := negotiate(w, r, q.output.mediaType()); err != nil {
		return err
	}
	clusters, err := s.clustersAsked(r.Context(), p)
	if err != nil {
		return err
	}
	missing := s.undiscoveredKinds(r.Context(), clusters, patternsOf(p))
	views, err := s.seeEach(r.Context(), p, q, func(cluster string, err error) {
		missing = append(missing, untold(r.Context(), cluster, unknownResources, err))
	})
	if err == nil {
		err = refusedAll(views, q.Namespaces)
	}
	if err != nil {
		return err
	}
	if q.token != "" {
		return s.nextKinds(w, r, q, views)
	}
	tag := kindsTag(r, views)
	if !q.timely() && !q.explain && missing == nil && notModified(w, r, tag) {
		return nil
	}
	a, err := askKinds(r.Context(), views, q.Query, q.table || q.named != 0, len(clusters) > 1)
	if err != nil {
		return err
	}
	a.states = append(a.states, missing...)
	setKinds(w.Header(), a.states)
	if q.timely() || q.explain {
		w.Header().Del("ETag")
	}
	return s.answerKinds(w, r, q, views, a)
}

// refusedAll is why nothing of what is asked for may be seen of any resource; nil if
// something may. It comes before what else is wrong with a question, and before tags and
// tokens.
func refusedAll(kinds []*viewed, namespaces []string) (err error) {
	for _, k := range kinds {
		if err = k.refused(namespaces); err == nil {
			return nil
		}
	}
	return err
}

// answerKinds shapes what was found.
func (s *Server) answerKinds(w http.ResponseWriter, r *http.Request, q *query, kinds []*viewed, a *kindsAnswer) error {
	if q.explain {
		return writeExplanation(w, r, a.plans, a.states, q.pretty)
	}
	if q.summary.Grouped {
		l, err := q.groupList(r.Context(), a.foundObjects, listMeta{Resources: a.states})
		if err != nil {
			return err
		}
		return writeList(w, r, l, q.groupView())
	}
	facets, err := q.facets(r.Context(), a.foundObjects) // before they are put in another order
	if err != nil {
		return err
	}
	if len(a.kinds) > 1 {
		if err := q.Sort.Sort(r.Context(), a.objects); err != nil {
			return err
		}
	}
	objects, results := a.objects, a.results
	a.objects, a.ends, a.plans, a.results = nil, nil, nil, nil // not kept for further pages
	part := s.pager.First(kindsQuestion(r, q, kinds), a, objects, q.limit)
	if part.Continue != "" {
		w.Header().Del("ETag")
	}
	l, err := s.kindsList(r.Context(), part, results, q.view)
	if err != nil {
		return err
	}
	l.Facets = facets
	return writeList(w, r, l, q.view)
}

func (s *Server) nextKinds(w http.ResponseWriter, r *http.Request, q *query, kinds []*viewed) error {
	part, err := s.pager.Next(r.Context(), kindsQuestion(r, q, kinds), q.token, q.limit)
	if err != nil {
		return err
	}
	setKinds(w.Header(), part.About.states)
	l, err := s.kindsList(r.Context(), part, nil, q.view)
	if err != nil {
		return err
	}
	return writeList(w, r, l, q.view)
}

// kindsQuestion is what continue tokens are of.
func kindsQuestion(r *http.Request, q *query, kinds []*viewed) cache.Question {
	who := access.From(r.Context())
	return cache.Question{Query: kindsToken(r, q), Scope: scopeOf(who, kinds), Owner: who.Name()}
}

// scopeOf is the same for those who see the same of the same resources, and for nobody
// else. One that is seen as a whole is written like the others: when it may not be seen
// any more, it is not among kinds. Who sees everything for ever does so of resources that
// come and go meanwhile, too.
func scopeOf(who access.Asker, kinds []*viewed) string {
	if access.Settled(who) {
		return ""
	}
	var texts []string
	for _, k := range kinds {
		spec := k.view.Spec.Resource
		texts = append(texts, spec.Cluster, spec.GVR.Group, spec.GVR.Version, spec.GVR.Resource, k.scope.Digest())
	}
	key := access.KeyOf(texts...)
	return hex.EncodeToString(key[:])
}

func kindsToken(r *http.Request, q *query) string {
	p := paramsOf(r)
	token := q.Token() + "/" + strings.Join(p.Values["cluster"], ",") + "/" + p.Get("resources")
	if q.table {
		token += "/table"
	}
	return token
}

// kindsList is a list of the objects of a page, which are the first of results, if it has any.
func (s *Server) kindsList(ctx context.Context, part *cache.Part[*kindsAnswer], results []*cache.Result, v view) (*listing, error) {
	a := part.About
	enc := newEncoder(v, !slices.ContainsFunc(a.kinds, func(k *viewed) bool { return k.view.Spec.Aggregated }))
	if v.named != 0 {
		enc.spec = func(o *cache.Object) *cache.Spec { return &a.kindOf(o).view.Spec }
	} else if len(a.kinds) == 1 && len(results) == 1 { // of several, the order is another
		enc.within = results[0].Within(v.paths)
	}
	show := itemsOf(ctx, enc, part.Objects)
	l := &listing{
		Kind: "List", APIVersion: "v1",
		Metadata: listMeta{Continue: part.Continue, Resources: a.states},
		count:    len(part.Objects),
		item: func(dst []byte, i int) ([]byte, error) {
			at := len(dst)
			dst, err := show(dst, i)
			if err == nil && a.clusters {
				dst = insertCluster(dst, at, a.kindOf(part.Objects[i]).view.Spec.Cluster)
			}
			return dst, err
		},
	}
	if v.table {
		if err := s.rows(ctx, l, part.Objects, a.kindOf, a.clusters, v); err != nil {
			return nil, err
		}
	}
	if !v.uncounted {
		l.Metadata.Remaining = part.Remaining
	}
	return l, nil
}

// kindsAnswer is what several resources hold of what was asked.
type kindsAnswer struct {
	states []kindState
	plans  []explanation
	// foundObjects are by resource, then in the order of the query. Their kinds are those
	// of states, less what is not known yet.
	foundObjects
	clusters bool // several were asked
	// from says which of several kinds an object is of, where that is needed: for tables, for
	// what is answered without unpacking objects, and where several clusters were asked.
	from map[*cache.Object]uint32
}

// kindOf is the resource of an object.
func (a *kindsAnswer) kindOf(o *cache.Object) *viewed { return a.kinds[a.from[o]] }

// insertCluster makes the object that begins at a position of dst say which
// cluster it is from.
func insertCluster(dst []byte, at int, cluster string) []byte {
	return summary.WithMembers(dst, at, clusterMember(cluster))
}

// clusterMember is the member that says which cluster an object is from.
func clusterMember(cluster string) []byte {
	return reply.AppendText([]byte(`"cluster":`), cluster)
}

// askKinds asks one resource after the other; each is searched on all
// processors. A resource that cannot answer is named with the reason. If none
// can, that is the error.
// several says that it is of several clusters, whichever of them have the resources.
func askKinds(ctx context.Context, kinds []*viewed, q cache.Query, whose, several bool) (*kindsAnswer, error) {
	a := &kindsAnswer{states: []kindState{}, plans: []explanation{}, foundObjects: foundObjects{kinds: kinds}}
	a.clusters = several
	if (whose || a.clusters) && len(kinds) > 1 {
		a.from = map[*cache.Object]uint32{}
	}
	if len(kinds) > 1 {
		q.Sort = nil // over all of them, later
	}
	var refused error
	answered := 0
	for i := range kinds {
		state, err := a.ask(ctx, i, q)
		a.ends = append(a.ends, len(a.objects))
		if err != nil {
			if !isOwn(err) {
				return nil, err
			}
			refused = err
			state.Reason = err.Error()
		}
		if state.Answered {
			answered++
		}
		a.states = append(a.states, state)
	}
	if answered > 0 || len(kinds) == 0 {
		return a, nil
	}
	if refused != nil {
		return nil, refused
	}
	return nil, noneReadable(a.states)
}

// isOwn reports whether a question cannot be asked of one resource, and perhaps of
// others: it has no such index, its rule takes the field out, there is no data of the
// namespace, or it may not be seen.
func isOwn(err error) bool {
	if _, lacks := errors.AsType[*lackingError](err); lacks {
		return true
	}
	bad, ok := errors.AsType[*cache.InvalidError](err)
	return ok && (bad.Parameter == "index" || bad.Parameter == "fieldSelector") || apierrors.IsForbidden(err)
}

func (a *kindsAnswer) ask(ctx context.Context, i int, q cache.Query) (kindState, error) {
	res := a.kinds[i]
	state := newKindState(res.view)
	if err := res.refused(q.Namespaces); err != nil {
		return state, err
	}
	if res.reader == nil {
		if state.Reason == "" {
			state.Reason = "there is no data"
		}
		return state, nil
	}
	without, err := res.lacking(q.Namespaces)
	if err != nil {
		return state, err
	}
	for _, l := range without {
		if l.state == "" { // the others are told already
			state.missing = strings.TrimSpace(state.missing + " " + l.namespace)
		}
	}
	found, err := res.reader.Select(ctx, q)
	if err != nil {
		return state, err
	}
	state.Answered, state.ResourceVersion = true, found.Version
	state.Objects, state.FilterErrors = len(found.Objects), faultsOf(found.Faults)
	a.plans = append(a.plans, explain(res, found, len(found.Objects)))
	a.objects = append(a.objects, found.Objects...)
	a.results, a.found = append(a.results, found), append(a.found, i)
	if a.from != nil {
		for _, o := range found.Objects {
			a.from[o] = uint32(i)
		}
	}
	return state, nil
}

func noneReadable(states []kindState) error {
	var reasons []string
	name := namer(states)
	for _, s := range states[:min(len(states), maxNamed)] {
		reasons = append(reasons, fmt.Sprintf("%s is %s: %s", name(s), s.State, s.Reason))
	}
	return statusError(retryAfter(reply.Failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"none of the resources can be answered: "+strings.Join(reasons, "; ")), 1))
}

// maxNamed is how many resources a header or message names.
const maxNamed = 20

// setKinds says in headers what is not in an answer, or may be old.
func setKinds(h http.Header, states []kindState) {
	var missing, old []string
	name := namer(states)
	for _, s := range states {
		switch {
		case !s.Answered:
			missing = append(missing, name(s))
		case s.State != cache.Live:
			old = append(old, fmt.Sprintf("%s is %s", name(s), s.State))
		}
		if s.Answered && s.missing != "" {
			missing = append(missing, fmt.Sprintf("%s of namespaces %s", name(s), s.missing))
		}
	}
	if len(missing) > 0 {
		h.Set("Informerd-Unanswered", named(missing))
	}
	if len(old) > 0 {
		h.Set("Warning", "110 informerd "+quote(named(old)))
	}
}

func named(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

func kindsTag(r *http.Request, kinds []*viewed) string { return etag(r, revisionsOf(kinds)) }

// revisionsOf changes with every resource, and with what may be seen of it.
func revisionsOf(kinds []*viewed) string {
	sum := fnv.New64a()
	for _, k := range kinds {
		fmt.Fprintf(sum, "%s %s %s\n", k.view.Spec.Resource, k.view.State, k.view.Reason)
		if k.reader != nil {
			fmt.Fprintf(sum, "%s %d%s\n", k.reader.Epoch(), k.reader.Revision(), k.mark())
		}
	}
	return fmt.Sprintf("%x", sum.Sum64())
}

// facets computes the facets that q asks for, none if it does not.
func (q *query) facets(ctx context.Context, found foundObjects) ([]facet, error) {
	if len(q.summary.Facets) == 0 {
		return nil, nil
	}
	s, err := q.summarize(ctx, found)
	if err != nil {
		return nil, err
	}
	return facetsOf(s), nil
}

// groupView is how groups are shown.
func (q *query) groupView() view {
	return view{output: q.output, pretty: q.pretty, lines: q.lines, columns: q.groupColumns()}
}

package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/health"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
)

// maxVerdicts is how many objects an answer about health lists at most.
const maxVerdicts = 5000

// healthAnswer is what state a cluster is in. docs/health.md says what the fields mean.
type healthAnswer struct {
	list[healthItem]
	Summary    healthCounts           `json:"summary"`
	Resources  []resourceHealthCounts `json:"resources"`
	Namespaces []namespaceCounts      `json:"namespaces"`
	Unanswered []unansweredItem       `json:"unanswered"`
}

type healthCounts struct {
	Good        int `json:"good"`
	Progressing int `json:"progressing"`
	Bad         int `json:"bad"`
	Unknown     int `json:"unknown"`
}

type resourceHealthCounts struct {
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	healthCounts
}

type namespaceCounts struct {
	Namespace string `json:"namespace"`
	healthCounts
}

// healthObject is one object and its health.
type healthObject struct {
	ID        string    `json:"id"`
	Resource  string    `json:"resource"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Status    string    `json:"status"`
	Reason    string    `json:"reason,omitempty"`
	Message   string    `json:"message,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

type healthItem struct {
	healthObject
	Cause    *healthCause `json:"cause,omitempty"`
	Affected int          `json:"affected"`
}

// healthCause is the object that shows why another one is as it is.
type healthCause struct {
	ID      string    `json:"id"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

func countsOf(c health.Counts) healthCounts {
	return healthCounts{Good: c[health.Good], Progressing: c[health.Progressing], Bad: c[health.Bad], Unknown: c[health.Unknown]}
}

func healthObjectOf(o health.Object) healthObject {
	return healthObject{
		ID: objectID(o.Resource, o.Key), Resource: o.Resource, Kind: o.Kind, Namespace: o.Key.Namespace, Name: o.Key.Name,
		Status: o.Status.String(), Reason: o.Reason, Message: o.Message, Since: o.Since,
	}
}

func healthItemOf(i health.Item) healthItem {
	out := healthItem{healthObject: healthObjectOf(i.Object), Affected: i.Affected}
	if c := i.Cause; c != nil {
		out.Cause = &healthCause{objectID(c.Resource, c.Key), c.Status.String(), c.Reason, c.Message, c.Since}
	}
	return out
}

func healthAnswerOf(found *health.Answer) *healthAnswer {
	a := &healthAnswer{
		list:      list[healthItem]{Kind: "HealthList", APIVersion: apiVersion, Items: []healthItem{}},
		Summary:   countsOf(found.Summary),
		Resources: []resourceHealthCounts{}, Namespaces: []namespaceCounts{}, Unanswered: unansweredItems(found.Unanswered),
	}
	a.Metadata.Truncated, a.Metadata.Remaining = found.Remaining > 0, found.Remaining
	for _, r := range found.Resources {
		a.Resources = append(a.Resources, resourceHealthCounts{r.Resource, r.Kind, countsOf(r.Counts)})
	}
	for _, n := range found.Namespaces {
		a.Namespaces = append(a.Namespaces, namespaceCounts{n.Namespace, countsOf(n.Counts)})
	}
	for _, i := range found.Items {
		a.Items = append(a.Items, healthItemOf(i))
	}
	return a
}

// healthQuery is a question about the health of a cluster.
type healthQuery struct {
	health.Query
	cluster string
	stream  query // of which a stream needs how long it lasts
}

func (s *Server) listHealth(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	q, err := s.parseHealthQuery(r.Context(), p)
	if err != nil {
		return err
	}
	pretty, err := p.flag("pretty")
	if err != nil {
		return err
	}
	if q.stream.watch {
		return s.watchHealth(w, r, q)
	}
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	answer, err := s.askHealth(r.Context(), q)
	if err != nil {
		return err
	}
	audit.From(r.Context()).Returned(len(answer.Items))
	return writeTagged(w, r, answer, pretty)
}

// askHealth answers by what may be seen now.
func (s *Server) askHealth(ctx context.Context, q *healthQuery) (*healthAnswer, error) {
	index := s.relations.health(q.cluster)
	missing, err := s.checkKnown(ctx, q.cluster)
	if err != nil {
		return nil, err
	}
	sighted := q.Query
	if q.stream.watch {
		sighted.Sight, err = s.streamSight(ctx, q.cluster)
	} else {
		sighted.Sight, err = s.sight(ctx, q.cluster, cache.List)
	}
	if err != nil {
		return nil, err
	}
	found, err := index.Ask(ctx, sighted)
	if err != nil {
		return nil, err
	}
	answer := healthAnswerOf(found)
	answer.Unanswered = append(answer.Unanswered, missing...)
	return answer, nil
}

func (s *Server) parseHealthQuery(ctx context.Context, p params) (q *healthQuery, err error) {
	q = &healthQuery{}
	if q.cluster, err = s.clusterOf(ctx, p); err != nil {
		return nil, err
	}
	var errs [8]error
	var seconds int
	q.Namespaces, errs[0] = parseNamespaces(p)
	q.Labels, errs[1] = parseLabels(p)
	q.Statuses, errs[2] = parseStatuses(p)
	q.All, errs[3] = p.flag("all")
	q.Limit, errs[4] = p.between("limit", health.DefaultLimit, 1, maxVerdicts)
	q.stream.watch, errs[5] = p.flag("watch")
	seconds, errs[6] = p.count("timeoutSeconds")
	q.stream.duration = time.Duration(seconds) * time.Second
	q.Resources, errs[7] = s.parseHealthResources(ctx, p)
	if err := firstError(errs[:]); err != nil {
		return nil, err
	}
	if q.stream.watch && p.Has("pretty") {
		return nil, invalid("pretty", "not possible together with watch=true: an event is one line")
	}
	return q, nil
}

func parseLabels(p params) (labels.Selector, error) {
	if p.Get("labelSelector") == "" {
		return nil, nil
	}
	selector, err := labels.Parse(p.Get("labelSelector"))
	if err != nil {
		return nil, invalid("labelSelector", "%v", err)
	}
	return selector, nil
}

func parseStatuses(p params) (all []health.Status, err error) {
	names, err := p.words("status")
	for _, name := range names {
		status, ok := health.ParseStatus(name)
		if !ok {
			return nil, invalid("status", "%q is not one of: bad, progressing, unknown, good", name)
		}
		all = append(all, status)
	}
	return all, err
}

// parseHealthResources are the resources asked about; nil is all.
func (s *Server) parseHealthResources(ctx context.Context, p params) ([]schema.GroupResource, error) {
	if !p.Has("resources") {
		return nil, nil
	}
	found, err := s.resourcesOf(ctx, p)
	if err != nil {
		return nil, err
	}
	all := []schema.GroupResource{}
	for _, res := range found {
		gr := res.Spec().GVR.GroupResource()
		if res.named && health.Records(gr) {
			return nil, invalid("resources", "%s have no health: they tell what happened", res.Spec().Name())
		}
		all = append(all, gr)
	}
	return all, nil
}

// objectHealth is the health of one object and of what it owns.
type objectHealth struct {
	Kind       string           `json:"kind"`
	APIVersion string           `json:"apiVersion"`
	Metadata   listMeta         `json:"metadata"`
	Item       healthItem       `json:"item"`
	Children   []healthObject   `json:"children"`
	Unanswered []unansweredItem `json:"unanswered"`
}

func (s *Server) getHealth(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	res, err := s.lookup(r)
	if err != nil {
		return err
	}
	spec := res.Spec()
	gr := spec.GVR.GroupResource()
	q := health.ObjectQuery{Resource: gr}
	var errs [3]error
	q.Key, errs[0] = objectKey(r, spec)
	q.Limit, errs[1] = p.between("limit", health.DefaultLimit, 1, maxVerdicts)
	pretty, err := p.flag("pretty")
	if errs[2] = err; firstError(errs[:]) != nil {
		return firstError(errs[:])
	}
	missing, err := s.checkKnown(r.Context(), spec.Cluster)
	if err != nil {
		return err
	}
	if q.Sight, err = s.sight(r.Context(), spec.Cluster, cache.List); err != nil {
		return err
	}
	if !q.Sight.Of(gr).Touches(q.Key.Namespace) {
		return access.Forbidden(access.From(r.Context()), attributes(spec, cache.List, cache.Key{Namespace: q.Key.Namespace}), "")
	}
	found, err := s.relations.health(spec.Cluster).AskObject(r.Context(), q)
	if found != nil {
		if !found.View.Readable() {
			return notReadable(w, found.View)
		}
		setFreshness(w.Header(), found.View, "")
	}
	if errors.Is(err, cache.ErrNotFound) {
		return notFound("%s %q not found", spec.Name(), q.Key)
	}
	if err != nil {
		return err
	}
	answer := objectHealthOf(found)
	answer.Unanswered = append(answer.Unanswered, missing...)
	audit.From(r.Context()).Returned(1 + len(answer.Children))
	return writeTagged(w, r, answer, pretty)
}

func objectHealthOf(found *health.ObjectAnswer) *objectHealth {
	a := &objectHealth{
		Kind: "Health", APIVersion: apiVersion, Item: healthItemOf(found.Item),
		Children: []healthObject{}, Unanswered: unansweredItems(found.Unanswered),
	}
	a.Metadata.Truncated, a.Metadata.Remaining = found.Remaining > 0, found.Remaining
	for _, c := range found.Children {
		a.Children = append(a.Children, healthObjectOf(c))
	}
	return a
}

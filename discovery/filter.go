package discovery

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// confirmAfter is how long a resource must be absent from discovery before
	// it counts as gone, unless a watch confirms it at once.
	confirmAfter = 2 * time.Second
	// confirmBlindAfter is the same while CRDs or APIServices cannot be
	// watched: an API server that is just starting answers before it knows of
	// its CRDs, and nothing else would tell.
	confirmBlindAfter = 30 * time.Second
)

// answer is what the server said it serves, in the server's order.
type answer struct {
	groups []group
}

type group struct {
	name     string
	versions []version // preferred first
}

type version struct {
	name      string
	err       error // it did not answer: resources are unknown
	resources []served
}

// served is one resource of one version, as discovery tells it.
type served struct {
	name, kind, singular          string
	shortNames, categories, verbs []string
	namespaced                    bool
}

func (s served) watchable() bool {
	return !strings.Contains(s.name, "/") && s.kind != "" &&
		slices.Contains(s.verbs, "list") && slices.Contains(s.verbs, "watch")
}

// facts is all that a Set is made of.
type facts struct {
	answer        answer
	crds          table[crdSpec]
	services      table[serviceSpec]
	pins          map[schema.GroupResource]string
	serverVersion string
	mixed         bool // servers that differ answer by turns: what is absent may be there

	prev        Set
	prevPins    map[schema.GroupResource]string    // under which prev was made
	absentSince map[schema.GroupResource]time.Time // of prev, from the last look
	now         time.Time
	since       time.Time // of the first answer
}

// blind tells whether there is only discovery to rely on.
func (f facts) blind() bool { return !f.crds.live || !f.services.live }

// verdict is what facts amount to.
type verdict struct {
	set         Set
	absentSince map[schema.GroupResource]time.Time // reported still, waiting for confirmation
	unmetPins   map[schema.GroupResource]string    // pinned versions that are not served
	lagging     bool                               // discovery and the watches disagree: look again soon
}

// judge decides which resources are watchable. It depends on facts alone.
func judge(f facts) verdict {
	j := judging{
		facts:  f,
		found:  map[schema.GroupResource]candidate{},
		failed: map[schema.GroupVersion]error{},
		gvs:    map[schema.GroupVersion]bool{},
		kept:   map[schema.GroupResource]Resource{},
		out: verdict{
			absentSince: map[schema.GroupResource]time.Time{},
			unmetPins:   map[schema.GroupResource]string{},
		},
	}
	j.read()
	j.findLostServices()
	for gr, c := range j.found {
		if r, ok := j.choose(gr, c); ok {
			j.kept[gr] = r
		}
	}
	for _, r := range f.prev.Resources {
		j.carry(r)
	}
	j.dropDoubleEvents()
	j.out.set = Set{
		Resources:     j.resources(),
		Pending:       j.pending(),
		Provisional:   j.provisional(),
		ServerVersion: j.version(),
	}
	if len(j.failed) > 0 {
		j.out.set.Failed = j.failed
	}
	j.out.lagging = len(j.out.absentSince) > 0 || j.out.set.Provisional ||
		f.crds.live && len(j.out.set.Pending) > 0 || j.deletionsLag() || j.servicesLag()
	return j.out
}

type judging struct {
	facts
	found  map[schema.GroupResource]candidate
	failed map[schema.GroupVersion]error
	gvs    map[schema.GroupVersion]bool // in the answer, failed or not
	kept   map[schema.GroupResource]Resource
	out    verdict
}

// candidate is a resource with the versions that can be listed and watched.
type candidate struct {
	versions []string // in the server's order
	served   map[string]served
	group    *group
}

func (j *judging) read() {
	for i := range j.answer.groups {
		g := &j.answer.groups[i]
		for _, v := range g.versions {
			gv := schema.GroupVersion{Group: g.name, Version: v.name}
			j.gvs[gv] = true
			if v.err != nil {
				j.failed[gv] = v.err
				continue
			}
			for _, s := range v.resources {
				j.add(g, v.name, s)
			}
		}
	}
}

func (j *judging) add(g *group, version string, s served) {
	if !s.watchable() {
		return
	}
	gr := schema.GroupResource{Group: g.name, Resource: s.name}
	c, ok := j.found[gr]
	if !ok {
		c = candidate{group: g, served: map[string]served{}}
	}
	if _, twice := c.served[version]; twice {
		return
	}
	c.versions = append(c.versions, version)
	c.served[version] = s
	j.found[gr] = c
}

// choose picks the version to report. It reports nothing where the version
// that ought to win did not answer: another one would only be watched in vain.
func (j *judging) choose(gr schema.GroupResource, c candidate) (Resource, bool) {
	prev, known := j.prev.Get(gr)
	pin := j.pins[gr]
	switch {
	case pin != "" && slices.Contains(c.versions, pin):
		return j.resource(gr, pin, c, prev), true
	case pin != "" && j.failed[schema.GroupVersion{Group: gr.Group, Version: pin}] != nil:
		return Resource{}, false // carry keeps the previous entry, if any
	case known && j.failed[prev.GVR.GroupVersion()] != nil:
		return Resource{}, false
	case pin != "":
		j.out.unmetPins[gr] = pin
	case known && pin == j.prevPins[gr] && j.ofServer(prev):
		return j.steady(gr, c, prev)
	}
	return j.resource(gr, c.versions[0], c, prev), true
}

// ofServer tells whether r is built into the API server, whose version then
// decides how it is served. All else is decided by objects that all servers have.
func (j *judging) ofServer(r Resource) bool {
	_, custom := j.crds.rows[crdName(r.GroupResource())]
	return !custom && r.CRDUID == "" && !r.Aggregated
}

// steady is a built-in resource in the version of the last Set, until it is
// certain that another one is preferred now. While servers differ it is all that
// it was.
func (j *judging) steady(gr schema.GroupResource, c candidate, prev Resource) (Resource, bool) {
	version := prev.GVR.Version
	switch {
	case j.mixed:
		return prev, true
	case version == c.versions[0] || j.confirmed(prev):
		return j.resource(gr, c.versions[0], c, prev), true
	case slices.Contains(c.versions, version):
		return j.resource(gr, version, c, prev), true
	}
	return Resource{}, false // carry keeps it
}

func (j *judging) resource(gr schema.GroupResource, version string, c candidate, prev Resource) Resource {
	s := c.served[version]
	return j.decorate(Resource{
		GVR:        gr.WithVersion(version),
		Kind:       s.kind,
		ListKind:   s.kind + "List",
		Singular:   s.singular,
		ShortNames: s.shortNames,
		Categories: s.categories,
		Namespaced: s.namespaced,
		Verbs:      s.verbs,
		Versions:   j.versions(c, prev),
	}, prev)
}

// versions are those served, and those served before that did not answer now.
func (j *judging) versions(c candidate, prev Resource) []string {
	var all []string
	for _, v := range c.group.versions {
		if slices.Contains(c.versions, v.name) || v.err != nil && slices.Contains(prev.Versions, v.name) {
			all = append(all, v.name)
		}
	}
	return all
}

// decorate adds what the CRD and the APIService tell.
func (j *judging) decorate(r, prev Resource) Resource {
	r.Aggregated = j.aggregated(r.GVR, prev)
	if r.Aggregated {
		r.CRDUID, r.CRDGeneration, r.SelectableFields = "", 0, nil
		return r
	}
	crd, ok := j.crds.rows[crdName(r.GroupResource())]
	if !ok {
		// Either not a custom resource, or its CRD is just going. Do not let
		// its identity flap for the moment that discovery lags behind.
		r.CRDUID, r.CRDGeneration = prev.CRDUID, prev.CRDGeneration
		if prev.GVR == r.GVR {
			r.SelectableFields = prev.SelectableFields
		}
		return r
	}
	r.CRDUID, r.CRDGeneration = crd.uid, crd.generation
	r.ListKind = cmp.Or(crd.spec.Names.ListKind, r.ListKind)
	r.SelectableFields = crd.spec.selectableFields(r.GVR.Version)
	return r
}

func (j *judging) aggregated(gvr schema.GroupVersionResource, prev Resource) bool {
	if service, ok := j.services.rows[serviceName(gvr.GroupVersion())]; ok {
		return service.spec.Service != nil
	}
	_, custom := j.crds.rows[crdName(gvr.GroupResource())]
	if !custom && j.services.known && prev.GVR == gvr {
		return prev.Aggregated
	}
	return !custom && prev.CRDUID == "" && !builtIn[gvr.Group]
}

// carry keeps a resource of the last Set that this answer lacks, unless it is
// certain that it is gone.
func (j *judging) carry(r Resource) {
	gr := r.GroupResource()
	if _, ok := j.kept[gr]; ok || j.gone(r) {
		return
	}
	r.Stale = r.Stale || !j.mixed || j.unanswered(r)
	j.kept[gr] = j.decorate(r, r)
}

func (j *judging) gone(r Resource) bool {
	gr, gv := r.GroupResource(), r.GVR.GroupVersion()
	if j.unanswered(r) {
		return false
	}
	if _, served := j.found[gr]; served {
		return false // only the version that ought to win is missing
	}
	if j.crds.live {
		crd, exists := j.crds.rows[crdName(gr)]
		switch {
		case exists && !r.Aggregated && crd.ready && crd.spec.serves(r.Versions):
			return j.unconfirmed(r) // discovery lags behind
		case !exists && r.CRDUID != "":
			return true
		}
	}
	if j.services.live && !j.gvs[gv] {
		_, exists := j.services.rows[serviceName(gv)]
		switch {
		case exists:
			return j.unconfirmed(r)
		case r.Aggregated:
			return true
		}
	}
	return j.confirmed(r)
}

// unanswered tells whether any version known to serve r did not answer.
func (j *judging) unanswered(r Resource) bool {
	for _, v := range append(r.Versions[:len(r.Versions):len(r.Versions)], r.GVR.Version) {
		if j.failed[schema.GroupVersion{Group: r.GVR.Group, Version: v}] != nil {
			return true
		}
	}
	return false
}

// unconfirmed notes that r is absent, and never takes it for gone.
func (j *judging) unconfirmed(r Resource) bool {
	gr := r.GroupResource()
	since, ok := j.absentSince[gr]
	if !ok {
		since = j.now
	}
	j.out.absentSince[gr] = since
	return false
}

// confirmed tells whether r has been absent for long enough: the servers were
// asked several times meanwhile. While they differ that does not begin.
func (j *judging) confirmed(r Resource) bool {
	if j.mixed {
		return false
	}
	wait := confirmAfter
	if j.blind() {
		wait = confirmBlindAfter
	}
	since, ok := j.absentSince[r.GroupResource()]
	if ok && j.now.Sub(since) >= wait {
		return true
	}
	return j.unconfirmed(r)
}

var (
	coreEvents = schema.GroupResource{Resource: "events"}
	newEvents  = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
)

// dropDoubleEvents keeps one of the two groups that serve the same Events.
func (j *judging) dropDoubleEvents() {
	_, core := j.kept[coreEvents]
	_, other := j.kept[newEvents]
	if !core || !other {
		return
	}
	drop := newEvents
	if j.pins[newEvents] != "" && j.pins[coreEvents] == "" {
		drop = coreEvents
	}
	delete(j.kept, drop)
	delete(j.out.absentSince, drop)
}

func (j *judging) resources() []Resource {
	return slices.SortedFunc(maps.Values(j.kept), func(a, b Resource) int {
		return compareGroupResource(a.GroupResource(), b.GroupResource())
	})
}

// findLostServices marks as failed what an APIService registers and discovery
// leaves out.
func (j *judging) findLostServices() {
	for _, service := range j.services.rows {
		gv := service.spec.groupVersion()
		if service.spec.Service != nil && !j.gvs[gv] {
			j.failed[gv] = errLostService
		}
	}
}

// provisional tells whether the answer may lack what was never heard of, and
// nothing but time will tell.
func (j *judging) provisional() bool {
	complete := len(j.prev.Resources) > 0 && !j.prev.Provisional
	return (j.blind() || j.mixed) && !complete && j.now.Sub(j.since) < confirmBlindAfter
}

// version does not alternate while servers differ.
func (j *judging) version() string {
	if j.mixed && j.prev.ServerVersion != "" {
		return j.prev.ServerVersion
	}
	return j.serverVersion
}

// pending are the resources of established CRDs that discovery does not serve.
func (j *judging) pending() []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, crd := range j.crds.rows {
		if crd.ready {
			all = append(all, j.lacking(crd.spec)...)
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionResource) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

func (j *judging) lacking(crd crdSpec) (all []schema.GroupVersionResource) {
	gr := schema.GroupResource{Group: crd.Group, Resource: crd.Names.Plural}
	for _, v := range crd.Versions {
		gvr := gr.WithVersion(v.Name)
		service := j.services.rows[serviceName(gvr.GroupVersion())]
		if !v.Served || j.failed[gvr.GroupVersion()] != nil || service.spec.Service != nil {
			continue
		}
		if _, ok := j.found[gr].served[v.Name]; !ok {
			all = append(all, gvr)
		}
	}
	return all
}

// deletionsLag tells whether discovery still serves a resource whose CRD is
// deleted.
func (j *judging) deletionsLag() bool {
	for gr, r := range j.kept {
		if _, exists := j.crds.rows[crdName(gr)]; j.crds.live && r.CRDUID != "" && !r.Stale && !exists {
			return true
		}
	}
	return false
}

// servicesLag tells whether an available aggregated API has no fresh answer in
// discovery: the aggregator asks it soon after it became available.
func (j *judging) servicesLag() bool {
	for _, service := range j.services.rows {
		gv := service.spec.groupVersion()
		if service.spec.Service != nil && service.ready && (!j.gvs[gv] || j.failed[gv] != nil) {
			return true
		}
	}
	return false
}

func compareGroupResource(a, b schema.GroupResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}

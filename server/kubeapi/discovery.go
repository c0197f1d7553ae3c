package kubeapi

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

// discovery says which resources are served, in the two forms there are: one
// document for all of them, and the older one for each group version. Both are
// made of the specs, so they are there when the API server is not. What is not in
// them while the API server has yet to say what it serves is not known: clients
// keep an answer without it for hours. So an answer that may lack something says so:
// another informerd takes nothing for gone because of it.
func (a *API) discovery(w http.ResponseWriter, r *http.Request, req *request) error {
	aggregated := len(req.parts) == 1
	allowed := plain
	if aggregated {
		allowed = media.forDiscovery
	}
	m, err := negotiate(r, allowed)
	if err != nil {
		return err
	}
	all, incomplete := a.groups(r.Context(), req.cluster)
	groups := groupsBelow(all, req.parts[0])
	if len(groups) == 0 && incomplete != nil {
		return incomplete
	}
	if incomplete != nil {
		setIncomplete(w.Header(), Discreet(r.Context(), incomplete))
	}
	if m.as == asDiscovery {
		return writeAggregated(w, r, m, groups)
	}
	document, ok := legacyDocument(groups, req.parts)
	if !ok && incomplete != nil {
		return incomplete
	}
	if !ok {
		return errUnknown(req)
	}
	if list, ok := document.(metav1.APIResourceList); ok {
		hashes := a.storageVersionHashes(r.Context(), req)
		for i := range list.APIResources {
			list.APIResources[i].StorageVersionHash = hashes[list.APIResources[i].Name]
		}
	}
	return writeTagged(w, r, m, m.contentType(), document)
}

// setIncomplete says that resources may be missing in a document, to programs and in
// the words that kubectl prints.
func setIncomplete(h http.Header, why error) {
	h.Set(cache.DiscoveryHeader, cache.DiscoveryIncomplete)
	if text, err := utilnet.NewWarningHeader(299, "informerd", why.Error()); err == nil {
		h.Add("Warning", text)
	}
}

// groupsBelow are those that a path of discovery tells of: the core group is
// apart from all others.
func groupsBelow(groups []apidiscovery.APIGroupDiscovery, root string) []apidiscovery.APIGroupDiscovery {
	return slices.DeleteFunc(slices.Clone(groups), func(g apidiscovery.APIGroupDiscovery) bool {
		return (g.Name == "") != (root == "api")
	})
}

// served lists what is watched of a cluster, and reviews, as discovery tells it, in the
// order in which kubectl decides between resources of one name: the core group, other
// built-in ones, custom resources, aggregated APIs.
func (a *API) served(cluster string) []apidiscovery.APIGroupDiscovery {
	var specs []cache.Spec
	for _, r := range a.Caches.Resources() {
		if s := r.Spec(); s.Watch && s.Cluster == cluster {
			specs = append(specs, s)
		}
	}
	slices.SortStableFunc(specs, func(a, b cache.Spec) int {
		return cmp.Or(
			cmp.Compare(priority(a), priority(b)),
			strings.Compare(a.GVR.Group, b.GVR.Group),
			-version.CompareKubeAwareVersionStrings(a.GVR.Version, b.GVR.Version),
			strings.Compare(a.GVR.Resource, b.GVR.Resource),
		)
	})
	var groups []apidiscovery.APIGroupDiscovery
	for _, s := range specs {
		if priority(s) > 1 {
			groups = withReviews(groups)
		}
		v := versionOf(groupOf(&groups, s.GVR.Group), s.GVR.Version)
		v.Resources = append(v.Resources, discovered(s))
	}
	if len(specs) == 0 { // nothing is known yet
		return groups
	}
	return withReviews(groups)
}

func priority(s cache.Spec) int {
	switch {
	case s.GVR.Group == "":
		return 0
	case s.Aggregated:
		return 3
	case s.CRDUID != "":
		return 2
	}
	return 1
}

func groupOf(groups *[]apidiscovery.APIGroupDiscovery, name string) *apidiscovery.APIGroupDiscovery {
	i := slices.IndexFunc(*groups, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == name })
	if i < 0 {
		i = len(*groups)
		*groups = append(*groups, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return &(*groups)[i]
}

func versionOf(g *apidiscovery.APIGroupDiscovery, name string) *apidiscovery.APIVersionDiscovery {
	i := slices.IndexFunc(g.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == name })
	if i < 0 {
		i = len(g.Versions)
		g.Versions = append(g.Versions, apidiscovery.APIVersionDiscovery{Version: name, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
	}
	return &g.Versions[i]
}

// readVerbs are what can be done with what is held.
var readVerbs = []string{"get", "list", "watch"}

func discovered(s cache.Spec) apidiscovery.APIResourceDiscovery {
	scope := apidiscovery.ScopeCluster
	if s.Namespaced {
		scope = apidiscovery.ScopeNamespace
	}
	return apidiscovery.APIResourceDiscovery{
		Resource:         s.GVR.Resource,
		ResponseKind:     &metav1.GroupVersionKind{Group: s.GVR.Group, Version: s.GVR.Version, Kind: s.Kind},
		Scope:            scope,
		SingularResource: cmp.Or(s.Singular, strings.ToLower(s.Kind)),
		Verbs:            readVerbs,
		ShortNames:       s.ShortNames,
		Categories:       s.Categories,
	}
}

func writeAggregated(w http.ResponseWriter, r *http.Request, m media, groups []apidiscovery.APIGroupDiscovery) error {
	list := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: asDiscovery, APIVersion: m.group + "/" + m.version},
		Items:    append([]apidiscovery.APIGroupDiscovery{}, groups...),
	}
	return writeTagged(w, r, m, fmt.Sprintf("%s;g=%s;v=%s;as=%s", m.contentType(), m.group, m.version, m.as), list)
}

// writeTagged answers with a document and its tag, or with 304 to a client that
// holds it.
func writeTagged(w http.ResponseWriter, r *http.Request, m media, contentType string, document any) error {
	body, err := reply.JSON(document, false)
	if err != nil {
		return err
	}
	h := fnv.New64a()
	_, _ = h.Write(body)
	tag := fmt.Sprintf(`"%016X"`, h.Sum64())
	if tagMatches(w, r, tag) {
		return nil
	}
	if body, err = m.render(body); err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	_, err = w.Write(body)
	return cut(err)
}

// tagMatches sets the tag of an answer and says whether the client holds it
// already; then 304 is all it gets. Compression makes tags weak.
func tagMatches(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set("ETag", tag)
	for candidate := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == "*" || candidate != "" && candidate == strings.TrimPrefix(tag, "W/") {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

// Package rbac works out which rights informerd needs in a cluster for a
// configuration, and writes them down as roles. It asks nobody: what a cluster serves
// is given, or is not known.
//
// What informerd asks of an API server, with its own credentials:
//
//   - of each resource it watches: lists, watches, and gets of single objects, by which
//     it compares its copy with the cluster; the same for the rows of tables;
//   - the namespace kube-system, whose UID identifies the cluster, and every two
//     seconds one namespace of a list, whose resourceVersion says how far etcd is;
//   - CustomResourceDefinitions and APIServices, which say what is served and what has
//     changed of it;
//   - discovery, OpenAPI and the version, and reviews of its own rights, which every
//     authenticated user may ask for by default (system:discovery, system:basic-user);
//   - to serve others with their rights: TokenReviews, SubjectAccessReviews, the RBAC
//     objects, and the cluster's authentication configuration;
//   - of several replicas: the Lease that says who leads, the one object that it writes.
//
// What it passes on has the credentials of who asked.
package rbac

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
	"github.com/informerd/informerd/discovery"
)

// Grant is one rule of a role.
type Grant struct {
	// Why is said above it, "" if the one before it says so.
	Why                             string
	Groups, Resources, Names, Verbs []string
}

// Needs are what informerd has to be allowed in one cluster.
type Needs struct {
	// Everywhere is for a ClusterRole.
	Everywhere []Grant
	// In is for a Role in each of these namespaces.
	In map[string][]Grant
	// Remarks are for whoever grants this: where it is more than the configuration
	// selects, or less.
	Remarks []string
}

// Options say what is needed beside the copy.
type Options struct {
	// Authentication: others are served with their rights, so who they are and what
	// they may is asked.
	Authentication bool
	// LeaseNamespace and LeaseName are of the Lease in this cluster by which replicas agree
	// on who leads; both "" if there is none.
	LeaseNamespace, LeaseName string
}

// literalNamespaces is up to how many namespaces a rule may name and still have each
// watched by itself, as cache/replica does.
const literalNamespaces = 16

var (
	all    = []string{"get", "list", "watch"}
	noGets = []string{"list", "watch"}
)

// Of is what choices need, which were made of all resources that a cluster serves.
func Of(choices []plan.Choice, o Options) *Needs {
	s := newSelection()
	for _, c := range choices {
		s.add(c.Spec)
	}
	s.remark("These are the resources that the cluster serves now and the configuration selects. " +
		"What is served later, such as a new CustomResourceDefinition, is 'forbidden' to informerd until this is made anew.")
	return s.needs(o)
}

// Offline is what rules need of a cluster of which it is not known what it serves.
// What Kubernetes itself serves is named; for what globs may select besides, there are
// wildcards, as RBAC has no globs.
func Offline(rules []config.Rule, o Options) *Needs {
	s := newSelection()
	choices := plan.Choose(rules, "", known(rules))
	for _, c := range choices {
		s.add(c.Spec)
	}
	for _, rule := range rules {
		for _, p := range rule.Match {
			if rule.Watch {
				s.pattern(rule, p)
			}
		}
	}
	s.excess(choices)
	return s.needs(o)
}

// known are the resources of Kubernetes, and those that rules name, in every version
// that rules pin: nobody knows which of them are served.
func known(rules []config.Rule) []discovery.Resource {
	var versions []string
	resources := slices.Clone(builtIn)
	for _, rule := range rules {
		for _, p := range rule.Match {
			versions = append(versions, p.Version())
			gr, literal := p.Literal()
			if literal && !isBuiltIn(gr) {
				resources = append(resources, resource{gr, true})
			}
		}
	}
	out := make([]discovery.Resource, len(resources))
	for n, r := range resources {
		out[n] = discovery.Resource{
			GVR: schema.GroupVersionResource{Group: r.Group, Resource: r.Resource}, Namespaced: r.namespaced, Versions: versions,
		}
	}
	return out
}

// selection collects what is to be read.
type selection struct {
	everywhere map[schema.GroupResource]bool
	in         map[string]map[schema.GroupResource]bool
	wild       map[string]map[string]bool // namespace, "" for all, to groups of which everything may be meant
	remarks    []string
}

func newSelection() *selection {
	return &selection{
		everywhere: map[schema.GroupResource]bool{}, in: map[string]map[schema.GroupResource]bool{}, wild: map[string]map[string]bool{},
	}
}

func (s *selection) remark(text string) {
	if !slices.Contains(s.remarks, text) {
		s.remarks = append(s.remarks, text)
	}
}

// add selects one resource.
func (s *selection) add(spec cache.Spec) {
	if !spec.Watch {
		return
	}
	for _, ns := range namespaces(spec.Namespaces, spec.Namespaced) {
		if ns == "" {
			s.everywhere[spec.GVR.GroupResource()] = true
			continue
		}
		if s.in[ns] == nil {
			s.in[ns] = map[schema.GroupResource]bool{}
		}
		s.in[ns][spec.GVR.GroupResource()] = true
	}
}

// namespaces are those in which a resource is watched one by one, or "" for all.
func namespaces(named []string, namespaced bool) []string {
	if !namespaced || len(named) == 0 || len(named) > literalNamespaces || slices.ContainsFunc(named, cache.IsGlob) {
		return []string{""}
	}
	return named
}

// pattern selects what a pattern may match beside what is known by name.
func (s *selection) pattern(rule config.Rule, p config.Pattern) {
	gr, literal := p.Literal()
	if literal {
		if !isBuiltIn(gr) && namespaces(rule.Namespaces, true)[0] != "" {
			s.remark(fmt.Sprintf("%s is taken to be in namespaces. If it is not, it belongs into the ClusterRole.", p))
		}
		return
	}
	group := p.Group()
	if group == "" && p.String() != "*" {
		return // all of the core group is known
	}
	if strings.ContainsAny(group, `*?[`) {
		group = "*"
	}
	for _, ns := range namespaces(rule.Namespaces, true) {
		if s.wild[ns] == nil {
			s.wild[ns] = map[string]bool{}
		}
		s.wild[ns][group] = true
		if ns != "" {
			s.remark(fmt.Sprintf("What %s selects of custom resources that are in no namespace is not granted here.", p))
		}
	}
	if p.String() != "*" {
		s.remark(fmt.Sprintf("RBAC has no globs: for %s there is a wildcard, which is more.", p))
	}
}

// excess says what wildcards grant although the configuration leaves it out.
func (s *selection) excess(choices []plan.Choice) {
	var out []string
	for _, c := range choices {
		gr := c.Spec.GVR.GroupResource()
		if !c.Spec.Watch && (s.wild[""]["*"] || s.wild[""][gr.Group]) {
			out = append(out, gr.String())
		}
	}
	if len(out) > 0 {
		s.remark(fmt.Sprintf("RBAC cannot leave anything out of a wildcard: %s may be read and are not.", strings.Join(out, ", ")))
	}
	if len(s.wild) > 0 {
		s.remark("To grant exactly what is served and selected, run this again with a cluster at hand.")
	}
}

func (s *selection) needs(o Options) *Needs {
	n := &Needs{In: map[string][]Grant{}, Remarks: s.remarks}
	n.Everywhere = append(grants("What the configuration selects: lists, watches, and gets to compare the copy with the cluster.", s.everywhere),
		s.wildcards("")...)
	n.Everywhere = append(n.Everywhere, s.foundations()...)
	if o.Authentication {
		n.Everywhere = append(n.Everywhere, s.authentication()...)
	}
	for _, ns := range s.namespaces() {
		n.In[ns] = append(grants("What the configuration selects in this namespace alone.", s.in[ns]), s.wildcards(ns)...)
	}
	if o.Authentication {
		system := n.In[systemNamespace]
		n.In[systemNamespace] = append(system, Grant{
			Why:    "How the API server authenticates: its certificate authorities for clients and front proxies.",
			Groups: []string{""}, Resources: []string{"configmaps"}, Names: []string{"extension-apiserver-authentication"}, Verbs: []string{"get"},
		})
	}
	if o.LeaseName != "" {
		n.In[o.LeaseNamespace] = append(n.In[o.LeaseNamespace], leading(o.LeaseName)...)
	}
	return n
}

// leading is for the Lease of replicas. There is no name in a right to create, since what is
// to be created has none yet that the API server could compare.
func leading(lease string) []Grant {
	return []Grant{
		{
			Why:    "Which of the replicas leads: the Lease that says so is read, written, and made if it is not there.",
			Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Names: []string{lease}, Verbs: []string{"get", "update"},
		},
		{Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
	}
}

const systemNamespace = "kube-system"

// namespaces are all that anything is granted in alone.
func (s *selection) namespaces() []string {
	names := slices.Collect(maps.Keys(s.in))
	for ns := range s.wild {
		if ns != "" {
			names = append(names, ns)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// grants are one rule for each group.
func grants(why string, resources map[schema.GroupResource]bool) (out []Grant) {
	byGroup := map[string][]string{}
	for gr := range resources {
		byGroup[gr.Group] = append(byGroup[gr.Group], gr.Resource)
	}
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		names := byGroup[group]
		slices.Sort(names)
		out = append(out, Grant{Why: why, Groups: []string{group}, Resources: names, Verbs: all})
		why = ""
	}
	return out
}

// wildcards have no get: with it a wildcard would be the right to get subresources as
// well, and to get pods/exec, pods/proxy or nodes/proxy is to run commands.
func (s *selection) wildcards(ns string) []Grant {
	groups := slices.Sorted(maps.Keys(s.wild[ns]))
	if slices.Contains(groups, "*") {
		groups = []string{"*"}
	}
	if len(groups) == 0 {
		return nil
	}
	return []Grant{{
		Why: "What globs may select besides, such as custom resources. There is no get among the verbs: with it, " +
			"the wildcard would include pods/exec and nodes/proxy, which run commands. Without it, objects of these " +
			"resources are listed in full again where they would be compared, and not verified.",
		Groups: groups, Resources: []string{"*"}, Verbs: noGets,
	}}
}

// foundations are needed whatever is selected.
func (s *selection) foundations() []Grant {
	var out []Grant
	if !s.reads(schema.GroupResource{Resource: "namespaces"}) {
		out = append(out,
			Grant{
				Why:    "Whether it is the same cluster as before: the UID of this namespace.",
				Groups: []string{""}, Resources: []string{"namespaces"}, Names: []string{systemNamespace}, Verbs: []string{"get"},
			},
			Grant{
				Why:    "How far etcd is: one namespace is listed every two seconds, so that no bookmark is believed too long.",
				Groups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"},
			})
	}
	if gr := (schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}); !s.reads(gr) {
		out = append(out, Grant{
			Why:    "What is served, and how custom resources are defined: new ones are noticed at once.",
			Groups: []string{gr.Group}, Resources: []string{gr.Resource}, Verbs: all,
		})
	}
	if gr := (schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}); !s.reads(gr) {
		out = append(out, Grant{
			Why:    "What is served by others than the API server itself, whose versions cannot be resumed from.",
			Groups: []string{gr.Group}, Resources: []string{gr.Resource}, Verbs: noGets,
		})
	}
	return out
}

// reads reports whether a resource is read in full anyway.
func (s *selection) reads(gr schema.GroupResource) bool { return s.everywhere[gr] }

// authentication is for serving others with their own rights.
func (s *selection) authentication() []Grant {
	out := []Grant{
		{
			Why:    "Who asks: bearer tokens are shown to the API server.",
			Groups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"},
		},
		{
			Why:    "What they may: the API server is asked.",
			Groups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"},
		},
	}
	roles := map[schema.GroupResource]bool{}
	for _, name := range []string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"} {
		gr := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: name}
		if !s.reads(gr) {
			roles[gr] = true
		}
	}
	return append(out, grants("What they may see of lists: worked out from roles and bindings.", roles)...)
}

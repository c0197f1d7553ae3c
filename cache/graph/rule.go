package graph

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache/rawjson"
)

// Rule says where objects of one resource name others. It is how references are
// declared; the built-in ones are Rules too.
type Rule struct {
	// Edge is the kind of edge this makes: "mounts", "runsOn".
	Edge string
	// From is the resource whose objects hold the reference, as kubectl names
	// it: "pods", "deployments.apps".
	From string
	// Path leads to the reference: a name, or an object with a field name (or
	// secretName or claimName) and perhaps namespace, kind, and apiVersion,
	// apiGroup or group.
	Path string
	// To is the resource that is named. Empty: the reference says so itself.
	To string
	// NamespacePath leads to the namespace of what is named, where the
	// reference does not hold it. Empty: that of the holder.
	NamespacePath string

	kind  schema.GroupKind // of a reference that does not say
	only  string           // the kind that counts, of references that say
	flip  bool             // the edge leads from what is named to the holder
	loose bool             // it is no fault when what is named is gone
	byUID bool             // another object of that name is not meant
	part  part             // of the references of an object, in which this one is
}

// part is which references of an object are a bundle: those that the same other objects have.
type part uint8

const (
	together part = iota // what siblings name as well
	apart                // what each of them names another one of, which others name, too
	owners               // by UID, so that it is what siblings alone name: of a Job there may be one
	parts
)

// ownerRule and the other rules below are not read at paths of their own.
var (
	ownerRule     = &compiled{id: 0, Rule: Rule{Edge: "owns", Path: "metadata.ownerReferences[*]", flip: true, byUID: true, part: owners}, why: "metadata.ownerReferences[*]"}
	sliceRule     = &compiled{id: 1, Rule: Rule{Edge: "slices", flip: true}, why: "metadata.labels['" + serviceNameLabel + "']"}
	definesRule   = &compiled{id: 2, Rule: Rule{Edge: "defines"}, why: "spec.group and spec.names"}
	namespaceRule = &compiled{id: 3, Rule: Rule{Edge: "contains"}, why: "metadata.namespace"}

	fixedRules = []*compiled{ownerRule, sliceRule, definesRule, namespaceRule}
)

const serviceNameLabel = "kubernetes.io/service-name"

// ruleID is the position of a rule in its Graph.
type ruleID uint16

// compiled is a Rule ready to be read. It is immutable, and compared by
// pointer.
type compiled struct {
	Rule
	id       ruleID
	from, to schema.GroupResource
	path     rawjson.Path
	why      string // what its edges say of themselves
}

// Check says what is wrong with a Rule, for whoever reads one from a file.
func (r Rule) Check() error {
	_, err := r.compile()
	return err
}

func (r Rule) compile() (*compiled, error) {
	c := &compiled{Rule: r, from: schema.ParseGroupResource(r.From), to: schema.ParseGroupResource(r.To)}
	if r.Edge == "" || r.From == "" {
		return nil, fmt.Errorf("a reference needs a name for its edges and a resource it is from")
	}
	var err error
	if c.path, err = rawjson.ParsePath(r.Path); err != nil {
		return nil, err
	}
	c.why = c.path.String()
	if r.NamespacePath == "" {
		return c, nil
	}
	namespace, err := rawjson.ParsePath(r.NamespacePath)
	if err != nil {
		return nil, err
	}
	if namespace.Multi() || c.path.Multi() {
		return nil, fmt.Errorf("%s with its namespace at %s: neither path may have [*], or it is not clear which belong together", c.path, namespace)
	}
	return c, nil
}

// reader takes the references out of objects of one resource. It is immutable.
type reader struct {
	rules     []*compiled // by position of the path
	extractor *rawjson.Extractor
	// namespaces maps the position of a path after those of the rules to the
	// rule whose NamespacePath it is.
	namespaces map[int]*compiled
	// selectors are those at the positions of their paths, after these.
	selectors map[int]*selectorRule
}

// readers are those of the resources that have rules or selectors. That of ""
// is for all others.
type readers map[schema.GroupResource]*reader

func newReaders(rules []*compiled) (readers, error) {
	byResource := map[schema.GroupResource][]*compiled{{}: nil}
	for resource := range selectorRules {
		byResource[resource] = nil
	}
	for _, r := range rules[len(fixedRules):] {
		byResource[r.from] = append(byResource[r.from], r)
	}
	all := readers{}
	for resource, rules := range byResource {
		r, err := newReader(resource, rules)
		if err != nil {
			return nil, fmt.Errorf("references from %s: %w", resource, err)
		}
		all[resource] = r
	}
	return all, nil
}

func (r readers) of(resource schema.GroupResource) *reader {
	if own := r[resource]; own != nil {
		return own
	}
	return r[schema.GroupResource{}]
}

// newReader makes a reader for the rules from resource.
func newReader(resource schema.GroupResource, rules []*compiled) (*reader, error) {
	r := &reader{rules: append([]*compiled{ownerRule}, rules...), namespaces: map[int]*compiled{}, selectors: map[int]*selectorRule{}}
	var paths []rawjson.Path
	for _, rule := range r.rules {
		paths = append(paths, mustPath(rule.Path))
	}
	for _, rule := range rules {
		if rule.NamespacePath != "" {
			r.namespaces[len(paths)] = rule
			paths = append(paths, mustPath(rule.NamespacePath))
		}
	}
	for _, s := range selectorRules[resource] {
		r.selectors[len(paths)] = s
		paths = append(paths, mustPath(s.Path))
	}
	var err error
	r.extractor, err = rawjson.CompileExtractor(paths)
	return r, err
}

// plain reports whether only owners are read.
func (r *reader) plain() bool { return len(r.rules) == 1 && len(r.selectors) == 0 }

func mustPath(s string) rawjson.Path {
	p, err := rawjson.ParsePath(s)
	if err != nil {
		panic(err) // built in, or checked before
	}
	return p
}

// compileRules puts the rules of a Graph in order: fixed, built-in, declared.
func compileRules(declared []Rule) ([]*compiled, error) {
	all := slices.Clone(fixedRules)
	for _, rule := range slices.Concat(builtinRules(), declared) {
		c, err := rule.compile()
		if err != nil {
			return nil, fmt.Errorf("references from %s: %w", rule.From, err)
		}
		c.id = ruleID(len(all))
		all = append(all, c)
	}
	return all, nil
}

// edgeNames lists the kinds of edges of rules, sorted.
func edgeNames(rules []*compiled) []string {
	names := []string{selects, allowsFrom, allowsTo}
	for _, r := range rules {
		names = append(names, r.Edge)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

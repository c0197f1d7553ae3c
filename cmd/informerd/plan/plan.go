// Package plan decides what is done with each resource of a cluster: it puts the
// rules of the configuration and the resources discovered together. Its
// functions are pure; nothing here watches, logs or waits.
package plan

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/discovery"
)

// Choice is what the configuration makes of one resource.
type Choice struct {
	Spec cache.Spec
	// Rule is the index of the rule that decided, -1 if none matches: then the
	// resource is not watched.
	Rule int
	// Pattern is the one of the rule's patterns that matched first.
	Pattern int
}

// Choose decides for every resource, in their order.
func Choose(rules []config.Rule, cluster string, resources []discovery.Resource) []Choice {
	all := make([]Choice, 0, len(resources))
	for _, r := range resources {
		all = append(all, choose(rules, cluster, r))
	}
	return all
}

// Specs are what choices say to do, ready for replica.Factory.Apply.
func Specs(choices []Choice) []cache.Spec {
	specs := make([]cache.Spec, len(choices))
	for i, c := range choices {
		specs[i] = c.Spec
	}
	return specs
}

// Mirrored reports whether rules have a resource, which is watched in the version that it
// names, mirrored for SQL.
func Mirrored(rules []config.Rule, gvr schema.GroupVersionResource) bool {
	i, _ := match(rules, discovery.Resource{GVR: gvr})
	return i >= 0 && rules[i].Watch && rules[i].Mirror != ""
}

// Pins are the versions that rules ask for and the cluster serves: what
// discovery is to report instead of the preferred ones.
func Pins(rules []config.Rule, resources []discovery.Resource) map[schema.GroupResource]string {
	pins := map[schema.GroupResource]string{}
	for _, r := range resources {
		if i, j := match(rules, r); i >= 0 {
			if v := rules[i].Match[j].Version(); v != "" {
				pins[r.GroupResource()] = v
			}
		}
	}
	return pins
}

// LiteralPins are the pins that can be told from the rules alone, before
// anything was discovered.
func LiteralPins(rules []config.Rule) map[schema.GroupResource]string {
	pins := map[schema.GroupResource]string{}
	for _, rule := range rules {
		for _, p := range rule.Match {
			gr, literal := p.Literal()
			if _, earlier := pins[gr]; literal && !earlier && p.Version() != "" {
				pins[gr] = p.Version()
			}
		}
	}
	return pins
}

func choose(rules []config.Rule, cluster string, r discovery.Resource) Choice {
	spec := cache.Spec{
		Resource:      cache.Resource{Cluster: cluster, GVR: r.GVR},
		Kind:          r.Kind,
		ListKind:      r.ListKind,
		Categories:    r.Categories,
		Singular:      r.Singular,
		ShortNames:    r.ShortNames,
		Namespaced:    r.Namespaced,
		Aggregated:    r.Aggregated,
		CRDUID:        r.CRDUID,
		CRDGeneration: r.CRDGeneration,
	}
	i, j := match(rules, r)
	if i < 0 {
		return Choice{Spec: spec, Rule: -1, Pattern: -1}
	}
	rule := rules[i]
	spec.Watch = rule.Watch
	if spec.Watch {
		spec.LabelSelector = rule.LabelSelector
		spec.FieldSelector = rule.FieldSelector
		spec.ShardSelector = rule.ShardSelector
		if r.Namespaced {
			spec.Namespaces = rule.Namespaces
		}
		spec.Columns = rule.Columns
		spec.Drop, spec.Redact = taken(rule, rule.Match[j], r.GroupResource())
		spec.Indexes = indexes(rule.Indexes, r.SelectableFields, spec.Drop, spec.Redact)
	}
	return Choice{Spec: spec, Rule: i, Pattern: j}
}

// match finds the first rule, and the first of its patterns, for r. A pattern
// that pins a version matches only where that version is served.
func match(rules []config.Rule, r discovery.Resource) (rule, pattern int) {
	for i := range rules {
		for j, p := range rules[i].Match {
			served := p.Version() == "" || p.Version() == r.GVR.Version || slices.Contains(r.Versions, p.Version())
			if served && p.Matches(r.GroupResource()) {
				return i, j
			}
		}
	}
	return -1, -1
}

// indexes are the rule's and those of the selectable fields it does not cover,
// which are named by their path. Fields that are taken out have no index: a
// glob's rule may meet a resource that has one of its paths redacted.
func indexes(configured map[string]string, selectable, drop, redact []string) map[string]string {
	all := map[string]string{}
	for name, path := range configured {
		if config.CheckIndex(path, drop, redact) == nil {
			all[name] = path
		}
	}
	for _, field := range selectable {
		path, err := config.CanonicalPath(field)
		if err != nil || config.CheckIndex(path, drop, redact) != nil {
			continue
		}
		_, taken := all[path]
		covered := slices.Contains(slices.Collect(maps.Values(all)), path)
		if !taken && !covered {
			all[path] = path
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

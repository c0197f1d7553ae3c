package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// Of one rule, columnSets sets of paths may be pinned, and columnPaths be in one: each set is
// gone through for all objects again and again, whether anybody asks or not, so that these are
// fewer than cache keeps of what is asked.
const (
	columnSets  = 16
	columnPaths = 16
)

// columns reads which columns are kept whether anybody asks or not, or that there are none.
func (r *reader) columns(n *yaml.Node, path string) (rules cache.ColumnRules) {
	if n.Kind != yaml.SequenceNode {
		rules.None = r.choice(n, path, "", "none") == "none"
		return rules
	}
	names := map[string]bool{}
	r.list(n, path, func(n *yaml.Node, path string) {
		set := r.paths(n, path, func(rawjson.Path) error { return nil })
		sorted := slices.Sorted(slices.Values(set))
		switch name := fmt.Sprint(sorted); {
		case n.Kind != yaml.SequenceNode:
		case len(set) > columnPaths:
			r.errorf(n, path, "has %d paths: a column is of %d at most", len(set), columnPaths)
		case len(set) == 0 && len(n.Content) == 0:
			r.errorf(n, path, "is empty: name the paths that questions read, as in [spec.nodeName]")
		case names[name]:
			r.errorf(n, path, "is given twice: the order of paths does not matter")
		default:
			names[name] = true
			rules.Pinned = append(rules.Pinned, set)
		}
	})
	switch {
	case len(n.Content) == 0:
		r.errorf(n, path, "is empty: name sets of paths, as in [[spec.nodeName]], or leave it out; none keeps no columns at all")
	case len(rules.Pinned) > columnSets:
		r.errorf(n, path, "has %d sets: %d at most can be pinned", len(rules.Pinned), columnSets)
	}
	return rules
}

// checkColumns finds out whether there is something to keep.
func (r *reader) checkColumns(n *yaml.Node, path string, rule Rule) {
	if !rule.Watch {
		r.errorf(n, path, "of what is not watched nothing is kept: leave it out beside watch: false")
		return
	}
	for _, set := range rule.Columns.Pinned {
		for _, field := range set {
			p, err := rawjson.ParsePath(field)
			if err != nil {
				continue // it was told
			}
			if _, err := rawjson.Compile(rawjson.Spec{Extract: []rawjson.Path{p}, Drop: parsed(rule.Drop)}); err != nil {
				r.errorf(n, path, "%v", err)
			}
		}
	}
}

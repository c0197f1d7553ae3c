package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// placed is a pattern and where it stands.
type placed struct {
	Pattern
	path string
	line int
}

// rules reads the list of rules. A pattern that an earlier one leaves nothing to
// match is a mistake.
func (r *reader) rules(n *yaml.Node, path string) []Rule {
	all := []Rule{}
	var seen []placed
	r.list(n, path, func(n *yaml.Node, path string) {
		all = append(all, r.rule(n, path, &seen))
	})
	if n.Kind == yaml.SequenceNode && len(all) == 0 {
		r.errorf(n, path, "has no rules and would watch nothing: leave it out for the built-in rules")
	}
	return all
}

func (r *reader) rule(n *yaml.Node, path string, seen *[]placed) Rule {
	rule := Rule{Watch: true, Drop: DefaultDrop(), Line: n.Line}
	matched := false
	var mirror, columns *yaml.Node
	var indexes []indexed
	r.mapping(n, path, fieldsOf{
		"match": func(n *yaml.Node, path string) {
			matched = true
			rule.Match = r.patterns(n, path, seen)
		},
		"watch":         func(n *yaml.Node, path string) { rule.Watch = r.boolean(n, path, true) },
		"namespaces":    func(n *yaml.Node, path string) { rule.Namespaces = r.texts(n, path, checkNamespaceGlob) },
		"labelSelector": func(n *yaml.Node, path string) { rule.LabelSelector, _ = r.checked(n, path, checkLabelSelector) },
		"fieldSelector": func(n *yaml.Node, path string) { rule.FieldSelector, _ = r.checked(n, path, checkFieldSelector) },
		"shardSelector": func(n *yaml.Node, path string) { rule.ShardSelector, _ = r.checked(n, path, checkShardSelector) },
		"indexes":       func(n *yaml.Node, path string) { rule.Indexes, indexes = r.indexes(n, path) },
		"drop":          func(n *yaml.Node, path string) { rule.Drop = r.cuts(n, path, drop) },
		"redact":        func(n *yaml.Node, path string) { rule.Redact = r.cuts(n, path, redact) },
		"columns":       func(n *yaml.Node, path string) { rule.Columns, columns = r.columns(n, path), n },
		"mirror":        func(n *yaml.Node, path string) { rule.Mirror, mirror = r.mirror(n, path), n },
	})
	if rule.Mirror != "" {
		r.checkMirror(mirror, join(path, "mirror"), rule.Watch)
	}
	if columns != nil {
		r.checkColumns(columns, join(path, "columns"), rule)
	}
	r.compile(n, path, indexes, rule)
	if !matched && n.Kind == yaml.MappingNode {
		r.errorf(n, path, `needs match: the resources it is for, such as match: [pods] or match: ["*"]`)
	}
	return rule
}

// mirror reads whether objects are mirrored for SQL.
func (r *reader) mirror(n *yaml.Node, path string) string {
	const none = "none"
	if word := r.choice(n, path, none, MirrorJSONB, none); word != none {
		return word
	}
	return ""
}

// checkMirror finds out whether there is something to mirror, and a place for it.
func (r *reader) checkMirror(n *yaml.Node, path string, watched bool) {
	if !watched {
		r.errorf(n, path, "what is not watched is not mirrored: leave it out beside watch: false")
		return
	}
	r.later = append(r.later, func(c *Config) {
		if c.Snapshot.Postgres == nil {
			r.errorf(n, path, "needs snapshot.postgres: the mirror is in the database of the snapshot")
		}
	})
}

func (r *reader) patterns(n *yaml.Node, path string, seen *[]placed) []Pattern {
	all := []Pattern{}
	r.list(n, path, func(n *yaml.Node, path string) {
		text, ok := r.text(n, path)
		if !ok {
			return
		}
		p, err := ParsePattern(text)
		if err != nil {
			r.errorf(n, path, "%v", err)
			return
		}
		for _, s := range *seen {
			if s.covers(p) {
				r.errorf(n, path, "%q is never reached: %s, %q on line %d, comes first and matches it", text, s.path, s.Pattern, s.line)
				return
			}
		}
		*seen = append(*seen, placed{p, path, n.Line})
		all = append(all, p)
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.errorf(n, path, `is empty: name the resources it is for, such as [pods] or ["*"]`)
	}
	return all
}

// indexed is an index and where it stands.
type indexed struct {
	field, path string
	node        *yaml.Node
}

var indexName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

func (r *reader) indexes(n *yaml.Node, path string) (map[string]string, []indexed) {
	byName, places := map[string]string{}, []indexed{}
	names := map[string]string{} // by path
	r.pairs(n, path, func(key, value *yaml.Node) {
		path := join(path, key.Value)
		if err := checkIndexName(key.Value); err != nil {
			r.errorf(key, path, "%v", err)
			return
		}
		text, ok := r.text(value, path)
		if !ok {
			return
		}
		p, err := readPath(text)
		if err != nil {
			r.errorf(value, path, "%v", err)
			return
		}
		if name, twice := names[p.String()]; twice {
			r.errorf(value, path, "%s is indexed already, as %q", p, name)
			return
		}
		names[p.String()] = key.Value
		byName[key.Value] = p.String()
		places = append(places, indexed{p.String(), path, value})
	})
	return byName, places
}

func checkIndexName(name string) error {
	switch {
	case name == cache.NamespaceIndex || name == cache.LabelIndex || name == cache.OwnerIndex:
		return fmt.Errorf("the index %q is built in: choose another name", name)
	case !indexName.MatchString(name):
		return fmt.Errorf("bad index name %q: lower-case letters, digits, - and _, a letter first", name)
	}
	return nil
}

var namespaceGlob = regexp.MustCompile(`^[a-z0-9*?\[\]^-]+$`)

func checkNamespaceGlob(glob string) error {
	switch {
	case badGlob(glob):
		return fmt.Errorf("bad glob %q: a [ needs its ], as in shop-[a-z]*", glob)
	case !namespaceGlob.MatchString(glob):
		return fmt.Errorf("bad namespace %q: lower-case letters, digits and -, or a glob of them such as shop-*", glob)
	}
	return nil
}

func checkLabelSelector(selector string) error {
	if _, err := labels.Parse(selector); err != nil {
		return fmt.Errorf("bad label selector %q: %v: write one such as app=shop,tier in (web, db),!canary", selector, err)
	}
	return nil
}

func checkFieldSelector(selector string) error {
	if _, err := fields.ParseSelector(selector); err != nil {
		return fmt.Errorf("bad field selector %q: %v: write one such as spec.nodeName=n1,status.phase!=Failed", selector, err)
	}
	return nil
}

func checkShardSelector(selector string) error {
	if _, err := cache.ParseShard(selector); err != nil {
		return fmt.Errorf("bad shard selector %q: %s: write one such as shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')", selector, strings.TrimPrefix(err.Error(), "shardSelector: "))
	}
	return nil
}

// readPath reads a field path and returns its canonical form.
func readPath(text string) (rawjson.Path, error) {
	p, err := rawjson.ParsePath(text)
	if err != nil {
		return p, fmt.Errorf("bad %w", err)
	}
	return p, nil
}

// cuts reads the paths that are to be dropped or redacted; spec
// makes of one what tells whether it may be.
func (r *reader) cuts(n *yaml.Node, path string, spec func(rawjson.Path) rawjson.Spec) []string {
	return r.paths(n, path, func(p rawjson.Path) error {
		_, err := rawjson.Compile(spec(p))
		return err
	})
}

// paths reads a list of field paths that check accepts, in their canonical form.
func (r *reader) paths(n *yaml.Node, path string, check func(rawjson.Path) error) []string {
	all := r.texts(n, path, func(text string) error {
		p, err := readPath(text)
		if err != nil {
			return err
		}
		return check(p)
	})
	for i, text := range all {
		p, _ := rawjson.ParsePath(text)
		all[i] = p.String()
	}
	return all
}

func drop(p rawjson.Path) rawjson.Spec   { return rawjson.Spec{Drop: []rawjson.Path{p}} }
func redact(p rawjson.Path) rawjson.Spec { return rawjson.Spec{Redact: []rawjson.Path{p}} }

// compile checks what only shows when all paths of a rule are seen together:
// indexes of what it takes out itself.
func (r *reader) compile(n *yaml.Node, path string, indexes []indexed, rule Rule) {
	before := len(r.errs)
	for _, x := range indexes {
		if err := CheckIndex(x.field, rule.Drop, rule.Redact); err != nil {
			r.errorf(x.node, x.path, "%v", err)
		}
	}
	if len(r.errs) > before {
		return
	}
	all := rawjson.Spec{
		Extract: parsed(slices.Sorted(maps.Values(rule.Indexes))),
		Drop:    parsed(rule.Drop),
		Redact:  parsed(rule.Redact),
	}
	if _, err := rawjson.Compile(all); err != nil {
		r.errorf(n, path, "%v", err)
	}
}

// CheckIndex tells why field cannot be indexed while drop and redact are taken
// out of objects.
func CheckIndex(field string, drop, redact []string) error {
	p, err := rawjson.ParsePath(field)
	if err != nil {
		return err
	}
	_, err = rawjson.Compile(rawjson.Spec{Extract: []rawjson.Path{p}, Drop: parsed(drop), Redact: parsed(redact)})
	return err
}

// parsed are paths that were checked before.
func parsed(texts []string) []rawjson.Path {
	var all []rawjson.Path
	for _, text := range texts {
		if p, err := rawjson.ParsePath(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// CanonicalPath is the one way to write a field path, which equal paths share.
func CanonicalPath(text string) (string, error) {
	p, err := readPath(text)
	return p.String(), err
}

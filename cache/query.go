package cache

import (
	"crypto/sha256"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache/rawjson"
)

// Query selects objects of one Store. The zero Query selects all. It is a
// value: once given away it must not be modified.
type Query struct {
	// Namespaces are globs (*, ?, [a-z]) over namespaces; none and "*" mean all.
	// Nothing else matches an object of cluster scope.
	Namespaces []string
	// Labels selects by labels; nil means all.
	Labels labels.Selector
	// Fields selects by field values; its zero value means all.
	Fields FieldSelector
	// Terms are indexed values that must all hold.
	Terms []Term
	// Shard selects by a hash; nil means all.
	Shard *Shard
	// Filter selects by the whole of the object; nil means all.
	Filter Filter
	// Sort orders the objects; none means by namespace and name, which also
	// decides between objects that are equal in it.
	Sort Order
	// Reads are what else the answer will read of all objects that are found, and nothing
	// beyond: sets of paths, each of which is read by itself. Result has it at hand then where
	// it has been asked about again and again. It has no part in what is found.
	Reads [][]rawjson.Path
}

// Pinned are the indexed values that all have which q selects, as far as it asks for some. Of two
// the first is the one that fewer are likely to have.
func (q Query) Pinned() (all []Term) {
	all = slices.Clone(q.Terms)
	slices.Reverse(all) // the path of a request names the last one
	if len(q.Namespaces) == 1 && !isGlob(q.Namespaces[0]) {
		all = append(all, Term{NamespaceIndex, q.Namespaces[0]})
	}
	return all
}

// digest tells queries apart, for continue tokens.
func (q Query) digest() [sha256.Size]byte {
	var b strings.Builder
	part := func(kind string, values ...string) {
		for _, v := range values {
			b.WriteString(kind)
			b.WriteString(v)
			b.WriteByte(0)
		}
	}
	namespaces := slices.Clone(q.Namespaces)
	slices.Sort(namespaces)
	part("n", namespaces...)
	if q.Labels != nil && !q.Labels.Empty() {
		part("l", q.Labels.String())
	}
	part("f", q.Fields.String())
	for _, t := range q.Terms {
		part("t", t.Index, t.Value)
	}
	part("s", q.Sort.String())
	if q.Filter != nil {
		part("c", q.Filter.String())
	}
	if q.Shard != nil {
		part("h", q.Shard.String())
	}
	return sha256.Sum256([]byte(b.String()))
}

// namespaceFilter is a compiled list of namespace globs; nil lets all pass.
type namespaceFilter []string

func newNamespaceFilter(globs []string) (namespaceFilter, error) {
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil {
			return nil, invalidf("namespaces", "%q is not a glob: %v", g, err)
		}
	}
	if slices.Contains(globs, "*") {
		return nil, nil // objects of cluster scope included
	}
	return slices.Clone(globs), nil
}

func (f namespaceFilter) match(namespace string) bool {
	if len(f) == 0 {
		return true
	}
	if namespace == "" {
		return false
	}
	return slices.ContainsFunc(f, func(glob string) bool {
		ok, _ := path.Match(glob, namespace)
		return ok
	})
}

// matchNamespace reports whether Spec.Namespaces lets namespace pass.
func matchNamespace(globs []string, namespace string) bool {
	return slices.Contains(globs, "*") || namespaceFilter(globs).match(namespace)
}

// IsGlob reports whether s may stand for several namespaces.
func IsGlob(s string) bool { return isGlob(s) }

func isGlob(s string) bool { return strings.ContainsAny(s, `*?[\`) }

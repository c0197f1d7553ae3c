package cache

import (
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"k8s.io/apimachinery/pkg/labels"
)

// prefixTest is a FieldPrefix that an index answers.
type prefixTest struct {
	index, prefix string
}

func newPrefixTest(p FieldPrefix, e *extraction) (prefixTest, bool) {
	if p.Path.String() == "metadata.namespace" {
		return prefixTest{NamespaceIndex, p.Prefix}, true
	}
	name, ok := e.indexOf(p.Path)
	return prefixTest{name, p.Prefix}, ok && len(p.Prefix) <= maxIndexedValue
}

// addPrefix lets pass what an index has under values with the prefix, and what
// it has under no value at all: that may be too long to be indexed. (With
// several values at a path some could be indexed and others not, which is why a
// FieldPrefix has no [*].)
func (p *planner) addPrefix(t prefixTest, live *roaring.Bitmap) {
	idx := p.indexes[t.index]
	if idx == nil {
		return
	}
	var postings []*posting
	for h, posting := range idx.postings {
		if strings.HasPrefix(h.Value().Value, t.prefix) {
			postings = append(postings, posting)
		}
	}
	if idx.grouped() {
		rest := live.Clone()
		if group := idx.groups[""]; group != nil {
			rest.AndNot(group.bitmap())
		}
		postings = append(postings, &posting{bits: rest})
	}
	p.require(t.index, postings...)
}

// hint makes tests of what f demands and indexes can answer. JSON in which a
// key may occur twice has another opinion about its values than the indexes.
func (m *Matcher) hint(f Filter, e *extraction, unique bool) {
	if f == nil || !unique {
		return
	}
	h := f.Hints()
	for _, r := range h.Fields {
		t := newFieldTest(r, e)
		m.noteUnindexed(t)
		if t.identity != nil || t.handles != nil {
			m.fields = append(m.fields, t)
		}
	}
	for _, p := range h.Prefixes {
		if t, ok := newPrefixTest(p, e); ok {
			m.prefixes = append(m.prefixes, t)
		}
	}
	if len(h.Labels) == 0 {
		return
	}
	if m.labels == nil {
		m.labels = labels.NewSelector()
	}
	m.labels = m.labels.Add(h.Labels...)
}

package cache

import (
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache/rawjson"
)

// Filter is a condition on the JSON of objects that selectors cannot express.
// Implementations are immutable and safe for concurrent use.
type Filter interface {
	// String tells filters apart.
	String() string
	// Match evaluates the condition and says what that cost, in units of the
	// implementation's own. An *EvalError means that the condition has no value
	// for this object; every other error ends the query.
	Match(json []byte) (ok bool, cost uint64, err error)
	// Hints are conditions that indexes may be able to check beforehand.
	Hints() Hints
	// Clock reports whether the result depends on the time.
	Clock() bool
}

// Hints are conditions that each hold for every object a Filter matches. They
// may leave objects in that it does not match, never the other way round.
type Hints struct {
	// Fields are of the operators Equals, NotEquals and In. Unlike in a
	// FieldSelector a value is there only if it is a string, number or bool.
	Fields []FieldRequirement
	Labels []labels.Requirement
	// Prefixes are of strings at paths without [*].
	Prefixes []FieldPrefix
}

// FieldPrefix says how the string at a path begins.
type FieldPrefix struct {
	Path   rawjson.Path
	Prefix string
}

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

// maxScanCost bounds what a Filter may cost over all objects of one Select:
// about half a minute of one processor.
const maxScanCost = 1_000_000_000

// Faults counts the objects for which a Filter had no value, which did not match
// for that reason alone.
type Faults struct {
	Count int
	// First is the message of the first of them in the order of keys, and Key
	// the object.
	First string
	Key   Key
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

package cache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/informerd/informerd/cache/rawjson"
)

// maxIndexedValue is the longest value an index takes. Longer ones are prose or
// data rather than something to look up; they are counted and left out, and a
// term of longIndex says so.
const maxIndexedValue = 1 << 10

// termsVersion is that of Object.Terms in snapshots. From 1 on they say which
// indexes lack a value for its length.
const termsVersion = 1

// generations numbers extractions, of all Stores: an Object says by the number of
// which it is.
var generations atomic.Uint32

// extraction is what a Store keeps of raw objects and takes from them: a Spec made
// ready. It is immutable; a Store publishes the present one.
type extraction struct {
	generation uint32
	// earlier are the generations of the same Spec under other index definitions.
	// Their objects have the same content and only lack the terms of this one.
	earlier     []uint32
	spec        Spec // but for Indexes, which are definitions
	filter      namespaceFilter
	shard       *Shard // nil: all of them
	program     *rawjson.Program
	names       []string // of indexes, sorted
	paths       []rawjson.Path
	drop        []rawjson.Path // as the program does
	redact      []rawjson.Path
	definitions map[string]string
	unique      bool // no key occurs twice in the JSON
}

func compileExtraction(spec Spec) (*extraction, error) {
	e := &extraction{
		generation:  generations.Add(1),
		spec:        spec,
		definitions: maps.Clone(spec.Indexes),
		names:       slices.Sorted(maps.Keys(spec.Indexes)),
		unique:      !spec.Aggregated,
	}
	for _, name := range e.names {
		if name == "" || isBuiltinIndex(name) || isLong(name) {
			return nil, invalidf("indexes", "%q cannot be the name of an index: it is empty or built in", name)
		}
		p, err := rawjson.ParsePath(spec.Indexes[name])
		if err != nil {
			return nil, invalidf("indexes."+name, "%v", err)
		}
		e.paths = append(e.paths, p)
	}
	drop, err := parsePaths("drop", spec.Drop)
	if err != nil {
		return nil, err
	}
	redact, err := parsePaths("redact", spec.Redact)
	if err != nil {
		return nil, err
	}
	e.drop, e.redact = drop, redact
	if len(redact) > 0 {
		e.drop = append(slices.Clone(drop), rawjson.LastApplied)
	}
	if e.filter, err = newNamespaceFilter(spec.Namespaces); err != nil {
		return nil, err
	}
	if e.shard, err = ParseShard(spec.ShardSelector); err != nil {
		return nil, err
	}
	e.program, err = rawjson.Compile(rawjson.Spec{Extract: e.paths, Drop: drop, Redact: redact})
	if err != nil {
		return nil, invalidf("paths", "%v", err)
	}
	return e, nil
}

// holds reports whether an object belongs to the copy, as far as it is not the API server
// that selects.
func (e *extraction) holds(namespace, uid string) bool {
	return e.filter.match(namespace) && (e.shard == nil || e.shard.holds(namespace, uid))
}

// withIndexes is e under other index definitions.
func (e *extraction) withIndexes(definitions map[string]string) (*extraction, error) {
	spec := e.spec
	spec.Indexes = definitions
	next, err := compileExtraction(spec)
	if err != nil {
		return nil, err
	}
	next.earlier = append(slices.Clone(e.earlier), e.generation)
	return next, nil
}

// made reports whether o was read under the Spec of e.
func (e *extraction) made(o *Object) bool {
	return o.generation == e.generation || slices.Contains(e.earlier, o.generation)
}

// superseded are the generations of Specs in whose place a Store has taken another.
// Their objects may hold what is to be seen by nobody any more.
var superseded sync.Map

// supersede makes it known that the Store of e goes on under another Spec.
func (e *extraction) supersede() {
	for _, generation := range e.earlier {
		superseded.Store(generation, nil)
	}
	superseded.Store(e.generation, nil)
}

// outdated reports whether o was read under a Spec that its Store had before.
func (o *Object) outdated() bool {
	_, is := superseded.Load(o.generation)
	return is
}

// covers reports whether o was not read under a former Spec of the Store, so that it
// has what the present one keeps and nothing else.
func (e *extraction) covers(o *Object) bool { return o.generation == e.generation || !o.outdated() }

func parsePaths(parameter string, paths []string) ([]rawjson.Path, error) {
	var out []rawjson.Path
	for _, s := range paths {
		p, err := rawjson.ParsePath(s)
		if err != nil {
			return nil, invalidf(parameter, "%v", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// indexOf returns the name of an index whose values are those at path.
func (e *extraction) indexOf(path rawjson.Path) (string, bool) {
	if i := slices.Index(e.paths, path); i >= 0 {
		return e.names[i], true
	}
	return "", false
}

var errNoName = errors.New("object has no metadata.name")

// object reads raw. Its data is not set yet: the JSON to keep is appended to
// buf. unindexed is how many values could not be indexed.
func (e *extraction) object(raw, buf []byte, apiVersion, kind string) (o *Object, plain []byte, unindexed int, err error) {
	r := recents.Get().(*recent)
	defer recents.Put(r)
	doc := &r.doc
	if err := r.siblings.Run(e.program, raw, doc); err != nil {
		return nil, buf, 0, fmt.Errorf("decode object: %w", err)
	}
	id := identity{string(doc.Namespace), string(doc.Name), string(doc.UID), string(doc.ResourceVersion)}
	if !id.valid() {
		return nil, buf, 0, errNoName
	}
	o = &Object{generation: e.generation}
	o.setIdentity(id)
	if t, err := time.Parse(time.RFC3339, string(doc.CreationTimestamp)); err == nil {
		o.created = t.Unix()
	}
	common, own, unindexed := e.terms(r)
	o.setTerms(common, own)
	plain = doc.AppendJSON(buf, apiVersion, kind)
	o.size = uint32(len(plain) - len(buf))
	return o, plain, unindexed, nil
}

// terms returns the indexed values of what r has read: namespace, labels, owners, then the
// configured indexes in the order of their names. What changes here changes
// termsVersion. What of them is common may be what the object before has.
func (e *extraction) terms(r *recent) (common *commonTerms, own []handle, unindexed int) {
	doc := &r.doc
	terms := r.handles[:0]
	add := func(index string, value []byte) { terms = append(terms, r.intern(len(terms), index, value)) }
	if len(doc.Namespace) > 0 {
		add(NamespaceIndex, doc.Namespace)
	}
	for _, l := range doc.Labels {
		r.text = append(append(append(r.text[:0], l.Key...), '='), l.Value...)
		add(LabelIndex, r.text)
	}
	for _, owner := range doc.Owners {
		if len(owner.UID) > 0 {
			add(OwnerIndex, owner.UID)
		}
	}
	for _, v := range doc.Values {
		switch {
		case v.Kind == rawjson.Null:
		case v.Kind == rawjson.Object, v.Kind == rawjson.Array:
			unindexed++
		case len(v.Text) > maxIndexedValue:
			unindexed++
			add(longIndex(e.names[v.Path]), []byte(longValue))
		default:
			add(e.names[v.Path], v.Text)
		}
	}
	r.handles = terms
	r.common, own = split(uniqueTerms(terms), r.common)
	clear(r.handles) // none is kept alive for the next object
	return r.common, own, unindexed
}

func indexable(v rawjson.Value) bool {
	switch v.Kind {
	case rawjson.String, rawjson.Number, rawjson.Bool:
		return len(v.Text) <= maxIndexedValue
	default:
		return false
	}
}

// reindex returns o with its terms taken anew.
func (e *extraction) reindex(o *Object) (*Object, int, error) {
	buf := buffers.get()
	plain, err := o.AppendJSON((*buf)[:0])
	defer buffers.put(buf, plain)
	if err != nil {
		return nil, 0, err
	}
	r := recents.Get().(*recent)
	defer recents.Put(r)
	if err := r.siblings.Run(e.program, plain, &r.doc); err != nil {
		return nil, 0, fmt.Errorf("read stored object: %w", err)
	}
	r.common = o.common // which index definitions do not change
	common, own, unindexed := e.terms(r)
	return o.reindexed(common, own, e.generation), unindexed, nil
}

package cache

import (
	"context"
	"slices"
	"sync"

	"github.com/informerd/informerd/cache/rawjson"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Matcher is a compiled Query. It tells of any object of its Store, old
// versions included, whether Select would return it. It is immutable and safe
// for concurrent use.
type Matcher struct {
	query      Query
	scope      Scope // what may be seen: it comes before all that costs, counts or fails
	extraction *extraction
	namespaces namespaceFilter
	labels     labels.Selector // nil: all
	terms      []termTest
	fields     []fieldTest
	ranges     []rangeTest
	unhelped   []rawjson.Path // an index would have helped there
	// scan holds the tests that need the JSON of an object whose terms were
	// taken under the same definitions.
	scan scanner
	// scanAll holds all tests of fields, for objects of other definitions.
	scanAll func() (scanner, error)
}

// termTest is one of Query.Terms.
type termTest struct {
	Term
	handle  handle
	path    rawjson.Path // of a configured index
	builtin bool
}

// fieldTest is one requirement of a FieldSelector.
type fieldTest struct {
	FieldRequirement
	identity func(*Object) string // where the path is part of the identity
	handles  []handle             // where an index answers it, one for each value
}

// identityFields are answered from the identity that every Object has at hand.
var identityFields = map[string]func(*Object) string{
	"metadata.name":            (*Object).Name,
	"metadata.namespace":       (*Object).Namespace,
	"metadata.uid":             (*Object).UID,
	"metadata.resourceVersion": (*Object).ResourceVersion,
}

// Matcher compiles q. It returns an *InvalidError for an index the Store does
// not have, for a field that its Spec drops or redacts, and for a malformed glob.
func (s *Store) Matcher(q Query) (*Matcher, error) {
	return newMatcher(q, WholeScope(), s.extraction.Load())
}

func newMatcher(q Query, scope Scope, e *extraction) (*Matcher, error) {
	m := &Matcher{query: q, scope: scope, extraction: e}
	var err error
	if m.namespaces, err = newNamespaceFilter(q.Namespaces); err != nil {
		return nil, err
	}
	if q.Labels != nil && !q.Labels.Empty() {
		m.labels = q.Labels
	}
	for _, t := range q.Terms {
		test, err := newTermTest(t, e)
		if err != nil {
			return nil, err
		}
		m.terms = append(m.terms, test)
	}
	for _, r := range q.Fields.requirements {
		if err := e.hides(r); err != nil {
			return nil, err
		}
		m.addField(r, e)
	}
	if err := e.hidesAll(q.Filter); err != nil {
		return nil, err
	}
	m.hint(q.Filter, e)
	if m.scan, err = newScanner(m.unindexed(), nil, q.Filter, e); err != nil {
		return nil, invalidf("fieldSelector", "%v", err)
	}
	m.scanAll = sync.OnceValues(func() (scanner, error) {
		return newScanner(m.byPath(), m.indexTerms(), q.Filter, e)
	})
	return m, nil
}

func (m *Matcher) addField(r FieldRequirement, e *extraction) {
	t := newFieldTest(r, e)
	m.fields = append(m.fields, t)
	m.noteUnindexed(t)
}

// noteUnindexed remembers where an index would have helped.
func (m *Matcher) noteUnindexed(t fieldTest) {
	byValue := (t.Operator == selection.Equals || t.Operator == selection.In) && !slices.Contains(t.Values, "")
	if byValue && t.identity == nil && t.handles == nil {
		m.noteUnhelped(t.Path)
	}
}

func (m *Matcher) noteUnhelped(path rawjson.Path) {
	if !slices.Contains(m.unhelped, path) {
		m.unhelped = append(m.unhelped, path)
	}
}

func newTermTest(t Term, e *extraction) (termTest, error) {
	test := termTest{Term: t, handle: intern(t.Index, t.Value), builtin: isBuiltinIndex(t.Index)}
	if test.builtin {
		return test, nil
	}
	i := slices.Index(e.names, t.Index)
	if i < 0 {
		return test, e.unknownIndex(t.Index)
	}
	test.path = e.paths[i]
	return test, nil
}

func newFieldTest(r FieldRequirement, e *extraction) fieldTest {
	t := fieldTest{FieldRequirement: r, identity: identityFields[r.Path.String()]}
	name, ok := e.indexOf(r.Path)
	if !ok || t.identity != nil || len(r.Values) == 0 {
		return t
	}
	for _, v := range r.Values {
		if v == "" || len(v) > maxIndexedValue {
			// "" also stands for what is missing, and long values are not indexed.
			return t
		}
	}
	for _, v := range r.Values {
		t.handles = append(t.handles, intern(name, v))
	}
	return t
}

// unindexed lists what needs the JSON even under the same definitions.
func (m *Matcher) unindexed() []FieldRequirement {
	var out []FieldRequirement
	for _, f := range m.fields {
		if !f.held() {
			out = append(out, f.FieldRequirement)
		}
	}
	return out
}

// byPath lists what the JSON has to answer when no index can.
func (m *Matcher) byPath() []FieldRequirement {
	var out []FieldRequirement
	for _, f := range m.fields {
		if f.identity == nil {
			out = append(out, f.FieldRequirement)
		}
	}
	return out
}

// indexTerms lists the terms of configured indexes.
func (m *Matcher) indexTerms() []termTest {
	return slices.DeleteFunc(slices.Clone(m.terms), func(t termTest) bool { return t.builtin })
}

// Match reports whether o matches. An *EvalError says that the Filter has no
// value for o, which then does not match. Other errors are a *CostError of the
// Filter, or JSON that cannot be unpacked or read.
func (m *Matcher) Match(ctx context.Context, o *Object) (bool, error) {
	current := o.generation == m.extraction.generation
	if !m.matchHeld(o, current) {
		return false, nil
	}
	scan := m.scan
	if !current {
		var err error
		if scan, err = m.scanAll(); err != nil {
			return false, err
		}
	}
	if scan.empty() {
		return true, nil
	}
	buf := buffers.get()
	plain, err := o.AppendJSON((*buf)[:0])
	defer buffers.put(buf, plain)
	if err != nil {
		return false, err
	}
	ok, _, err := scan.match(ctx, plain)
	return ok, err
}

// holdsAll reports whether matchHeld is true of all objects, which it need not look at then.
func (m *Matcher) holdsAll() bool {
	return m.scope.all && m.query.Shard == nil && m.labels == nil &&
		len(m.namespaces)+len(m.terms)+len(m.ranges) == 0 && !slices.ContainsFunc(m.fields, fieldTest.held)
}

// matchHeld tests all that needs no JSON. current says that the terms of o were
// taken under the definitions m was made for.
func (m *Matcher) matchHeld(o *Object, current bool) bool {
	if !m.scope.all && !m.scope.Sees(o.Key()) {
		return false
	}
	if !m.namespaces.match(o.Namespace()) {
		return false
	}
	for _, t := range m.terms {
		if (t.builtin || current) && !o.has(t.handle) {
			return false
		}
	}
	for _, f := range m.fields {
		if !f.matchHeld(o, current) {
			return false
		}
	}
	for _, t := range m.ranges {
		if t.held != nil && !t.held(o) {
			return false
		}
	}
	if m.labels != nil && !m.labels.Matches(o.Labels()) {
		return false
	}
	return m.query.Shard == nil || m.query.Shard.has(o)
}

// held reports whether what is held decides.
func (f fieldTest) held() bool { return f.identity != nil || f.handles != nil }

// matchHeld is true where the JSON has to tell.
func (f *fieldTest) matchHeld(o *Object, current bool) bool {
	switch {
	case f.identity != nil:
		v := f.identity(o)
		return f.result(v != "", slices.Contains(f.Values, v))
	case f.handles != nil && current:
		return f.result(true, slices.ContainsFunc(f.handles, o.has))
	default:
		return true
	}
}

// result decides a requirement: exists says that there is a value, hit that one
// of the values is among the wanted ones.
func (r FieldRequirement) result(exists, hit bool) bool {
	if r.Operator == selection.Exists || r.Operator == selection.DoesNotExist {
		hit = exists
	}
	return hit != r.negated()
}

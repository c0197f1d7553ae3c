package cache

import (
	"cmp"
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/informerd/informerd/cache/rawjson"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Result is the answer to a Query: objects ordered by namespace and name, all at
// one version.
type Result struct {
	Version  string
	Revision uint64
	Objects  []*Object
	Plan     Plan
	Faults   Faults

	located located // the same Objects, and those that were cut off after them
	unique  bool    // no key occurs twice in their JSON
}

// Plan says how an answer was found.
type Plan struct {
	// Indexes are the names of the indexes that were used.
	Indexes []string
	// Candidates is how many objects the indexes left.
	Candidates int
	// Scanned is how many of them had their JSON read to decide.
	Scanned int
	// Excerpts is of how many of those what is read had been kept by the questions before. It
	// is told, as Columns are, to those alone who see all.
	Excerpts int
	// Columns are the paths of the columns that were at hand, each of one or several.
	Columns []string
	// Sorted is the index in whose order objects were found, empty if they were
	// sorted or have the order of keys.
	Sorted string
	// Unindexed are the paths that values are wanted at and no index covers.
	Unindexed []rawjson.Path
	// Unsorted are the paths sorted by whose values were read from the JSON.
	Unsorted []rawjson.Path
}

// Select returns the objects that match q. It takes them at one version and
// holds no lock while it matches what the indexes cannot answer.
func (s *Store) Select(ctx context.Context, q Query) (*Result, error) {
	m, err := s.Matcher(q)
	if err != nil {
		return nil, err
	}
	return s.selected(ctx, m)
}

func (s *Store) selected(ctx context.Context, m *Matcher) (*Result, error) {
	found, err := s.candidates(m)
	if err != nil {
		return nil, err
	}
	found.plan.Unindexed = found.matcher.unhelped
	result := &Result{Version: found.version, Revision: found.revision, Plan: found.plan, unique: found.matcher.extraction.unique}
	all := found.ordered()
	all.tidy()
	looked := len(all.objects)
	result.Plan.Candidates = looked + all.ruledOut
	kept, err := found.matcher.filter(ctx, all)
	if err != nil {
		return nil, err
	}
	kept.settle(looked)
	if result.Plan.Unsorted, err = found.matcher.sort(ctx, &kept.located); err != nil {
		return nil, err
	}
	result.located, result.Objects = kept.located, kept.objects
	result.Plan.Scanned, result.Faults = kept.scanned, kept.faults
	if m.scope.all { // columns depend on what is not seen, and on what others ask
		result.Plan.Excerpts = kept.excerpts
		for _, at := range kept.columns {
			result.Plan.Columns = append(result.Plan.Columns, at.name)
		}
	}
	return result, nil
}

// currentLocked returns m for the index definitions of the moment.
func (s *Store) currentLocked(m *Matcher) (*Matcher, error) {
	if e := s.extraction.Load(); m.extraction != e {
		return newMatcher(m.query, m.scope, e)
	}
	return m, nil
}

// keys lists the only objects that can match, where the query names them.
func (m *Matcher) keys(namespaced bool) (keys []Key, ok bool) {
	name, ok := m.fieldValue("metadata.name")
	if !ok {
		return nil, false
	}
	namespaces := m.query.Namespaces
	if ns, ok := m.fieldValue("metadata.namespace"); ok {
		namespaces = []string{ns}
	} else if !namespaced {
		namespaces = []string{""}
	}
	if len(namespaces) == 0 || slices.ContainsFunc(namespaces, isGlob) {
		return nil, false
	}
	for _, ns := range namespaces {
		keys = append(keys, Key{ns, name})
	}
	slices.SortFunc(keys, Key.Compare)
	return slices.Compact(keys), true
}

// fieldValue returns the value that the query demands of a field.
func (m *Matcher) fieldValue(path string) (string, bool) {
	for _, f := range m.fields {
		if f.Operator == selection.Equals && f.Path.String() == path {
			return f.Values[0], true
		}
	}
	return "", false
}

func (c *contents) getAll(keys []Key, scope Scope) []entry {
	all := make([]entry, 0, len(keys))
	for _, k := range keys {
		if e, ok := c.tree.Get(probe(k)); ok && scope.Sees(k) {
			all = append(all, e)
		}
	}
	return all
}

func (c *contents) collect(rows rowSet) []entry {
	all := make([]entry, 0, rows.len())
	rows.each(func(row uint32) {
		all = append(all, entry{c.rows[row], row})
	})
	return all
}

// planner turns a query into sets of rows. All that its sets leave out does not
// match; what they let through may still have to be matched. How it decides depends
// on rows that are seen alone: a plan is shown to whoever asks.
type planner struct {
	indexes indexes
	seen    *roaring.Bitmap // nil: all
	include []union         // a row must be in each of them
	exclude []*posting
	names   []string
	none    bool // nothing can match
}

// newPlanner knows what the indexes can tell of the query of m, but for ranges.
func newPlanner(c *contents, m *Matcher) planner {
	p := planner{indexes: c.indexes, seen: c.seenBy(m.scope)}
	p.add(m)
	if p.seen != nil {
		n := int(p.seen.GetCardinality())
		p.none = p.none || n == 0
		p.include = append(p.include, union{[]*posting{{bits: p.seen}}, n})
	}
	return p
}

// union is the rows of several postings.
type union struct {
	postings []*posting
	size     int // of those that are seen, at most
}

func (u union) has(row uint32) bool {
	for _, p := range u.postings {
		if p.has(row) {
			return true
		}
	}
	return false
}

func (u union) bitmap() *roaring.Bitmap {
	if len(u.postings) == 1 {
		return u.postings[0].bitmap()
	}
	bitmaps := make([]*roaring.Bitmap, len(u.postings))
	for i, p := range u.postings {
		bitmaps[i] = p.bitmap()
	}
	return roaring.FastOr(bitmaps...)
}

func (p *planner) used(index string) {
	if !slices.Contains(p.names, index) {
		p.names = append(p.names, index)
	}
}

func (p *planner) require(index string, postings ...*posting) {
	p.used(index)
	u := union{}
	for _, posting := range postings {
		if n := posting.lenIn(p.seen); n > 0 {
			u.postings = append(u.postings, posting)
			u.size += n
		}
	}
	p.none = p.none || u.size == 0
	p.include = append(p.include, u)
}

func (p *planner) forbid(index string, postings ...*posting) {
	p.used(index)
	for _, posting := range postings {
		if posting.len() > 0 {
			p.exclude = append(p.exclude, posting)
		}
	}
}

func (p *planner) postings(handles []handle) []*posting {
	if len(handles) == 0 {
		return nil
	}
	out := make([]*posting, 0, len(handles))
	for _, h := range handles {
		if idx := p.indexes[h.Value().Index]; idx != nil {
			out = append(out, idx.postings[h])
		}
	}
	return out
}

func (p *planner) add(m *Matcher) {
	for _, t := range m.terms {
		p.require(t.Index, p.postings([]handle{t.handle})...)
	}
	if len(m.namespaces) > 0 {
		p.require(NamespaceIndex, p.namespacePostings(m.namespaces)...)
	}
	if m.labels != nil {
		p.addLabels(m.labels)
	}
	for _, f := range m.fields {
		p.addField(f)
	}
}

func (p *planner) namespacePostings(globs []string) []*posting {
	idx := p.indexes[NamespaceIndex]
	if !slices.ContainsFunc(globs, isGlob) {
		handles := make([]handle, len(globs))
		for i, g := range globs {
			handles[i] = intern(NamespaceIndex, g)
		}
		return p.postings(handles)
	}
	var out []*posting
	for h, posting := range idx.postings {
		if namespaceFilter(globs).match(h.Value().Value) {
			out = append(out, posting)
		}
	}
	return out
}

func (p *planner) addLabels(selector labels.Selector) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		p.none = p.none || labels.MatchesNothing(selector)
		return
	}
	for i := range requirements {
		p.addLabel(&requirements[i])
	}
}

func (p *planner) addLabel(r *labels.Requirement) {
	var values []handle
	for _, v := range r.ValuesUnsorted() {
		values = append(values, intern(LabelIndex, r.Key()+"="+v))
	}
	key := p.indexes[LabelIndex].groups[r.Key()]
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		p.require(LabelIndex, p.postings(values)...)
	case selection.NotIn, selection.NotEquals:
		p.forbid(LabelIndex, p.postings(values)...)
	case selection.DoesNotExist:
		p.forbid(LabelIndex, key)
	default: // Exists, and comparisons, which need the label to be there
		p.require(LabelIndex, key)
	}
}

func (p *planner) addField(f fieldTest) {
	switch {
	case f.Path.String() == "metadata.namespace" && f.Operator == selection.Equals && f.Values[0] != "":
		p.require(NamespaceIndex, p.postings([]handle{intern(NamespaceIndex, f.Values[0])})...)
	case f.handles == nil:
	case f.negated():
		p.forbid(f.handles[0].Value().Index, p.postings(f.handles)...)
	default:
		p.require(f.handles[0].Value().Index, p.postings(f.handles)...)
	}
}

// rowSet is some rows in order, all of them, or a bitmap.
type rowSet struct {
	all  bool
	few  []uint32
	bits *roaring.Bitmap
}

func (r rowSet) has(row uint32) bool {
	if r.bits != nil {
		return r.bits.Contains(row)
	}
	_, ok := slices.BinarySearch(r.few, row)
	return ok || r.all
}

func (r rowSet) len() int {
	if r.bits != nil {
		return int(r.bits.GetCardinality())
	}
	return len(r.few)
}

func (r rowSet) bitmap() *roaring.Bitmap {
	if r.bits != nil {
		return r.bits
	}
	return roaring.BitmapOf(r.few...)
}

func (r rowSet) each(yield func(uint32)) {
	for _, row := range r.few {
		yield(row)
	}
	if r.bits != nil {
		r.bits.Iterate(func(row uint32) bool {
			yield(row)
			return true
		})
	}
}

// fewRows is how many rows are tested one by one rather than as bitmaps.
const fewRows = 2048

// rows intersects the sets, in memory of its own. live are the rows in use.
func (p *planner) rows(live *roaring.Bitmap) rowSet {
	if p.none {
		return rowSet{}
	}
	if len(p.include) == 0 && len(p.exclude) == 0 {
		return rowSet{all: true}
	}
	slices.SortFunc(p.include, func(a, b union) int { return cmp.Compare(a.size, b.size) })
	if len(p.include) > 0 && p.include[0].size <= fewRows {
		return p.fewRows()
	}
	var bits *roaring.Bitmap
	if len(p.include) == 0 {
		bits = live.Clone()
	} else {
		bits = p.include[0].bitmap().Clone()
		for _, u := range p.include[1:] {
			bits.And(u.bitmap())
		}
	}
	for _, posting := range p.exclude {
		bits.AndNot(posting.bitmap())
	}
	return rowSet{bits: bits}
}

func (p *planner) fewRows() rowSet {
	var few []uint32
	for _, posting := range p.include[0].postings {
		rowSet{few: posting.few, bits: posting.bits}.each(func(row uint32) {
			if p.passes(row) {
				few = append(few, row)
			}
		})
	}
	if len(p.include[0].postings) > 1 {
		slices.Sort(few)
		few = slices.Compact(few)
	}
	return rowSet{few: few}
}

func (p *planner) passes(row uint32) bool {
	for _, u := range p.include[1:] {
		if !u.has(row) {
			return false
		}
	}
	for _, posting := range p.exclude {
		if posting.has(row) {
			return false
		}
	}
	return true
}

package summary

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
)

const (
	// MaxGroups bounds the groups of an answer, and the values of a facet.
	MaxGroups = 100_000
	// maxCombinations bounds the groups of one object.
	maxCombinations = 4096
)

// Query says what to compute. It is a value.
type Query struct {
	// Grouped: there are groups. Without GroupBy it is one of all objects.
	Grouped    bool
	GroupBy    []rawjson.Path
	Aggregates []Aggregate
	Facets     []rawjson.Path
	// Unique says that no object has a key twice, see rawjson.Extractor.Unique.
	Unique bool
}

// Summary is the answer to a Query.
type Summary struct {
	// Groups are in the order of their keys, what is missing last.
	Groups []Group
	Facets []Facet
	// Ignored counts the values that an aggregate could not add, by aggregate.
	Ignored []int
}

// Group is what objects with the same keys have together.
type Group struct {
	Keys   []scalar.Value // by Query.GroupBy
	Values []scalar.Value // by Query.Aggregates
}

// Facet counts objects by their values at one path, the most frequent first.
type Facet struct {
	Path   rawjson.Path
	Values []Count
}

// Count is how many objects have a value.
type Count struct {
	Value   scalar.Value
	Objects int
}

// Summarize computes q over objects. A *cache.CostError says that there are too
// many groups.
func Summarize(ctx context.Context, q Query, objects []*cache.Object) (*Summary, error) {
	return SummarizeAs(ctx, q, objects, func(dst []byte, i int) ([]byte, error) { return objects[i].AppendJSON(dst) })
}

// Computed reports whether q names values that are in no field of an object: SummarizeAs has
// to write them.
func (q Query) Computed() bool {
	return slices.ContainsFunc(slices.Concat(q.GroupBy, q.Facets), cache.Computed)
}

// Sets are all that q is about: what its groups are together, if there are any, and then each
// facet by itself.
func (q Query) Sets() (sets [][]rawjson.Path) {
	if q.Grouped {
		groups := slices.Clone(q.GroupBy)
		for _, a := range q.Aggregates {
			if !a.Path.IsZero() {
				groups = append(groups, a.Path)
			}
		}
		sets = append(sets, groups)
	}
	for _, f := range q.Facets {
		sets = append(sets, []rawjson.Path{f})
	}
	return sets
}

// everySet stands for all of them.
const everySet = ^cache.Sets(0)

// SummarizeAs is Summarize of other JSON than that which the objects are unpacked to:
// write appends that of object i.
func SummarizeAs(ctx context.Context, q Query, objects []*cache.Object, write func(dst []byte, i int) ([]byte, error)) (*Summary, error) {
	c, err := newCollectors(q)
	if err != nil {
		return nil, err
	}
	err = cache.ReadAs(ctx, objects, write, func(_ context.Context, worker, i int, json []byte) error {
		if err := c.of(worker).add(json, 1, everySet); err != nil {
			return fmt.Errorf("summarize %s: %w", objects[i].Key(), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.summary()
}

// Part is a Tally of some of the objects to summarize.
type Part struct {
	*cache.Tally
	// Members are what is the same of all these objects and is in none of their own
	// fields, as members of JSON objects are written: "cluster":"east". They come first.
	Members []byte
}

// SummarizeTallies is Summarize of the objects of Tallies of q.Sets(), less those paths that
// Members have.
func SummarizeTallies(ctx context.Context, q Query, parts []Part) (*Summary, error) {
	c, err := newCollectors(q)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		err := p.Read(ctx, func(worker, objects int, sets cache.Sets, json []byte) error {
			w := c.of(worker)
			if len(p.Members) > 0 {
				w.with = append(w.with[:0], json...)
				w.with = WithMembers(w.with, 0, p.Members)
				json = w.with
			}
			return w.add(json, objects, sets)
		})
		if err != nil {
			return nil, err
		}
	}
	return c.summary()
}

// WithMembers puts members, as Part has them, first into the object that begins at a
// position of dst and ends with it.
func WithMembers(dst []byte, at int, members []byte) []byte {
	if !bytes.HasPrefix(dst[at:], []byte("{}")) {
		dst = slices.Insert(dst, at+1, ',')
	}
	return slices.Insert(dst, at+1, members...)
}

// collectors are those of one Summary.
type collectors struct {
	*plan
	workers []*collector // nil: the worker has not read anything
}

func newCollectors(q Query) (*collectors, error) {
	p, err := compile(q)
	if err != nil {
		return nil, err
	}
	return &collectors{p, make([]*collector, cache.Workers())}, nil
}

func (c *collectors) of(worker int) *collector {
	if c.workers[worker] == nil {
		c.workers[worker] = newCollector(c.plan)
	}
	return c.workers[worker]
}

func (c *collectors) summary() (*Summary, error) {
	var all *collector // the first of them
	for _, w := range c.workers {
		if w == nil {
			continue
		}
		if err := w.flush(); err != nil {
			return nil, err
		}
		if all == nil {
			all = w
		} else if err := all.merge(w); err != nil {
			return nil, err
		}
	}
	if all == nil {
		all = newCollector(c.plan)
	}
	return all.summary(), nil
}

// plan is a compiled Query: which positions of the extractor's paths are what.
type plan struct {
	Query
	extractor  *rawjson.Extractor
	paths      []rawjson.Path
	groups     []int
	aggregates []int // -1 for count()
	facets     []int
}

func compile(q Query) (*plan, error) {
	p := &plan{Query: q}
	for _, path := range q.GroupBy {
		p.groups = append(p.groups, p.position(path))
	}
	for _, a := range q.Aggregates {
		if a.Path.IsZero() {
			p.aggregates = append(p.aggregates, -1)
			continue
		}
		p.aggregates = append(p.aggregates, p.position(a.Path))
	}
	for _, path := range q.Facets {
		p.facets = append(p.facets, p.position(path))
	}
	var err error
	if p.extractor, err = rawjson.CompileExtractor(p.paths); err != nil {
		return nil, invalid("groupBy", "%v", err)
	}
	if q.Unique {
		p.extractor = p.extractor.Unique()
	}
	return p, nil
}

func (p *plan) position(path rawjson.Path) int {
	if i := slices.Index(p.paths, path); i >= 0 {
		return i
	}
	p.paths = append(p.paths, path)
	return len(p.paths) - 1
}

// collector adds up objects. It belongs to one goroutine.
type collector struct {
	*plan
	groups map[string]*group
	spare  []group // that are not of anything yet
	facets []map[scalar.Value]int
	values [][]scalar.Value // of the current object, by path
	room   [][]scalar.Value // for values that are not remembered
	again  cache.Again[[][]scalar.Value]
	reads  reads
	keys   []scalar.Value // of the group that the current object is in
	id     []byte         // of a group
	// different are the values of the current object by path of the groups, distinct those of
	// one path; both are reused.
	different [][]scalar.Value
	distinct  []scalar.Value
	with      []byte // the current object with members that are not its own
	// last is what was read of the object before, if it is short, for lastSets. more objects with the
	// same have come since, which are not counted yet: siblings come one after the other.
	last     []byte
	lastSets cache.Sets
	more     int
}

// longestLast is how long last may be: of more than that others hardly have the same.
const longestLast = 512

// group is a Group in the making.
type group struct {
	keys   []scalar.Value
	totals []total
}

func newCollector(p *plan) *collector {
	c := &collector{plan: p, groups: map[string]*group{}, room: make([][]scalar.Value, len(p.paths)), reads: newReads(maxReads), different: make([][]scalar.Value, len(p.groups))}
	for range p.Facets {
		c.facets = append(c.facets, map[scalar.Value]int{})
	}
	return c
}

// add counts, for some of the Sets, so many objects of which the same is read.
func (c *collector) add(json []byte, objects int, sets cache.Sets) error {
	if objects == 1 && len(c.last) > 0 && sets == c.lastSets && bytes.Equal(json, c.last) {
		c.more++ // there can be no error that the first one had not
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.last = c.last[:0]
	if err := c.read(json, objects == 1); err != nil {
		return err
	}
	if objects == 1 && len(json) <= longestLast {
		c.last, c.lastSets = append(c.last, json...), sets
	}
	return c.count(objects, sets)
}

// flush counts what is not counted yet. An error is none that the first object with the same would
// not have had.
func (c *collector) flush() error {
	objects := c.more
	if c.more = 0; objects == 0 {
		return nil
	}
	return c.count(objects, c.lastSets)
}

// count is add for values.
func (c *collector) count(objects int, sets cache.Sets) error {
	first := 0 // of the facets, among the sets
	if c.Grouped {
		first = 1
	}
	for i, path := range c.plan.facets {
		if !sets.Has(first + i) {
			continue
		}
		c.distinct = appendDistinct(c.distinct[:0], c.values[path])
		for _, v := range c.distinct {
			c.facets[i][v] += objects
		}
		if len(c.facets[i]) > MaxGroups {
			return tooMany("facets", MaxGroups, "values")
		}
	}
	if !c.Grouped || !sets.Has(0) {
		return nil
	}
	return c.addToGroups(objects)
}

// read finds the values of one object. Others may have the same unless that is known already:
// what so many have is read once.
func (c *collector) read(json []byte, again bool) error {
	if again {
		var known bool
		if c.values, known = c.again.Get(json); known {
			return nil
		}
	}
	c.values = c.room
	if again = again && c.again.Wants(json); again {
		c.values = make([][]scalar.Value, len(c.room))
	}
	for i := range c.values {
		c.values[i] = c.values[i][:0]
	}
	err := c.extractor.Each(json, func(v rawjson.Value) bool {
		if s := c.reads.value(v); !s.Missing() {
			c.values[v.Path] = append(c.values[v.Path], s)
		}
		return true
	})
	if err == nil && again {
		c.again.Put(json, c.values)
	}
	return err
}

func tooMany(parameter string, limit int, what string) error {
	return &cache.CostError{Parameter: parameter, Message: fmt.Sprintf("there are more than %d %s, the limit: select fewer objects or group by other paths", limit, what)}
}

// manyValues is from how many values on those that were there before are looked up, and not
// looked for.
const manyValues = 16

// appendDistinct appends the different values at a path, or the missing one.
func appendDistinct(dst, values []scalar.Value) []scalar.Value {
	if len(values) == 0 {
		return append(dst, scalar.Value{})
	}
	if len(values) < manyValues {
		first := len(dst)
		for _, v := range values {
			if !slices.Contains(dst[first:], v) {
				dst = append(dst, v)
			}
		}
		return dst
	}
	seen := make(map[scalar.Value]bool, len(values))
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			dst = append(dst, v)
		}
	}
	return dst
}

// addToGroups adds objects to the group of every combination of their values: mostly there is
// one.
func (c *collector) addToGroups(objects int) error {
	c.keys = c.keys[:0]
	for _, path := range c.plan.groups {
		switch values := c.values[path]; len(values) {
		case 0:
			c.keys = append(c.keys, scalar.Value{})
		case 1:
			c.keys = append(c.keys, values[0])
		default:
			return c.addToCombinations(objects)
		}
	}
	c.addTo(c.group(c.keys), objects)
	return c.checkGroups()
}

func (c *collector) addToCombinations(objects int) error {
	all := 1
	for n, path := range c.plan.groups {
		c.different[n] = appendDistinct(c.different[n][:0], c.values[path])
		if all *= len(c.different[n]); all > maxCombinations {
			return tooMany("groupBy", maxCombinations, "combinations of the values of one object")
		}
	}
	c.combine(0, objects)
	return c.checkGroups()
}

// combine adds objects to the group of every combination of values that begins with the first n
// of c.keys.
func (c *collector) combine(n, objects int) {
	if n == len(c.plan.groups) {
		c.addTo(c.group(c.keys[:n]), objects)
		return
	}
	for _, v := range c.different[n] {
		c.keys = append(c.keys[:n], v)
		c.combine(n+1, objects)
	}
}

func (c *collector) checkGroups() error {
	if len(c.groups) > MaxGroups {
		return tooMany("groupBy", MaxGroups, "groups")
	}
	return nil
}

func (c *collector) group(keys []scalar.Value) *group {
	c.id = appendGroupID(c.id[:0], keys)
	g := c.groups[string(c.id)]
	if g == nil {
		g = c.newGroup(keys)
		c.groups[string(c.id)] = g
	}
	return g
}

// groupsAtOnce is how many groups get memory together: there may be many, each of three parts.
const groupsAtOnce = 64

func (c *collector) newGroup(keys []scalar.Value) *group {
	if len(c.spare) == 0 {
		n, per := min(groupsAtOnce, 1+len(c.groups)), len(c.Aggregates)
		c.spare = make([]group, n)
		allKeys, totals := make([]scalar.Value, n*len(keys)), make([]total, n*per)
		for i := range c.spare {
			c.spare[i].keys, allKeys = allKeys[:len(keys):len(keys)], allKeys[len(keys):]
			c.spare[i].totals, totals = totals[:per:per], totals[per:]
		}
	}
	g := &c.spare[0]
	c.spare = c.spare[1:]
	copy(g.keys, keys)
	return g
}

// appendGroupID appends what is the same for the same keys, and for no others.
func appendGroupID(dst []byte, keys []scalar.Value) []byte {
	for _, k := range keys {
		dst = strconv.AppendInt(append(dst, byte(k.Kind)), int64(len(k.Text)), 10)
		dst = append(append(dst, ':'), k.Text...)
	}
	return dst
}

func (c *collector) addTo(g *group, objects int) {
	for i, path := range c.plan.aggregates {
		if path < 0 {
			g.totals[i].values += objects
			continue
		}
		g.totals[i].addAll(c.Aggregates[i].Func, c.values[path], objects, &c.reads)
	}
}

// merge takes over what o has, which is not used any more.
func (c *collector) merge(o *collector) error {
	for id, g := range o.groups {
		into := c.groups[id]
		if into == nil {
			c.groups[id] = g
			continue
		}
		for i := range g.totals {
			into.totals[i].merge(&g.totals[i])
		}
	}
	for i, counts := range o.facets {
		for v, n := range counts {
			c.facets[i][v] += n
		}
		if len(c.facets[i]) > MaxGroups {
			return tooMany("facets", MaxGroups, "values")
		}
	}
	if len(c.groups) > MaxGroups {
		return tooMany("groupBy", MaxGroups, "groups")
	}
	return nil
}

func (c *collector) summary() *Summary {
	s := &Summary{Groups: []Group{}, Ignored: make([]int, len(c.Aggregates))}
	if c.Grouped && len(c.GroupBy) == 0 {
		c.group(nil) // of no objects, too
	}
	groups, per := c.ordered(), len(c.Aggregates)
	s.Groups = make([]Group, len(groups))
	values := make([]scalar.Value, per*len(groups))
	for n, g := range groups {
		row := Group{Keys: g.keys, Values: values[n*per : (n+1)*per : (n+1)*per]}
		for i := range g.totals {
			row.Values[i] = g.totals[i].result(c.Aggregates[i].Func)
			s.Ignored[i] += g.totals[i].ignored
		}
		s.Groups[n] = row
	}
	for i, counts := range c.facets {
		s.Facets = append(s.Facets, Facet{c.Facets[i], sortedCounts(counts)})
	}
	return s
}

// ordered are the groups in the order of their keys. There are far more groups than different keys in
// one place, so that those are sorted, and groups by the ranks of their keys. The ID decides between
// values that compare equal, such as 1 and "1".
func (c *collector) ordered() []*group {
	type ranked struct {
		*group
		id    string
		ranks []int // of the keys
	}
	keys := len(c.GroupBy)
	ranks := make([]int, keys*len(c.groups))
	all := make([]ranked, 0, len(c.groups))
	for id, g := range c.groups {
		all = append(all, ranked{g, id, ranks[:keys:keys]})
		ranks = ranks[keys:]
	}
	for k := range keys {
		rank := newRanking()
		for _, g := range all {
			g.ranks[k] = rank.number(g.keys[k])
		}
		of := rank.ranks()
		for _, g := range all {
			g.ranks[k] = of[g.ranks[k]]
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		if d := slices.Compare(a.ranks, b.ranks); d != 0 {
			return d
		}
		return strings.Compare(a.id, b.id)
	})
	groups := make([]*group, len(all))
	for i, g := range all {
		groups[i] = g.group
	}
	return groups
}

// ranking finds the ranks of different values.
type ranking struct {
	numbers map[scalar.Value]int
	values  scalar.Column
}

func newRanking() *ranking { return &ranking{numbers: map[scalar.Value]int{}} }

// number is that of a value, the same each time.
func (r *ranking) number(v scalar.Value) int {
	n, known := r.numbers[v]
	if !known {
		n = len(r.values)
		r.numbers[v] = n
		r.values = append(r.values, valuesOf(v))
	}
	return n
}

// valuesOf is a cell of a scalar.Column.
func valuesOf(v scalar.Value) []scalar.Value {
	if v.Missing() {
		return nil
	}
	return []scalar.Value{v}
}

// ranks are those of the values, by their numbers.
func (r *ranking) ranks() []int {
	if len(r.values) == 0 {
		return nil
	}
	return scalar.Ranks([]scalar.Column{r.values}, []bool{false})
}

func sortedCounts(counts map[scalar.Value]int) []Count {
	out := make([]Count, 0, len(counts))
	for v, n := range counts {
		out = append(out, Count{v, n})
	}
	slices.SortFunc(out, func(a, b Count) int {
		if a.Objects != b.Objects {
			return b.Objects - a.Objects
		}
		if a.Value.Missing() != b.Value.Missing() {
			return cmp.Compare(b.Value.Kind, a.Value.Kind) // missing last
		}
		if c := strings.Compare(a.Value.Text, b.Value.Text); c != 0 {
			return c
		}
		return int(a.Value.Kind) - int(b.Value.Kind)
	})
	return out
}

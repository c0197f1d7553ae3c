package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
)

// Order says by which values objects are sorted, the most important first.
type Order []OrderKey

// OrderKey is one path to sort by. Times, quantities, numbers and text are
// ordered as such, whichever all values of the objects at hand can be read as.
// Objects without a value come last in both directions; one with several counts
// by its least when ascending and by its greatest when descending.
type OrderKey struct {
	Path       rawjson.Path
	Descending bool
	// Value makes the value of a Computed path of an object's JSON; nil: there is none.
	Value func(json []byte) scalar.Value
}

// ParseOrder reads paths separated by commas, each descending if a minus is
// before it: status.phase,-metadata.creationTimestamp. Errors are *InvalidError
// and name the column, counted from 1.
func ParseOrder(s string) (Order, error) {
	var order Order
	for _, part := range rawjson.CommaSeparated(s) {
		start, end := part[0], part[1]
		for start < end && s[start] == ' ' {
			start++
		}
		key := OrderKey{Descending: start < end && s[start] == '-'}
		if key.Descending {
			start++
		}
		var err error
		if key.Path, err = ParseValueIn(s, start, end); err != nil {
			return nil, invalidf("sort", "%v", err)
		}
		if slices.ContainsFunc(order, func(k OrderKey) bool { return k.Path == key.Path }) {
			return nil, invalidf("sort", "column %d: %s is named twice", start+1, key.Path)
		}
		order = append(order, key)
	}
	if len(order) > maxOrder {
		return nil, invalidf("sort", "%d paths; at most %d are possible", len(order), maxOrder)
	}
	return order, nil
}

const maxOrder = 8

// String is a form that ParseOrder reads back.
func (o Order) String() string {
	parts := make([]string, len(o))
	for i, k := range o {
		parts[i] = k.Path.String()
		if k.Descending {
			parts[i] = "-" + parts[i]
		}
	}
	return strings.Join(parts, ",")
}

// Sort sorts objects in place; what is equal keeps its order.
func (o Order) Sort(ctx context.Context, objects []*Object) error {
	if len(o) == 0 || len(objects) < 2 {
		return nil
	}
	_, err := o.sort(ctx, &located{objects: objects}, nil)
	return err
}

// sort is Sort that takes what it can from the indexed values of objects, and from a column,
// if they are all of one extraction, and returns the paths that were read from the JSON, or an
// excerpt of it, instead of an index.
func (o Order) sort(ctx context.Context, l *located, of *extraction) ([]rawjson.Path, error) {
	values, err := o.values(ctx, l, of)
	if err != nil {
		return nil, err
	}
	l.arrange(values.order(o.directions()))
	return values.paths, nil
}

// within is the column that has all that o is about, and the paths of that; no column: there is
// none; no paths, either: an index or the objects themselves have some of it.
func (o Order) within(l *located, of *extraction) (paths []rawjson.Path, at *columnAt) {
	if of == nil || slices.ContainsFunc(o, func(k OrderKey) bool {
		_, indexed := of.indexOf(k.Path)
		return Computed(k.Path) || heldValue(k.Path) != nil || indexed
	}) {
		return nil, nil
	}
	paths = o.columnPaths(of)
	return paths, l.column(paths)
}

// sort sorts objects, which match, by the order of the query.
func (m *Matcher) sort(ctx context.Context, l *located) ([]rawjson.Path, error) {
	o, of := m.query.Sort, m.extraction
	if len(o) == 0 || len(l.objects) < 2 {
		return nil, nil
	}
	paths, order, err := o.rankTexts(ctx, l, of, m.scope.all)
	if err != nil {
		return nil, err
	}
	if order == nil {
		return o.sort(ctx, l, of)
	}
	l.arrange(order)
	return paths, nil
}

// rankTexts is which of the objects comes first in o, and so on, as the texts of the paths say it,
// where every key has to be read from the JSON; nil: they do not. Ranks that are kept are of all
// texts of a column, also those of objects that others than who sees all may not see. The order
// is one of numberSlices.
func (o Order) rankTexts(ctx context.Context, l *located, of *extraction, all bool) (paths []rawjson.Path, order []uint32, err error) {
	paths, at := o.within(l, of)
	if at != nil && all {
		order, err = o.rank(ctx, l, at)
	}
	if order == nil && err == nil && paths != nil && of.unique { // as of columns, no key occurs twice
		order, err = o.rankAside(ctx, l, paths, at)
	}
	return paths, order, err
}

// columnPaths are what has to be read of the objects of an extraction if no index has it; nil:
// nothing, or what is computed of each object as a whole.
func (o Order) columnPaths(of *extraction) (paths []rawjson.Path) {
	for _, k := range o {
		if Computed(k.Path) {
			if k.Value != nil {
				return nil
			}
			continue
		}
		if heldValue(k.Path) == nil {
			paths = append(paths, k.Path)
		}
	}
	return paths
}

// indexed finds the values at path of objects among their terms. It returns nil
// if no index has them all, or if it takes the JSON to tell what they are: an
// index does not know strings from numbers.
func (e *extraction) indexed(path rawjson.Path, objects []*Object) scalar.Column {
	name, ok := e.indexOf(path)
	if !ok || !e.unique {
		return nil
	}
	long := intern(longIndex(name), longValue)
	classes := map[handle]scalar.Class{}
	only := scalar.Unsure
	column := make(scalar.Column, len(objects))
	for i, o := range objects {
		if o.generation != e.generation || o.has(long) {
			return nil
		}
		for _, h := range o.terms().own {
			t := h.Value()
			if t.Index != name {
				continue
			}
			class, ok := classes[h]
			if !ok {
				class = scalar.PointOf(t.Value).Class()
				classes[h] = class
			}
			if class == scalar.Unsure || only != scalar.Unsure && class != only {
				return nil
			}
			only = class
			column[i] = append(column[i], scalar.Value{Kind: rawjson.String, Text: t.Value})
		}
	}
	return column
}

func (o Order) directions() []bool {
	descending := make([]bool, len(o))
	for i, k := range o {
		descending[i] = k.Descending
	}
	return descending
}

// heldValues are those that an Object has at hand.
var heldValues = map[string]func(*Object) string{
	"metadata.creationTimestamp": func(o *Object) string {
		if o.created == 0 {
			return ""
		}
		return o.Created().Format(time.RFC3339)
	},
}

func heldValue(p rawjson.Path) func(*Object) string {
	if f := identityFields[p.String()]; f != nil {
		return f
	}
	return heldValues[p.String()]
}

// sortValues are what objects are sorted by: for each key, for each object, all that it has.
type sortValues struct {
	columns []scalar.Column
	paths   []rawjson.Path // that were read from the JSON
	// items, if not nil, are those that the columns have values of instead of the objects.
	items *items
}

// order is which object comes first, and so on, in one of numberSlices.
func (v *sortValues) order(descending []bool) []uint32 {
	if v.items == nil {
		order := numberSlices.get(len(v.columns[0]))
		for _, i := range scalar.Order(v.columns, descending) {
			order = append(order, uint32(i))
		}
		return order
	}
	// Items that are equal have one rank. The objects of each rank keep their order.
	ranks := scalar.Ranks(v.columns, descending)
	next := make([]int, v.items.len()+1) // where the next object of each rank goes
	for i := range v.items.objects {
		next[ranks[v.items.item(i)]+1]++
	}
	for rank := range v.items.len() {
		next[rank+1] += next[rank]
	}
	order := numberSlices.get(len(v.items.objects))[:len(v.items.objects)]
	for i := range v.items.objects {
		rank := ranks[v.items.item(i)]
		order[next[rank]] = uint32(i)
		next[rank]++
	}
	return order
}

// values finds the values to sort by.
func (o Order) values(ctx context.Context, l *located, of *extraction) (*sortValues, error) {
	objects := l.objects
	v := &sortValues{columns: make([]scalar.Column, len(o))}
	var columns []int // of paths
	var made []int    // those with computed values
	for c, k := range o {
		if Computed(k.Path) {
			if k.Value != nil {
				made = append(made, c)
			}
			v.columns[c] = make(scalar.Column, len(objects))
			continue
		}
		held := heldValue(k.Path)
		if held == nil && of != nil {
			if v.columns[c] = of.indexed(k.Path, objects); v.columns[c] != nil {
				continue
			}
		}
		if held == nil {
			v.paths, columns = append(v.paths, k.Path), append(columns, c)
			continue
		}
		v.columns[c] = make(scalar.Column, len(objects))
		for i, obj := range objects {
			if text := held(obj); text != "" {
				v.columns[c][i] = []scalar.Value{{Kind: rawjson.String, Text: text}}
			}
		}
	}
	if len(v.paths) == 0 && len(made) == 0 {
		return v, nil
	}
	var at *columnAt
	if of != nil {
		at = l.column(o.columnPaths(of))
	}
	x := itemsOf(objects, l.rows, at)
	read, err := o.read(ctx, x, v.paths, columns, made)
	if err != nil {
		return nil, err
	}
	if len(columns) == len(o) && x.of != nil {
		v.columns, v.items = read, x
		return v, nil
	}
	for c := range read {
		if read[c] != nil {
			v.columns[c] = x.spread(read[c])
		}
	}
	return v, nil
}

// spread makes values by item those by object.
func (x *items) spread(column scalar.Column) scalar.Column {
	if x.of == nil {
		return column
	}
	byObject := make(scalar.Column, len(x.objects))
	for i := range byObject {
		byObject[i] = column[x.item(i)]
	}
	return byObject
}

// read finds the values of items at paths, for the keys of these numbers, and those that are
// made of the object as a whole.
func (o Order) read(ctx context.Context, x *items, paths []rawjson.Path, columns, made []int) ([]scalar.Column, error) {
	values, err := o.readTexts(ctx, x.len(), x.append, paths, columns, made)
	if item, ok := errors.AsType[*textError](err); ok {
		return nil, fmt.Errorf("read %s: %w", x.objects[x.object(item.text)].Key(), item.err)
	}
	return values, err
}

// textError is of one of many texts.
type textError struct {
	text int
	err  error
}

func (e *textError) Error() string { return fmt.Sprintf("text %d: %v", e.text, e.err) }

// readTexts is read of n texts: write appends text i. What is wrong with one is a textError.
func (o Order) readTexts(ctx context.Context, n int, write func(dst []byte, i int) ([]byte, error), paths []rawjson.Path, columns, made []int) ([]scalar.Column, error) {
	extractor, err := rawjson.CompileExtractor(paths)
	if err != nil {
		return nil, invalidf("sort", "%v", err)
	}
	values := make([]scalar.Column, len(o))
	for _, c := range slices.Concat(columns, made) {
		values[c] = make(scalar.Column, n)
	}
	err = readItems(ctx, n, write, func(_ context.Context, _, i int, json []byte) error {
		for _, c := range made {
			if s := o[c].Value(json); !s.Missing() {
				values[c][i] = []scalar.Value{s}
			}
		}
		err := extractor.Each(json, func(v rawjson.Value) bool {
			if s := scalar.Of(v); !s.Missing() {
				c := columns[v.Path]
				values[c][i] = append(values[c][i], s)
			}
			return true
		})
		if err != nil {
			return &textError{i, err}
		}
		return nil
	})
	return values, err
}

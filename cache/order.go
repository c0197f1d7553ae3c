package cache

import (
	"context"
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
	_, err := o.sort(ctx, objects, nil)
	return err
}

// sort is Sort that takes what it can from the indexed values of objects, and from what is
// kept of them, if they are all of one extraction, and returns the paths that were read from
// the JSON, or an excerpt of it, instead of an index.
func (o Order) sort(ctx context.Context, objects []*Object, of *extraction) ([]rawjson.Path, error) {
	values, read, err := o.values(ctx, objects, of)
	if err != nil {
		return nil, err
	}
	scalar.Sort(objects, values, o.directions())
	return read, nil
}

// sort sorts objects, which match, by the order of the query.
func (m *Matcher) sort(ctx context.Context, objects []*Object) ([]rawjson.Path, error) {
	if len(m.query.Sort) == 0 || len(objects) < 2 {
		return nil, nil
	}
	return m.query.Sort.sort(ctx, objects, m.extraction)
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
		for _, h := range o.terms {
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

// values finds the values to sort by: for each key, for each object, all it has.
// It returns the paths that were read from the JSON, too.
func (o Order) values(ctx context.Context, objects []*Object, of *extraction) (values []scalar.Column, paths []rawjson.Path, err error) {
	values = make([]scalar.Column, len(o))
	var columns []int // of paths
	var made []int    // those with computed values
	for c, k := range o {
		values[c] = make(scalar.Column, len(objects))
		if Computed(k.Path) {
			if k.Value != nil {
				made = append(made, c)
			}
			continue
		}
		held := heldValue(k.Path)
		if held == nil && of != nil {
			if values[c] = of.indexed(k.Path, objects); values[c] != nil {
				continue
			}
			values[c] = make(scalar.Column, len(objects))
		}
		if held == nil {
			paths, columns = append(paths, k.Path), append(columns, c)
			continue
		}
		for i, obj := range objects {
			if text := held(obj); text != "" {
				values[c][i] = []scalar.Value{{Kind: rawjson.String, Text: text}}
			}
		}
	}
	if len(paths) == 0 && len(made) == 0 {
		return values, nil, nil
	}
	extractor, err := rawjson.CompileExtractor(paths)
	if err != nil {
		return nil, nil, invalidf("sort", "%v", err)
	}
	appendRead := appendWhole
	if of != nil && len(made) == 0 { // what is computed is made of the object as a whole
		appendRead = of.excerpts.reader(paths, len(objects))
	}
	read := func(dst []byte, i int) ([]byte, error) { return appendRead(dst, objects[i]) }
	err = ReadAs(ctx, objects, read, func(_ context.Context, _, i int, json []byte) error {
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
			return fmt.Errorf("read %s: %w", objects[i].Key(), err)
		}
		return nil
	})
	return values, paths, err
}

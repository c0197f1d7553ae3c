package summary

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
)

const (
	// maxReads bounds how many values reads remembers: those that objects have in common
	// are few, and others come but once.
	maxReads = 2048
	// maxRead is the longest value it remembers.
	maxRead = 128
)

// reads remembers values of the objects before, so that one that comes again and again, as
// the name of a node or 100m, costs neither memory nor reading. It belongs to one goroutine.
type reads struct {
	most    int // how many are remembered
	values  map[readText]scalar.Value
	addends map[scalar.Value]addend
}

type readText struct {
	kind rawjson.Kind
	text string
}

func newReads(most int) reads {
	return reads{most, map[readText]scalar.Value{}, map[scalar.Value]addend{}}
}

// value is scalar.Of.
func (r *reads) value(v rawjson.Value) scalar.Value {
	if len(v.Text) > maxRead {
		return scalar.Of(v)
	}
	if known, ok := r.values[readText{v.Kind, string(v.Text)}]; ok {
		return known
	}
	s := scalar.Of(v)
	if len(r.values) < r.most && !s.Missing() {
		r.values[readText{s.Kind, s.Text}] = s
	}
	return s
}

// addend is addendOf.
func (r *reads) addend(v scalar.Value) addend {
	if known, ok := r.addends[v]; ok {
		return known
	}
	a := addendOf(v)
	if len(r.addends) < r.most && len(v.Text) <= maxRead {
		r.addends[v] = a
	}
	return a
}

// addend is what a value adds to a sum: by its type nothing, a number or a quantity.
type addend struct {
	typ    scalar.Type
	ok     bool // it can be added
	whole  bool // it is number
	number int64
	float  float64
	amount resource.Quantity
}

func addendOf(v scalar.Value) addend {
	a := addend{typ: v.Type()}
	var err error
	switch a.typ {
	case scalar.Number:
		if a.number, err = strconv.ParseInt(v.Text, 10, 64); err == nil {
			a.whole = true
			break
		}
		a.float, err = strconv.ParseFloat(v.Text, 64)
	case scalar.Quantity:
		a.amount, err = resource.ParseQuantity(v.Text)
	default:
		return a
	}
	a.ok = err == nil
	return a
}

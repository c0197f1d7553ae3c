package summary

import (
	"math"
	"strconv"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
)

// total is what is known of one aggregate of one group. The zero total is of no
// values.
type total struct {
	values  int // that count
	ignored int // that sum and avg cannot add
	whole   int64
	float   float64
	broken  bool // whole overflowed, or there are fractions: float has the sum
	amounts resource.Quantity
	amount  bool        // there are quantities
	typ     scalar.Type // of all values, for min and max
	bounds  map[scalar.Type]bounds
}

// bounds are the least and greatest value, read as one type.
type bounds struct{ least, greatest scalar.Key }

// addAll takes in the values of each of so many objects, as if one object came after the other.
func (t *total) addAll(function string, values []scalar.Value, objects int, r *reads) {
	if objects > 1 && len(values) > 1 && (function == "sum" || function == "avg") && t.inTurn(values, objects, r) {
		for range objects {
			t.addAll(function, values, 1, r)
		}
		return
	}
	for _, v := range values {
		t.add(function, v, objects, r)
	}
}

// exactly is from where on a float64 does not have every whole number.
const exactly = 1 << 53

// inTurn reports whether it is of importance in which order the values of so many objects are
// added: numbers overflow, and are rounded, after some and not after others. Quantities are not.
func (t *total) inTurn(values []scalar.Value, objects int, r *reads) bool {
	numbers, fractions, most := 0, t.broken, math.Abs(float64(t.whole))
	for _, v := range values {
		if a := r.addend(v); a.typ == scalar.Number {
			numbers++
			fractions = fractions || !a.whole
			most += math.Abs(float64(a.number)) * float64(objects)
		}
	}
	return numbers > 1 && (fractions || most >= exactly)
}

// add takes in a value that so many objects have.
func (t *total) add(function string, v scalar.Value, objects int, r *reads) {
	switch function {
	case "sum", "avg":
		if !t.plus(r.addend(v), objects) {
			t.ignored += objects
			return
		}
	case "min", "max":
		t.extend(v.Type(), v)
	}
	t.values += objects
}

// plus adds a number or quantity so many times, as if it were added one by one.
func (t *total) plus(a addend, times int) bool {
	switch {
	case a.whole:
		t.plusWhole(a.number, int64(times))
	case a.typ == scalar.Number:
		for range times {
			t.float += a.float
		}
		t.broken = true
	case a.typ == scalar.Quantity:
		t.plusAmount(a.amount, times)
	}
	return a.ok
}

func (t *total) plusWhole(n, times int64) {
	sum := t.whole + n*times
	t.float += float64(n) * float64(times)
	if n*times/times != n || (sum > t.whole) != (n > 0) && n != 0 {
		t.broken = true
	}
	t.whole = sum
}

// plusAmount takes over the format of the first quantity, as Add does not.
func (t *total) plusAmount(q resource.Quantity, times int) {
	if !t.amount {
		t.amounts.Format = q.Format
	}
	t.amount = true
	// Quantity.Mul makes an inf.Dec of thousandths, and all that is added to one takes long.
	for q = q.DeepCopy(); times > 0; times >>= 1 {
		if times&1 != 0 {
			t.amounts.Add(q)
		}
		if times > 1 {
			q.Add(q.DeepCopy())
		}
	}
}

// extend notes v under every type that a column holding it may have.
func (t *total) extend(typ scalar.Type, v scalar.Value) {
	types := []scalar.Type{scalar.Text}
	switch typ {
	case scalar.Number:
		types = []scalar.Type{scalar.Number, scalar.Quantity, scalar.Text}
	case scalar.Quantity:
		types = []scalar.Type{scalar.Quantity, scalar.Text}
	case scalar.Time:
		types = []scalar.Type{scalar.Time, scalar.Text}
	}
	if t.bounds == nil {
		t.bounds = map[scalar.Type]bounds{}
	}
	for _, as := range types {
		t.bounds[as] = t.bounds[as].with(v.Key(as))
	}
	t.typ = scalar.Join(t.typ, typ)
}

func (b bounds) with(k scalar.Key) bounds {
	if k.Missing() {
		return b
	}
	if b.least.Missing() || k.Compare(b.least) < 0 {
		b.least = k
	}
	if b.greatest.Missing() || k.Compare(b.greatest) > 0 {
		b.greatest = k
	}
	return b
}

func (t *total) merge(o *total) {
	t.values += o.values
	t.ignored += o.ignored
	float := t.float + o.float
	t.plusWhole(o.whole, 1)
	t.float, t.broken = float, t.broken || o.broken
	if o.amount {
		t.plusAmount(o.amounts, 1)
	}
	t.typ = scalar.Join(t.typ, o.typ)
	for typ, b := range o.bounds {
		if t.bounds == nil {
			t.bounds = map[scalar.Type]bounds{}
		}
		t.bounds[typ] = t.bounds[typ].with(b.least).with(b.greatest)
	}
}

// result is missing if there were no values, except for a count.
func (t *total) result(function string) scalar.Value {
	switch {
	case function == "count":
		return number(strconv.Itoa(t.values))
	case t.values == 0:
		return scalar.Value{}
	case function == "min":
		return t.bounds[t.typ].least.Value()
	case function == "max":
		return t.bounds[t.typ].greatest.Value()
	case function == "avg":
		return t.average()
	default:
		return t.sum()
	}
}

func number(text string) scalar.Value { return scalar.Value{Kind: rawjson.Number, Text: text} }

func (t *total) sum() scalar.Value {
	switch {
	case t.amount:
		return scalar.Value{Kind: rawjson.String, Text: t.allAmounts().String()}
	case t.broken:
		return floating(t.float)
	default:
		return number(strconv.FormatInt(t.whole, 10))
	}
}

// allAmounts adds numbers to quantities: 1 is as good as "1". What it returns may be that of t.
func (t *total) allAmounts() *resource.Quantity {
	if t.whole == 0 && !t.broken {
		return &t.amounts
	}
	q := t.amounts.DeepCopy()
	switch {
	case !t.broken:
		q.Add(*resource.NewQuantity(t.whole, q.Format))
	default:
		if f, err := resource.ParseQuantity(strconv.FormatFloat(t.float, 'f', -1, 64)); err == nil {
			q.Add(f)
		}
	}
	return &q
}

// average of quantities is rounded to thousandths, of bytes to whole ones.
func (t *total) average() scalar.Value {
	if !t.amount {
		return floating(t.float / float64(t.values))
	}
	q := t.allAmounts()
	scale := inf.Scale(3)
	if q.Format == resource.BinarySI {
		scale = 0
	}
	quotient := new(inf.Dec).QuoRound(q.AsDec(), inf.NewDec(int64(t.values), 0), scale, inf.RoundHalfUp)
	return scalar.Value{Kind: rawjson.String, Text: resource.NewDecimalQuantity(*quotient, q.Format).String()}
}

func floating(f float64) scalar.Value {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return scalar.Value{}
	}
	return number(strconv.FormatFloat(f, 'g', -1, 64))
}

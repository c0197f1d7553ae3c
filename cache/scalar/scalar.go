// Package scalar gives the strings, numbers and bools found in objects the
// order and the sums that people expect of them: times by time, quantities
// ("500m", "1Gi") by amount, numbers by value, everything else as text. JSON
// does not tell these apart, so a column of values is taken for what all of its
// values can be read as.
package scalar

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/informerd/informerd/cache/rawjson"
)

// Value is one value as it stands in an object; the zero Value is missing.
type Value struct {
	Kind rawjson.Kind // String, Number or Bool; 0 if missing
	Text string
}

// Of returns v in memory of its own. Null, objects and arrays are missing.
func Of(v rawjson.Value) Value {
	switch v.Kind {
	case rawjson.String, rawjson.Number, rawjson.Bool:
		return Value{v.Kind, string(v.Text)}
	default:
		return Value{}
	}
}

// Missing reports whether there is no value.
func (v Value) Missing() bool { return v.Kind == 0 }

// JSON is the value as JSON has it.
func (v Value) JSON() any {
	switch v.Kind {
	case 0:
		return nil
	case rawjson.Bool:
		return v.Text == "true"
	case rawjson.Number:
		return number(v.Text)
	default:
		return v.Text
	}
}

type number string

// MarshalJSON writes the literal unchanged.
func (n number) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// Type is what a column of values is taken for.
type Type uint8

// The types, each more general than the one before. None is the type of a
// column without values.
const (
	None Type = iota
	Number
	Quantity
	Time
	Text
)

// Type is the narrowest type that v can be read as.
func (v Value) Type() Type {
	switch v.Kind {
	case 0:
		return None
	case rawjson.Number:
		return Number
	case rawjson.Bool:
		return Text
	}
	if _, ok := parseQuantity(v.Text); ok {
		return Quantity
	}
	if _, ok := parseTime(v.Text); ok {
		return Time
	}
	return Text
}

// Join is the type of a column that holds values of both types.
func Join(a, b Type) Type {
	switch {
	case a == b || b == None:
		return a
	case a == None:
		return b
	case a <= Quantity && b <= Quantity:
		return Quantity
	default:
		return Text
	}
}

// maxQuantity is longer than any quantity people write. Parsing costs time
// beyond measure for huge exponents.
const maxQuantity = 32

func parseQuantity(s string) (resource.Quantity, bool) {
	if s == "" || len(s) > maxQuantity || strings.IndexByte("+-.0123456789", s[0]) < 0 || hugeExponent(s) {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}

// hugeExponent reports an exponent beyond that of a float64.
func hugeExponent(s string) bool {
	i := strings.IndexAny(s, "eE")
	if i < 0 || i+1 == len(s) {
		return false
	}
	n, err := strconv.Atoi(s[i+1:])
	return err == nil && (n > 308 || n < -308)
}

func parseTime(s string) (time.Time, bool) {
	if len(s) < len("2006-01-02T5:04:05Z") { // the shortest that Parse takes
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

// Key is a value read as the type of its column. Only keys of one type compare.
type Key struct {
	value  Value
	typ    Type
	float  float64
	amount resource.Quantity
	time   time.Time
}

// Key reads v as t, which must be the type of v or one that includes it.
func (v Value) Key(t Type) Key {
	k := Key{value: v, typ: t}
	if v.Missing() {
		return k
	}
	switch t {
	case Number:
		k.float, _ = strconv.ParseFloat(v.Text, 64)
	case Quantity:
		k.amount, _ = amount(v)
	case Time:
		k.time, _ = parseTime(v.Text)
	}
	return k
}

// amount reads a number or quantity.
func amount(v Value) (resource.Quantity, bool) {
	if q, ok := parseQuantity(v.Text); ok {
		return q, true
	}
	f, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || math.Abs(f) > math.MaxInt64 {
		return resource.Quantity{}, false
	}
	return *resource.NewQuantity(int64(f), resource.DecimalSI), true
}

// Missing reports whether there is no value.
func (k Key) Missing() bool { return k.value.Missing() }

// Value is what the key was made of.
func (k Key) Value() Value { return k.value }

// Compare orders keys of one type; a missing one equals only another.
func (k Key) Compare(o Key) int {
	switch {
	case k.Missing() || o.Missing():
		return cmp.Compare(missing(o), missing(k))
	case k.typ == Number:
		return compareNumbers(k, o)
	case k.typ == Quantity:
		return k.amount.Cmp(o.amount)
	case k.typ == Time:
		return k.time.Compare(o.time)
	default:
		return strings.Compare(k.value.Text, o.value.Text)
	}
}

func missing(k Key) int {
	if k.Missing() {
		return 1
	}
	return 0
}

// compareNumbers is exact for numbers that a float64 cannot hold: three of them must not be in
// another order than each two.
func compareNumbers(k, o Key) int {
	if c := cmp.Compare(k.float, o.float); c != 0 || math.Abs(k.float) < 1<<53 || math.IsInf(k.float, 0) {
		return c
	}
	a, errA := strconv.ParseInt(k.value.Text, 10, 64)
	b, errB := strconv.ParseInt(o.value.Text, 10, 64)
	if errA == nil && errB == nil {
		return cmp.Compare(a, b)
	}
	x, okX := new(big.Rat).SetString(k.value.Text)
	y, okY := new(big.Rat).SetString(o.value.Text)
	if !okX || !okY {
		return 0
	}
	return x.Cmp(y)
}

package scalar

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Class says among which values one has its place before it is known what the
// others are and whether JSON has it as a string or as a number.
type Class uint8

// The classes. Unsure are numbers that a Point cannot tell apart from their
// neighbours, and text that may be a number somewhere: who looks for something
// in order must look at all of them.
const (
	Unsure  Class = iota
	Amounts       // numbers and quantities, exactly
	Times
	Texts // neither, whoever reads them
	classes
)

// Classes is how many classes there are.
const Classes = int(classes)

// Point is the place of a value among the Amounts or Times, exact to a billionth
// (of a second, for Times). Points of one class compare as Keys do that are made
// of the same values as Number, Quantity or Time.
type Point struct {
	whole int64
	nano  int32 // 0 to 999,999,999, added to whole
	class Class
}

// PointOf is the place of the string, number or bool with this text. For Texts
// and what is Unsure it says the class and no more.
func PointOf(text string) Point {
	if bareSuffix(text) {
		return Point{}
	}
	if text == "" || strings.IndexByte("+-.0123456789", text[0]) < 0 {
		return Point{class: Texts}
	}
	if t, ok := parseTime(text); ok {
		return TimePoint(t)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && len(text) <= maxQuantity {
		return IntPoint(n)
	}
	if len(text) > maxQuantity || hugeExponent(text) {
		return Point{}
	}
	_, quantity := parseQuantity(text)
	number := json.Valid([]byte(text))
	switch {
	case !quantity && !number:
		return Point{class: Texts}
	case !quantity, number && !shortDecimal(text):
		return Point{}
	default:
		return QuantityPoint(text)
	}
}

// bareSuffix reports the suffix of a quantity without a number, which
// resource.ParseQuantity takes for none of it, and Value.Type for text.
func bareSuffix(text string) bool {
	switch text {
	case "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei":
		return true
	}
	return len(text) > 1 && (text[0] == 'e' || text[0] == 'E') && strings.Trim(text[1:], "+-0123456789") == ""
}

// shortDecimal reports that a number is the same as quantity and as float64,
// and that every other such number is another float64.
func shortDecimal(number string) bool {
	digits := strings.TrimPrefix(number, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	return strings.Trim(whole+fraction, "0123456789") == "" && len(whole)+len(fraction) <= 15 && len(fraction) <= 9
}

// IntPoint is the place of n.
func IntPoint(n int64) Point { return Point{whole: n, class: Amounts} }

// FloatPoint is the place of f; Unsure if numbers that are not equal to f could
// have the same.
func FloatPoint(f float64) Point {
	if math.Abs(f) >= 1<<53 {
		return Point{}
	}
	if p := PointOf(strconv.FormatFloat(f, 'f', -1, 64)); p.class == Amounts {
		return p
	}
	return Point{}
}

// TimePoint is the place of t.
func TimePoint(t time.Time) Point {
	return Point{whole: t.Unix(), nano: int32(t.Nanosecond()), class: Times}
}

// LeastPoint is not after any other of its class.
func LeastPoint(c Class) Point { return Point{whole: math.MinInt64, class: c} }

var billion = big.NewInt(1_000_000_000)

// QuantityPoint is the place of a quantity that is written as text; Unsure if it
// is none, or out of reach.
func QuantityPoint(text string) Point {
	q, ok := parseQuantity(text)
	if !ok {
		return Point{}
	}
	d := q.AsDec()
	shift := 9 - int64(d.Scale())
	if shift < 0 || shift > 40 {
		return Point{}
	}
	nanos := new(big.Int).Exp(big.NewInt(10), big.NewInt(shift), nil)
	nanos.Mul(nanos, d.UnscaledBig())
	whole, nano := nanos.DivMod(nanos, billion, new(big.Int))
	if !whole.IsInt64() {
		return Point{}
	}
	return Point{whole: whole.Int64(), nano: int32(nano.Int64()), class: Amounts}
}

// Class is what p is a place among.
func (p Point) Class() Class { return p.class }

// Compare orders points by class, then by place.
func (p Point) Compare(o Point) int {
	if c := cmp.Compare(p.class, o.class); c != 0 {
		return c
	}
	if c := cmp.Compare(p.whole, o.whole); c != 0 {
		return c
	}
	return cmp.Compare(p.nano, o.nano)
}

// String is the amount, or the time.
func (p Point) String() string {
	switch p.class {
	case Times:
		return time.Unix(p.whole, int64(p.nano)).UTC().Format(time.RFC3339Nano)
	case Amounts:
		nanos := new(big.Int).Mul(big.NewInt(p.whole), billion)
		d := inf.NewDecBig(nanos.Add(nanos, big.NewInt(int64(p.nano))), 9)
		return resource.NewDecimalQuantity(*d, resource.DecimalSI).String()
	default:
		return "?"
	}
}

// Seconds is the whole part of p, rounded down: of a time its Unix seconds.
func (p Point) Seconds() int64 { return p.whole }

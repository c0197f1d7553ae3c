package scalar

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/informerd/informerd/cache/rawjson"
)

func TestPointOf(t *testing.T) {
	for class, texts := range map[Class][]string{
		Amounts: {"0", "-0", "7", "-9223372036854775808", "9223372036854775807", "007", "+5", "2.5", "-0.000000001", "5.", ".5", "500m", "1Gi", "1E", "0.5n", "9007199254740993", "100000Ei"},
		Times:   {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789+02:00", "0001-01-01T00:00:00Z"},
		Texts:   {"", "a", "true", "10.0.0.1", "2026-01-02", "2026-13-02T03:04:05Z", "1k8s", "NaN"},
		Unsure: {"9223372036854775808", "1e3", "1e400", "P", "Ki", "e5", "-1e-400", "1e999999999", "1234567890.123456", "0.1234567891", "9007199254740992.5",
			"10000P", strings.Repeat("0", 40) + "1", "1" + strings.Repeat("0", 40)},
	} {
		for _, text := range texts {
			if got := PointOf(text).Class(); got != class {
				t.Errorf("PointOf(%q) is of class %d, want %d", text, got, class)
			}
		}
	}
	if a, b := PointOf("1500m"), PointOf("1.5"); a != b {
		t.Errorf("%v is not %v", a, b)
	}
	if a, b := PointOf("-0.5"), PointOf("-1"); a.Compare(b) <= 0 || b.Seconds() != -1 {
		t.Errorf("%v is not after %v", a, b)
	}
}

// FuzzPoint: points have the order of keys made of the same values.
func FuzzPoint(f *testing.F) {
	for _, s := range []string{"1", "1.0", "1000m", "9007199254740993", "9007199254740992.0", "0.1", "0.10000000000000001", "1e3", "1Ki", "-2.5", "1n", "0.5n",
		"2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00", "x", "10.0.0.1", "123456789012345", "12345678901234.5", "9223372036854775807", "7Ei"} {
		f.Add(s, "1")
		f.Add(s, "2026-01-02T03:04:05Z")
		f.Add(s, "9007199254740992")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		p, q := PointOf(a), PointOf(b)
		checkClass(t, a, p)
		if p.Class() != q.Class() || p.Class() != Amounts && p.Class() != Times {
			return
		}
		for _, x := range readings(a) {
			for _, y := range readings(b) {
				typ := Join(x.Type(), y.Type())
				if want, got := x.Key(typ).Compare(y.Key(typ)), p.Compare(q); got != want {
					t.Errorf("%v and %v: points compare %d, as type %d %d", x, y, got, typ, want)
				}
			}
		}
	})
}

// readings are the values whose text may be s.
func readings(s string) []Value {
	values := []Value{{rawjson.String, s}}
	if strings.IndexByte("-0123456789", s[0]) >= 0 && json.Valid([]byte(s)) {
		values = append(values, Value{rawjson.Number, s})
	}
	return values
}

func checkClass(t *testing.T, text string, p Point) {
	t.Helper()
	if p.Class() == Unsure {
		return
	}
	want := map[Class]Type{Amounts: Quantity, Times: Time, Texts: Text}[p.Class()]
	if got := (Value{rawjson.String, text}).Type(); got != want {
		t.Errorf("%q is of class %d and type %d", text, p.Class(), got)
	}
	if _, err := resource.ParseQuantity(text); (err == nil) != (p.Class() == Amounts) {
		t.Errorf("%q is of class %d, ParseQuantity(): %v", text, p.Class(), err)
	}
	if p.Class() == Amounts && QuantityPoint(text) != p {
		t.Errorf("%q is at %v, as a quantity at %v", text, p, QuantityPoint(text))
	}
	if _, err := time.Parse(time.RFC3339, text); (err == nil) != (p.Class() == Times) {
		t.Errorf("%q is of class %d, time.Parse(): %v", text, p.Class(), err)
	}
}

func TestFloatPoint(t *testing.T) {
	for f, want := range map[float64]Class{0.1: Amounts, -2.5: Amounts, 3: Amounts, 1 << 53: Unsure, 0.1234567890123: Unsure, 1e300: Unsure, 1e-300: Unsure} {
		if got := FloatPoint(f); got.Class() != want {
			t.Errorf("FloatPoint(%v) = %v, want class %d", f, got, want)
		}
	}
	if FloatPoint(2.5) != PointOf("2.5") {
		t.Errorf("2.5 is at %v", FloatPoint(2.5))
	}
}

func TestPrefixed(t *testing.T) {
	for prefix, texts := range map[string]string{"a": "a|ab|a\xff", "a\xff": "a\xff|a\xffb", "\xff": "\xff|\xff\xff", "": "|a|\xff"} {
		r := Prefixed(prefix)
		for text := range strings.SplitSeq(texts+"|b|A|0", "|") {
			if got := r.HasText(text); got != strings.HasPrefix(text, prefix) {
				t.Errorf("%q begins with %q: %v", text, prefix, got)
			}
		}
	}
}

func TestMeetsSecond(t *testing.T) {
	half := Bound{Point: TimePoint(time.Unix(10, 500_000_000))}
	open := Bound{Point: TimePoint(time.Unix(10, 0)), Open: true}
	for name, test := range map[string]struct {
		r    Range
		want string
	}{
		"from":         {Range{Class: Times, Low: &half}, "10 11"},
		"to":           {Range{Class: Times, High: &half}, "9 10"},
		"after":        {Range{Class: Times, Low: &open}, "10 11"}, // the rest of the second
		"before":       {Range{Class: Times, High: &open}, "9"},
		"from half to": {Range{Class: Times, Low: &half, High: &half}, "10"},
	} {
		var got []string
		for i, s := range []string{"9", "10", "11"} {
			if test.r.MeetsSecond(int64(9 + i)) {
				got = append(got, s)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}

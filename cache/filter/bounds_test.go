package filter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// wide is an object with a large map, a large list and a long text.
func wide(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"metadata":{"name":"wide"},"spec":{"keys":{`)
	for i := range n {
		fmt.Fprintf(&b, `"k%d":"v%d",`, i, i)
	}
	b.WriteString(`"last":"x"},"list":[`)
	for i := range n {
		fmt.Fprintf(&b, `"e%d",`, i)
	}
	fmt.Fprintf(&b, `"x"],"text":%q}}`, strings.Repeat("a", 10*n))
	return []byte(b.String())
}

// allocated runs f and returns how much it allocated.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBounds: what asks for too much memory or time gets an error that says so, before
// it has taken either. Each of them took gigabytes or minutes with the cost model of
// Kubernetes alone.
func TestBounds(t *testing.T) {
	grow := `['aaaaaaaaaaaaaaaa']` + strings.Repeat(`.map(a, a.replace('', a))`, 5)
	double := `[1]` + strings.Repeat(`.map(a, [a, a])`, 40)
	object := wide(60_000)
	for name, text := range map[string]string{
		"replace":            grow + ` == []`,
		"replace, with n":    strings.ReplaceAll(grow, `, a))`, `, a, 1000000000))`) + ` == []`,
		"join":               `['aaaaaaaaaaaaaaaa']` + strings.Repeat(`.map(a, a.split('').join(a))`, 6) + ` == []`,
		"format":             `['aaaaaaaaaaaaaaaa']` + strings.Repeat(`.map(a, '%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s'.format([a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a]))`, 6) + ` == []`,
		"format's precision": `'%.1000000000f'.format([1.0]) == ''`,
		"add":                `['aaaaaaaaaaaaaaaa']` + strings.Repeat(`.map(a, a + a)`, 40) + ` == []`,
		"lists.range":        `lists.range(1000000000).size() == 1`,
		"equal":              double + ` == ` + double,
		"not equal":          double + ` != ` + double,
		"in":                 double + ` in ` + `[` + double + `]`,
		"flatten":            `[[1]]` + strings.Repeat(`.map(a, [a, a].flatten())`, 40) + `.size() == 1`,
		"flatten deeply":     double + `.flatten(50).size() == 1`,
		"distinct":           `object.spec.list.distinct().size() == 1`,
		"sets":               `sets.contains(object.spec.list, object.spec.list)`,
		"text in text":       `(object.spec.text + 'b').indexOf(object.spec.text.substring(300000) + 'b') == -1 && object.spec.text.indexOf(object.spec.text.substring(300000) + 'b') == 1`,
		"matches":            `object.spec.keys.all(k, object.spec.text.matches('(a?){1000}b'))`,
		"find":               `object.spec.text.find('(a?){1000}b') == 'x'`,
		"findAll":            `object.spec.text.findAll('(a?){1000}b') == []`,
		"a pattern's length": `object.spec.text.matches(object.spec.text)`,
		"nested loops":       `object.spec.keys.all(k, object.spec.keys.exists(j, j == 'last'))`,
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Compile(text, noon)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			var matched bool
			got := allocated(func() { matched, _, err = f.Match(context.Background(), object) })
			if _, isCost := errors.AsType[*cache.CostError](err); !isCost && name != "a pattern's length" || err == nil {
				t.Errorf("%v, %v; want a CostError", matched, err)
			}
			if got > 400<<20 {
				t.Errorf("allocated %d MB", got>>20)
			}
			t.Logf("%v, %d KB: %v", time.Since(began), got>>10, err)
		})
	}
}

// TestWithinBounds: what looks like that, and is not, has its answer.
func TestWithinBounds(t *testing.T) {
	object := wide(1_000)
	for _, text := range []string{
		`object.spec.text.replace('a', 'bb').size() == 20000`,
		`object.spec.text.split('').size() == 10000`,
		`object.spec.list.join(',').size() > 4000`,
		`'%s %d %.3f'.format(['x', 1, 2.0]) == 'x 1 2.000'`,
		`object.spec.text.matches('^a+$')`,
		`object.spec.text.find('a{100}').size() == 100`,
		`object.spec.list == object.spec.list`,
		`object.spec.keys.exists(k, object.spec.keys[k] == 'v999')`,
		`object.spec.keys.last == 'x' && 'k999' in object.spec.keys && !('k1000' in object.spec.keys)`,
		`lists.range(1000).size() == 1000`,
		`object.spec.text.indexOf('b') == -1`,
		`object.spec.text.lastIndexOf('a') == 9999`,
		`[[1, 2], [3]].flatten() == [1, 2, 3]`,
		`[1, 2, 2].distinct() == [1, 2]`,
	} {
		f, err := Compile(text, noon)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if ok, cost, err := f.Match(context.Background(), object); err != nil || !ok {
			t.Errorf("%s: %v, %v at cost %d", text, ok, err, cost)
		}
	}
}

// TestInterrupted: an evaluation ends with the question it is for.
func TestInterrupted(t *testing.T) {
	f, err := Compile(`object.spec.keys.all(k, object.spec.keys[k] != '')`, noon)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has gone")
	cancel(gone)
	if _, _, err := f.Match(ctx, wide(60_000)); !errors.Is(err, gone) {
		t.Errorf("%v, want %v", err, gone)
	}
}

// TestPatternTooLarge: a mistake that can be told before the first object is.
func TestPatternTooLarge(t *testing.T) {
	for text, want := range map[string]string{
		`object.x.matches('` + strings.Repeat("a{1000}", 11) + `')`: "steps",
		`object.x.find('[') == ''`:                                  "missing closing ]",
	} {
		_, err := Compile(text, noon)
		if invalid, ok := errors.AsType[*cache.InvalidError](err); !ok || !strings.Contains(invalid.Message, want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

// TestHugeQuantities: an exponent makes a number of as many digits.
func TestHugeQuantities(t *testing.T) {
	for text, want := range map[string]string{
		`quantity('1e1000000000').isGreaterThan(quantity('1'))`:                     "exponent",
		`quantity('1E-1000000000').isGreaterThan(quantity('1'))`:                    "exponent",
		`quantity('` + strings.Repeat("9", 300) + `').isGreaterThan(quantity('1'))`: "long",
		`isQuantity('1e1000000000')`:                                                "false",
		`isQuantity('1e3') && quantity('1e3').asInteger() == 1000`:                  "true",
	} {
		f, err := Compile(text, noon)
		if err != nil {
			t.Fatal(err)
		}
		ok, _, err := f.Match(context.Background(), []byte(`{}`))
		if got := fmt.Sprint(ok, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestChargedByTime: what took long is charged as much, so that a question about many
// such objects ends.
func TestChargedByTime(t *testing.T) {
	f, err := Compile(`object.spec.keys.all(k, object.spec.keys.exists(j, j == 'last'))`, noon)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, cost, err := f.Match(context.Background(), wide(20_000))
	took := time.Since(began)
	if err == nil || took > longEvaluation && cost < uint64(took/unitTime)/2 {
		t.Errorf("%v took %v and cost %d", err, took, cost)
	}
}

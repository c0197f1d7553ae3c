package rawjson

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// sibling is src with other texts in some strings, and other numbers; sometimes something else
// differs, too.
func sibling(r *rand.Rand, src []byte) []byte {
	var out []byte
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '"':
			end := skipString(src, i+1)
			if end < 0 {
				return append(out, src[i:]...)
			}
			next := skipSpace(src, end)
			isKey := next < len(src) && src[next] == ':'
			if r.IntN(3) > 0 || isKey && r.IntN(12) > 0 {
				out = append(out, src[i:end]...)
			} else {
				text := src[i+1 : end-1]
				from := r.IntN(len(text) + 1)
				out = append(append(out, '"'), text[:from]...)
				out = append(out, []string{"", "x", "7", "and more of it", `\n`, `\"`, `é`, "ü", "\xff", "true"}[r.IntN(10)]...)
				if to := from + r.IntN(len(text)-from+1); r.IntN(2) == 0 {
					out = append(out, text[to:]...)
				}
				out = append(out, '"')
			}
			i = end
		case isWordByte(c):
			end := i
			for end < len(src) && isWordByte(src[end]) {
				end++
			}
			if r.IntN(3) > 0 {
				out = append(out, src[i:end]...)
			} else {
				out = append(out, []string{"0", "7", "12", "123456789", "-1", "1.5", "1e3", "01", "1e999", "null", strings.Repeat("1", 70), ""}[r.IntN(12)]...)
			}
			i = end
		default:
			if r.IntN(200) > 0 {
				out = append(out, c)
			}
			if r.IntN(200) == 0 {
				out = append(out, "{}[],:\" x\\"[r.IntN(10)])
			}
			i++
		}
	}
	return out
}

// sameRun holds s.Run against p.Run.
func sameRun(t *testing.T, s *Siblings, p *Program, src []byte, doc *Document) {
	t.Helper()
	var want Document
	wantErr, err := p.Run(src, &want), s.Run(p, src, doc)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%q: %v, want %v", src, err, wantErr)
	}
	if got, want := identityOf(doc), identityOf(&want); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q after %q: %+v, want %+v", src, s.outline.text, got, want)
	}
	if len(doc.Values) != len(want.Values) {
		t.Fatalf("%q after %q: %d values, want %d", src, s.outline.text, len(doc.Values), len(want.Values))
	}
	for i, v := range want.Values {
		if got := doc.Values[i]; got.Path != v.Path || got.Kind != v.Kind || string(got.Text) != string(v.Text) || (got.Text == nil) != (v.Text == nil) {
			t.Fatalf("%q after %q: value %d is %+v, want %+v", src, s.outline.text, i, got, v)
		}
	}
	if got, want := doc.AppendJSON(nil, "v1", "Pod"), want.AppendJSON(nil, "v1", "Pod"); !bytes.Equal(got, want) {
		t.Fatalf("%q after %q: keeps %q, want %q", src, s.outline.text, got, want)
	}
	if doc.InitialEventsEnd != want.InitialEventsEnd || !bytes.Equal(doc.CreationTimestamp, want.CreationTimestamp) || !bytes.Equal(doc.DeletionTimestamp, want.DeletionTimestamp) {
		t.Fatalf("%q after %q: %+v, want %+v", src, s.outline.text, doc, want)
	}
}

func TestSiblingsAreReadAlike(t *testing.T) {
	var seen, won int
	for n, c := range compiledSpecs(t) {
		var s Siblings
		var doc Document
		taken := false
		for seed := range uint64(1000) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			s.worth = worth{} // as if the last had been alike
			base := generate(seed)
			sameRun(t, &s, c.program, base, &doc)
			for range 6 {
				s.worth.passed = s.worth.patient - r.IntN(2) // now and then another one is taken
				sameRun(t, &s, c.program, sibling(r, base), &doc)
				seen++
			}
			won += s.worth.wins
			taken = taken || s.program != nil
		}
		if redacts := len(c.spec.Redact) > 0; redacts == taken {
			t.Errorf("%+v: objects are compared: %t, and some of it is redacted: %t", c.spec, taken, redacts)
		}
	}
	if won < seen/20 {
		t.Errorf("of %d objects %d were alike: that proves little", seen, won)
	}
}

func TestSiblingsByPlaces(t *testing.T) {
	p := compile(t, specOf(t, "spec.a,a", "metadata.managedFields", ""))
	for _, c := range []struct {
		base, next string
		alike      bool
	}{
		{`{"kind":"Pod","metadata":{"name":"a"}}`, `{"kind":"Node","metadata":{"name":"bcd"}}`, true},
		{`{"kind":"Pod","metadata":{"name":"a"}}`, `{"kind":"","metadata":{"name":"a"}}`, false},
		{`{"apiVersion":"","metadata":{"name":"a"}}`, `{"apiVersion":"v1","metadata":{"name":"a"}}`, false},
		{`{"metadata":{"name":"","uid":"x"}}`, `{"metadata":{"name":"abc","uid":"y"}}`, true},
		{`{"metadata":{"name":"abc","uid":"x"}}`, `{"metadata":{"name":"","uid":""}}`, true},
		{`{"metadata":{"name":"a"},"a":12}`, `{"metadata":{"name":"a"},"a":123}`, true},
		{`{"metadata":{"name":"a"},"a":123}`, `{"metadata":{"name":"a"},"a":12}`, true},
		{`{"metadata":{"name":"a"},"a":123}`, `{"metadata":{"name":"a"},"a":-1.5e3}`, true},
		{`{"metadata":{"name":"a"},"a":123}`, `{"metadata":{"name":"a"},"a":0123}`, false},
		{`{"metadata":{"name":"a"},"a":123}`, `{"metadata":{"name":"a"},"a":"123"}`, false},
		{`{"metadata":{"name":"a"},"a":123}`, `{"metadata":{"name":"a"},"a":true}`, false},
		{`{"metadata":{"name":"a"},"a":[1,2]}`, `{"metadata":{"name":"a"},"a":[12,2]}`, true},
		{`{"metadata":{"name":"a"},"a":[1,2]}`, `{"metadata":{"name":"a"},"a":[1]}`, false},
		{`{"metadata":{"name":"a"},"a":[12]}`, `{"metadata":{"name":"a"},"a":[345,6]}`, false},
		{`{"metadata":{"name":"a"},"a":12,"b":1}`, `{"metadata":{"name":"a"},"a":3456}`, false},
		{`{"metadata":{"name":"a","labels":{"a":"b"}}}`, `{"metadata":{"name":"a","labels":{"b":"b"}}}`, false},
		{`{"metadata":{"name":"a","labels":{"a":"b"}}}`, `{"metadata":{"name":"a","labels":{"a":"cd"}}}`, true},
		{`{"metadata":{"name":"a","labels":{"a":null}}}`, `{"metadata":{"name":"a","labels":{"a":"n"}}}`, false},
		{`{"metadata":{"name":"a","managedFields":[{"k:1":{}}]}}`, `{"metadata":{"name":"a","managedFields":[{"k:\"23\"":{}}]}}`, true},
		{`{"metadata":{"name":"a"},"status":{"x":{"y":1}}}`, `{"metadata":{"name":"a"},"status":{"x":{"yz":1}}}`, true},
		{`{"metadata":{"name":"a"},"status":{"x":1}}`, `{"metadata":{"name":"a"},"spec":{"x":1}}`, false},
		{`{"metadata":{"name":"a"},"status":{"x":"a\nb"}}`, `{"metadata":{"name":"a"},"status":{"x":"a\tb"}}`, false},
		{`{"metadata":{"name":"a"},"status":{"x":"a"}}`, `{"metadata":{"name":"a"},"status":{"x":"a\tb"}}`, true},
		{`{"metadata":{"name":"a"},"status":{"x":"a"}}`, `{"metadata":{"name":"a"},"status":{"x":"a\q"}}`, false},
		{`{"metadata":{"name":"a"},"status":{"x":"a"}}`, "{\"metadata\":{\"name\":\"a\"},\"status\":{\"x\":\"a\nb\"}}", false},
		{`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}} `, false},
		{`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}`, false},
		{`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}}}`, false},
		{` {"metadata":{"name":"a"}}`, ` {"metadata":{"name":"b"}}`, false},
		{`{"metadata":{"name":"\u0061"}}`, `{"metadata":{"name":"b"}}`, false},
		{`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"\u0062"}}`, true},
		{`{"metadata":{"name":"a"},"a":1,"a":2}`, `{"metadata":{"name":"a"},"a":1,"a":3}`, false},
		{`{"metadata":{"name":"a","annotations":{"k8s.io/initial-events-end":"no"}}}`, `{"metadata":{"name":"a","annotations":{"k8s.io/initial-events-end":"true"}}}`, false},
		{`{"metadata":{"name":"a","annotations":{"k8s.io/initial-events-enx":"true"}}}`, `{"metadata":{"name":"a","annotations":{"k8s.io/initial-events-end":"true"}}}`, false},
	} {
		var s Siblings
		var doc Document
		sameRun(t, &s, p, []byte(c.base), &doc)
		sameRun(t, &s, p, []byte(c.next), &doc)
		if alike := s.worth.wins > 0; alike != c.alike {
			t.Errorf("%s after %s: alike: %t, want %t", c.next, c.base, alike, c.alike)
		}
	}
}

func FuzzSiblings(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for seed := range uint64(20) {
		f.Add(generate(seed), sibling(r, generate(seed)))
	}
	programs := compiledSpecs(f)
	f.Fuzz(func(t *testing.T, base, next []byte) {
		for _, c := range programs {
			var s Siblings
			var doc Document
			sameRun(t, &s, c.program, base, &doc)
			sameRun(t, &s, c.program, next, &doc)
		}
		checkOutline(t, base, next, 1)
	})
}

// checkOutline compares next with base in pieces: if it is alike, it must be valid, and end there.
func checkOutline(t *testing.T, base, next []byte, seed uint64) likeness {
	t.Helper()
	var o outline
	if len(base) == 0 || base[0] != '{' || skipValue(base, 0, 0) != len(base) || !o.take(base, extent{0, len(base)}) {
		return unlike
	}
	r := rand.New(rand.NewPCG(seed, 1))
	l, there := undecided, 0
	for o.begin(); l == undecided && there < len(next); {
		there += 1 + r.IntN(len(next)-there)
		l = o.feed(next[:there])
	}
	if end := skipValue(next, 0, 0); l == alike && end != o.at {
		t.Fatalf("%q ends at %d according to %q, and not at %d", next, o.at, base, end)
	}
	return l
}

func TestOutlineInPieces(t *testing.T) {
	found := map[likeness]int{}
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		base := bytes.TrimSpace(generate(seed))
		next := append(sibling(r, base), `,{"a":`...)
		found[checkOutline(t, base, next, seed)]++
		found[checkOutline(t, base, next[:r.IntN(len(next))], seed)]++
	}
	if found[alike] < 1000 || found[unlike] < 1000 || found[undecided] < 250 {
		t.Errorf("there were too few of some: %v", found)
	}
}

// TestListOfSiblings reads lists of which most items are alike.
func TestListOfSiblings(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		list := []byte(`{"kind":"PodList","items":[`)
		base := generate(seed)
		for i := range 8 {
			if i > 0 {
				list = append(list, ',')
			}
			if r.IntN(4) == 0 {
				base = generate(seed + uint64(i)<<32)
			}
			list = append(list, sibling(r, base)...)
		}
		checkList(t, append(list, "]}"...), seed)
	}
}

func TestSiblingTooLong(t *testing.T) {
	list := `{"items":[{"a":"x"},{"a":"x"},{"a":"` + strings.Repeat("x", 100) + `"}]}`
	l := NewListReader(strings.NewReader(list), 50)
	for n := 0; ; n++ {
		if _, err := l.Next(); err != nil {
			if n != 2 || err == io.EOF || !strings.Contains(err.Error(), ErrTooLarge.Error()) {
				t.Errorf("after %d items: %v", n, err)
			}
			return
		}
	}
}

// TestSiblingsOfManyFields: an object of which many fields are wanted is walked through twice, and the
// first time nothing is known of what is wanted within.
func TestSiblingsOfManyFields(t *testing.T) {
	fields := func(format string) string {
		var all []string
		for i := range maxSeen + 2 {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	for _, c := range []struct{ extract, drop, base, next string }{
		{fields("spec.f%d.x"), "", `{"spec":{"f0":{"x":1}}}`, `{"spec":{"f0":{"y":1}}}`},
		{"", fields("f%d"), `{"metadata":{"name":"a"}}`, `{"metadata":{"xxxx":"a"}}`},
		{"", fields("spec.f%d.secret"), `{"metadata":{"name":"a"},"spec":{"f0":{"public":"x"}}}`, `{"metadata":{"name":"a"},"spec":{"f0":{"secret":"hunter2"}}}`},
	} {
		var s Siblings
		var doc Document
		p := compile(t, specOf(t, c.extract, c.drop, ""))
		sameRun(t, &s, p, []byte(c.base), &doc)
		sameRun(t, &s, p, []byte(c.next), &doc)
		sameRun(t, &s, p, bytes.ReplaceAll([]byte(c.base), []byte(`"a"`), []byte(`"abc"`)), &doc)
	}
}

// TestNoCopyOfLargeObjects: what is compared with is kept from one object to the next, which would be
// much memory for objects that hardly have siblings.
func TestNoCopyOfLargeObjects(t *testing.T) {
	large := []byte(`{"metadata":{"name":"a"},"data":"` + strings.Repeat("x", maxInsides) + `"}`)
	var s Siblings
	var doc Document
	if err := s.Run(podProgram(t), large, &doc); err != nil || cap(s.outline.text) > 0 {
		t.Errorf("%d bytes are kept of one of %d (%v)", cap(s.outline.text), len(large), err)
	}
	l := NewListReader(strings.NewReader(`{"items":[`+string(large)+`]}`), 0)
	if _, err := l.Next(); err != nil || cap(l.s.outline.text) > 0 {
		t.Errorf("%d bytes are kept of an item of %d (%v)", cap(l.s.outline.text), len(large), err)
	}
}

func TestWorth(t *testing.T) {
	var w worth
	var taken []int
	for i := range 300 {
		if w.another() {
			taken = append(taken, i)
		}
	}
	if want := []int{0, 2, 6, 14, 30, 62, 126, 190, 254}; !reflect.DeepEqual(taken, want) {
		t.Errorf("of objects that are not alike these are taken: %v, want %v", taken, want)
	}
	for range enoughWins {
		if w.another() {
			t.Error("one that was alike too seldom is replaced at once")
		}
		w.won()
	}
	if !w.another() || !w.another() || w.another() || !w.another() {
		t.Error("what was alike is not replaced at once, or those after it are")
	}
}

func TestSiblingsAllocateNothing(t *testing.T) {
	p := podProgram(t)
	var s Siblings
	var doc Document
	src := testPod()
	other := bytes.ReplaceAll(src, []byte("x2v9k"), []byte("abc"))
	run := func() {
		for _, src := range [][]byte{src, other} {
			if err := s.Run(p, src, &doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 || s.worth.wins < 100 {
		t.Errorf("reading two siblings allocates %v times; %d were alike", n, s.worth.wins)
	}
}

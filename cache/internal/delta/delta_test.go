package delta

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/test/standin"
)

// pods are n pods as a Store has them, fifty of a ReplicaSet.
func pods(t testing.TB, n int) [][]byte {
	t.Helper()
	drop, err := rawjson.ParsePaths("metadata.managedFields")
	if err != nil {
		t.Fatal(err)
	}
	program, err := rawjson.Compile(rawjson.Spec{Drop: drop})
	if err != nil {
		t.Fatal(err)
	}
	all := standin.NewPods(n)
	var out [][]byte
	var doc rawjson.Document
	for i := range n {
		if err := program.Run(all.AppendItem(nil, i, i+1), &doc); err != nil {
			t.Fatal(err)
		}
		out = append(out, doc.AppendJSON(nil, "v1", "Pod"))
	}
	return out
}

// check packs object beside base and returns the delta, which must come out as object, after what
// is in front of it.
func check(t *testing.T, e *Encoder, base, object []byte) []byte {
	t.Helper()
	d, ok := e.Append([]byte("before"), object, math.MaxInt)
	if !ok {
		t.Fatalf("gave up %q beside %q", object, base)
	}
	if d = d[len("before"):]; len(d) > 0 {
		if again, ok := e.Append(nil, object, len(d)); !ok || !bytes.Equal(again, d) {
			t.Fatalf("%d bytes are too many for %q beside %q", len(d), object, base)
		}
		if _, ok := e.Append(nil, object, len(d)-1); ok {
			t.Fatalf("%d bytes are less than %d", len(d), len(d)-1)
		}
	}
	out, err := Apply([]byte("front"), base, d, len(object))
	if err != nil || string(out) != "front"+string(object) {
		t.Fatalf("%q beside %q is %q (%v)", object, base, out, err)
	}
	return d
}

// TestSiblings: a pod beside one of its ReplicaSet takes a twentieth of its bytes, and one beside
// that of another ReplicaSet comes out as well.
func TestSiblings(t *testing.T) {
	all := pods(t, 120)
	var e Encoder
	e.Reset(all[0])
	for i, pod := range all {
		d := check(t, &e, all[0], pod)
		if i < standin.PodsOfSet && len(d)*20 > len(pod) {
			t.Errorf("pod %d: %d bytes of %d", i, len(d), len(pod))
		}
	}
	if d := check(t, &e, all[0], all[0]); len(d) > 8 {
		t.Errorf("what is the same takes %d bytes", len(d))
	}
}

// TestRandom: whatever is beside whatever comes out, and an Encoder keeps nothing of what it was
// for before.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	all := pods(t, 3)
	var e Encoder
	for range 3000 {
		base := mutated(rng, all[rng.IntN(3)])
		e.Reset(base)
		for range 3 {
			check(t, &e, base, mutated(rng, all[rng.IntN(3)]))
		}
	}
}

// mutated is some of b with pieces cut out, repeated, and of any bytes.
func mutated(rng *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b[:rng.IntN(len(b)+1)])
	for range rng.IntN(12) {
		i := rng.IntN(len(b) + 1)
		j := i + rng.IntN(min(200, len(b)-i)+1)
		switch rng.IntN(4) {
		case 0:
			b = append(b[:i:i], b[j:]...)
		case 1:
			b = append(b[:j:j], b[i:]...)
		case 2:
			noise := make([]byte, rng.IntN(20))
			for n := range noise {
				noise[n] = byte(rng.Uint32())
			}
			b = append(append(b[:i:i], noise...), b[j:]...)
		default:
			b = append(append(b[:i:i], fmt.Sprintf("%x-%d", rng.Uint64(), rng.IntN(100))...), b[j:]...)
		}
	}
	return b
}

// TestRuns: an object with a long run of one byte, or of a few, takes no longer for that: each
// position was once compared with all that follow.
func TestRuns(t *testing.T) {
	var e Encoder
	e.Reset([]byte(`{"data":"` + strings.Repeat("A", 60_000) + `"}`))
	for _, run := range []string{"A", "AB", " ", "=AAAAAA", "\x00"} {
		object := []byte(`{"data":"` + strings.Repeat(run, 8<<20/len(run)) + `"}`)
		check(t, &e, e.base, object) // took minutes
	}
}

// TestGivesUp: an object that is not like its sibling is not looked at to its end.
func TestGivesUp(t *testing.T) {
	all := pods(t, 1)
	var e Encoder
	e.Reset(all[0])
	rng := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, 64<<20)
	for i := range noise[:1<<20] {
		noise[i] = byte(rng.Uint32())
	}
	if _, ok := e.Append(nil, noise, 1000); ok || e.Held() > 1<<16 {
		t.Errorf("noise is like a pod: %v, and %d bytes are held", ok, e.Held())
	}
}

// TestCode: every byte comes out, whatever it follows.
func TestCode(t *testing.T) {
	var text []byte
	for i := range 256 {
		for j := range 256 {
			text = append(text, byte(i), byte(j))
		}
	}
	w := writer{}
	w.write(text)
	r := reader{in: w.end()}
	got := make([]byte, len(text))
	if !r.read(got) || !r.atEnd() || !bytes.Equal(got, text) {
		t.Error("another text came out")
	}
	if r := (reader{in: w.end()[:1000]}); r.read(got) {
		t.Error("more was read than there was")
	}
}

// TestDamaged: of a delta that is cut off, changed, of another size or of another sibling, either
// an error comes or as many bytes as asked for.
func TestDamaged(t *testing.T) {
	all := pods(t, 2)
	var e Encoder
	e.Reset(all[0])
	d := check(t, &e, all[0], all[1])
	for i := range d {
		if _, err := Apply(nil, all[0], d[:i], len(all[1])); err == nil {
			t.Errorf("%d of %d bytes are enough", i, len(d))
		}
	}
	for _, size := range []int{0, 1, len(all[1]) - 1, len(all[1]) + 1, len(all[1]) + 100} {
		if _, err := Apply(nil, all[0], d, size); err == nil {
			t.Errorf("%d bytes come out, too", size)
		}
	}
	if _, err := Apply(nil, all[0][:100], d, len(all[1])); err == nil {
		t.Error("a shorter sibling does, too")
	}
	if _, err := Apply(nil, nil, nil, 0); err == nil {
		t.Error("nothing is a delta")
	}
}

// plainly is what Apply does, byte by byte and bit by bit.
func plainly(base, delta []byte, size int) ([]byte, error) {
	number := func() (v uint64, ok bool) {
		v, n := binary.Uvarint(delta)
		if n <= 0 || n > binary.MaxVarintLen32 || v > math.MaxUint32 {
			return 0, false
		}
		delta = delta[n:]
		return v, true
	}
	count, ok := number()
	if !ok || count > uint64(len(delta)) {
		return nil, ErrDamaged
	}
	steps := make([][3]uint64, count)
	for i := range steps {
		for n := range steps[i] {
			if steps[i][n], ok = number(); !ok {
				return nil, ErrDamaged
			}
		}
	}
	bit := 0
	bits := func(at, n int) (v int, ok bool) {
		for i := range n {
			if (at+i)/8 >= len(delta) {
				return 0, false
			}
			v |= int(delta[(at+i)/8]) >> ((at + i) % 8) & 1 << i
		}
		return v, true
	}
	next := func() (b byte, ok bool) {
		for length := 1; length <= longest; length++ {
			v, ok := bits(bit, length)
			if !ok {
				return 0, false
			}
			m := meanings[v]
			if int(m.length) != length {
				continue
			}
			bit += length
			if !m.escaped {
				return m.byte, true
			}
			v, ok = bits(bit, 8)
			bit += 8
			return byte(v), ok
		}
		return 0, false
	}
	var out []byte
	spell := func(n uint64) bool {
		for range n {
			b, ok := next()
			if !ok || len(out) == size {
				return false
			}
			out = append(out, b)
		}
		return true
	}
	from := int64(0)
	for _, s := range steps {
		spelled, copied, own, where := s[0], s[1]>>1, s[1]&1 == 1, int64(s[2]>>1)^-int64(s[2]&1)
		if !spell(spelled) || copied > uint64(size-len(out)) {
			return nil, ErrDamaged
		}
		from += int64(spelled)
		piece := base
		at := from + where
		if own {
			piece, at = out, int64(len(out))-where
		} else {
			from = at
		}
		if at < 0 || at > int64(len(piece)) || own && where <= 0 || copied > uint64(int64(len(piece))-at) {
			return nil, ErrDamaged
		}
		out = append(out, piece[at:at+int64(copied)]...)
		from += int64(copied)
	}
	if !spell(uint64(size - len(out))) {
		return nil, ErrDamaged
	}
	for ; bit < 8*len(delta); bit++ {
		if v, _ := bits(bit, 1); v != 0 || 8*len(delta)-bit >= 8 {
			return nil, ErrDamaged
		}
	}
	return out, nil
}

// likePlainly checks that Apply says the same as plainly, and what Parts says of it.
func likePlainly(t *testing.T, base, delta []byte, size int) {
	t.Helper()
	out, err := Apply([]byte("front"), base, delta, size)
	want, wantErr := plainly(base, delta, size)
	if err != wantErr || err == nil && string(out) != "front"+string(want) {
		t.Fatalf("%q beside %q is %q (%v), want %q (%v)", delta, base, out, err, want, wantErr)
	}
	if string(out[:5]) != "front" {
		t.Fatal("what was there before is another")
	}
	var s Steps
	if err != nil || !s.Read(delta) {
		return
	}
	at, from := 0, 0
	for _, p := range s.Parts(nil) {
		if p.At < at || p.From < from || p.Len < 0 || !bytes.Equal(want[p.At:p.At+p.Len], base[p.From:p.From+p.Len]) {
			t.Fatalf("%q beside %q: %v", delta, base, s.Parts(nil))
		}
		at, from = p.At+p.Len, p.From+p.Len
	}
}

// TestPlainly: whatever is changed of a delta, Apply says the same as if it were slow.
func TestPlainly(t *testing.T) {
	all := pods(t, 120)
	rng := rand.New(rand.NewPCG(3, 4))
	var e Encoder
	fine := 0
	for i, object := range all {
		base := all[i/standin.PodsOfSet*standin.PodsOfSet]
		e.Reset(base)
		d, _ := e.Append(nil, object, math.MaxInt)
		likePlainly(t, base, d, len(object))
		for range 50 {
			changed := slices.Clone(d)
			changed[rng.IntN(len(d))] ^= 1 << rng.IntN(8)
			likePlainly(t, base, changed, len(object))
			if _, err := Apply(nil, base, changed, len(object)); err == nil {
				fine++
			}
		}
		likePlainly(t, base, mutated(rng, d), len(object))
	}
	if fine < 100 {
		t.Errorf("%d changed ones were applied", fine)
	}
}

func FuzzApply(f *testing.F) {
	all := pods(f, 2)
	var e Encoder
	e.Reset(all[0])
	d, _ := e.Append(nil, all[1], math.MaxInt)
	f.Add(all[0], d, len(all[1]))
	f.Add([]byte("abc"), []byte{1, 0, 2, 0, 255}, 10)
	f.Add([]byte{}, []byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0}, 0)
	f.Fuzz(func(t *testing.T, base, d []byte, size int) {
		if size < 0 || size > 1<<20 || len(base) > MaxBase {
			return
		}
		likePlainly(t, base, d, size)
	})
}

func FuzzAppend(f *testing.F) {
	all := pods(f, 2)
	f.Add(all[0], all[1])
	f.Add([]byte{}, []byte("abcabcabcabcabcabcabcabcabcabcabcabcabc"))
	f.Fuzz(func(t *testing.T, base, object []byte) {
		if len(base) > MaxBase {
			return
		}
		var e Encoder
		e.Reset(base)
		check(t, &e, base, object)
	})
}

// BenchmarkApply is of a thousand pods, as the processor would learn the branches of one.
func BenchmarkApply(b *testing.B) {
	all := pods(b, 1000)
	var e Encoder
	deltas := make([][]byte, len(all))
	bytes := 0
	for i := range all {
		base := all[i/standin.PodsOfSet*standin.PodsOfSet]
		if i%standin.PodsOfSet == 0 {
			e.Reset(base)
		}
		deltas[i], _ = e.Append(nil, all[i], math.MaxInt)
		bytes += len(deltas[i])
	}
	var buf []byte
	apply := func(b *testing.B, apply func(base, delta []byte, size int) error) {
		for i := 0; b.Loop(); i = (i + 1) % len(all) {
			if err := apply(all[i/standin.PodsOfSet*standin.PodsOfSet], deltas[i], len(all[i])); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(bytes)/float64(len(all)), "bytes")
	}
	b.Run("once", func(b *testing.B) {
		apply(b, func(base, delta []byte, size int) (err error) {
			buf, err = Apply(buf[:0], base, delta, size)
			return err
		})
	})
	b.Run("read", func(b *testing.B) {
		var s Steps
		apply(b, func(base, delta []byte, size int) (err error) {
			s.Read(delta)
			return nil
		})
	})
	b.Run("steps", func(b *testing.B) {
		var s Steps
		apply(b, func(base, delta []byte, size int) (err error) {
			s.Read(delta)
			buf, err = s.Apply(buf[:0], base, size)
			return err
		})
	})
}

func BenchmarkAppend(b *testing.B) {
	all := pods(b, 2)
	var e Encoder
	e.Reset(all[0])
	b.SetBytes(int64(len(all[1])))
	var buf []byte
	for b.Loop() {
		buf, _ = e.Append(buf[:0], all[1], math.MaxInt)
	}
}

func BenchmarkReset(b *testing.B) {
	all := pods(b, 1)
	var e Encoder
	for b.Loop() {
		e.Reset(all[0])
	}
}

// TestStepsOfMany: Steps that were of other deltas before, damaged ones among them, keep nothing of them.
func TestStepsOfMany(t *testing.T) {
	all := pods(t, 120)
	rng := rand.New(rand.NewPCG(1, 2))
	var e Encoder
	var s Steps
	for i, object := range all {
		base := all[i/standin.PodsOfSet*standin.PodsOfSet]
		e.Reset(base)
		d, _ := e.Append(nil, object, math.MaxInt)
		if s.Read(mutated(rng, d)) {
			_, _ = s.Apply(nil, base, len(object))
		}
		if i%2 == 0 {
			s.Release()
		}
		if !s.Read(d) {
			t.Fatalf("pod %d: not read", i)
		}
		if out, err := s.Apply(nil, base, len(object)); err != nil || !bytes.Equal(out, object) {
			t.Fatalf("pod %d: %q (%v)", i, out, err)
		}
	}
}

// TestLongSteps: numbers of every length come out as they were.
func TestLongSteps(t *testing.T) {
	var e Encoder
	for _, length := range []int{0, 1, 126, 127, 128, 129, 1<<14 - 1, 1 << 14, 1<<14 + 1, 60_000} {
		base := bytes.Repeat([]byte("x"), length)
		for i := range base {
			base[i] = byte('a' + i*i%23)
		}
		for _, text := range []int{0, 1, 9, 16, 17, 127, 128, 1 << 14, 70_000} {
			object := append(bytes.Repeat([]byte("\x01"), text), base...)
			for i := range object[:text] {
				object[i] = byte(i * 7 % 251)
			}
			e.Reset(base)
			check(t, &e, base, object)
			check(t, &e, base, append(slices.Clip(base), object...))
		}
	}
}

package cache

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/informerd/informerd/cache/rawjson"
)

// Within is how to append the JSON of object i of the Objects, or as much of it as paths lead
// to, for what is about nothing else. Query.Reads says that it will be asked for.
func (r *Result) Within(paths []rawjson.Path) func(dst []byte, i int) ([]byte, error) {
	at := r.located.column(paths)
	if at == nil {
		return func(dst []byte, i int) ([]byte, error) { return r.Objects[i].AppendJSON(dst) }
	}
	return func(dst []byte, i int) ([]byte, error) { return at.append(dst, r.located.rows[i], r.Objects[i]) }
}

// Tally is what is read of all objects of a Result, and of how many the same: of what
// questions are about, many objects often have the same. It is of several sets of paths, each
// by itself: of a path alone more objects have the same than of many together.
type Tally struct {
	objects []*Object
	rows    []uint32
	sets    []tallied
	nothing Sets     // those without paths
	apart   []uint32 // objects of which something is not at hand
	// excerpts are what all sets lead to, for want of columns; nil: there is one, or keys may occur
	// twice.
	excerpts *excerpts
	lacks    []Sets // what, by object; nil: nothing of any
}

// Sets are some of the sets of paths of a Tally.
type Sets uint64

// Has reports whether set i is among them, from 0 on.
func (s Sets) Has(i int) bool { return s&(1<<i) != 0 }

// tallied is what is at hand of one set of paths.
type tallied struct {
	at     *columnAt // nil: nothing
	codes  []uint32  // the texts that there are
	counts []int     // of how many objects each is
	first  []uint32  // the first object of each
}

// Tally is of what each of the sets of paths leads to, of which there are 64 at most.
func (r *Result) Tally(sets ...[]rawjson.Path) *Tally {
	t := &Tally{objects: r.Objects, rows: r.located.rows, sets: make([]tallied, len(sets))}
	for i, paths := range sets {
		if len(paths) == 0 {
			t.nothing |= 1 << i
			continue
		}
		t.sets[i].at = r.located.column(paths)
		t.count(i)
	}
	if r.unique && !slices.ContainsFunc(t.sets, func(s tallied) bool { return s.at != nil }) {
		t.excerpts = newExcerpts(slices.Concat(sets...))
	}
	if t.lacks != nil {
		t.apart = make([]uint32, 0, len(t.lacks)) // mostly it is all of them
	}
	for i := range t.lacks {
		if t.lacks[i] != 0 {
			t.apart = append(t.apart, uint32(i))
		}
	}
	return t
}

// count counts the objects of each text of a set, and notes those of which it has none.
func (t *Tally) count(set int) {
	s := &t.sets[set]
	if s.at == nil {
		for i := range t.objects {
			t.lack(i, set)
		}
		return
	}
	numbers := numberSlices.zeros(s.at.texts.len() + 1) // by code, from 1 on
	defer numberSlices.put(numbers)
	most := min(s.at.texts.len(), len(t.rows))
	s.codes, s.counts, s.first = make([]uint32, 0, most), make([]int, 0, most), make([]uint32, 0, most)
	for i, row := range t.rows {
		code := s.at.codes.at(row)
		if code == 0 {
			t.lack(i, set)
			continue
		}
		if numbers[code] == 0 {
			s.codes, s.counts, s.first = append(s.codes, code), append(s.counts, 0), append(s.first, uint32(i))
			numbers[code] = uint32(len(s.codes))
		}
		s.counts[numbers[code]-1]++
	}
}

func (t *Tally) lack(object, set int) {
	if t.lacks == nil {
		t.lacks = make([]Sets, len(t.objects))
	}
	t.lacks[object] |= 1 << set
}

// Read calls visit with what is read of objects, all of it or as much as the paths of some sets
// lead to, with how many have it, and for which sets it is: for each set, each object is in
// one call. Its error names one of the objects. Otherwise it is as Read is.
func (t *Tally) Read(ctx context.Context, visit func(worker, objects int, sets Sets, json []byte) error) error {
	if len(t.objects) == 0 {
		return nil
	}
	if t.nothing != 0 {
		if err := visit(0, len(t.objects), t.nothing, []byte("{}")); err != nil {
			return err
		}
	}
	named := func(object uint32, err error) error {
		if err != nil {
			err = fmt.Errorf("summarize %s: %w", t.objects[object].Key(), err)
		}
		return err
	}
	for set := range t.sets {
		s := &t.sets[set]
		text := func(dst []byte, i int) ([]byte, error) { return append(dst, s.at.texts.text(s.codes[i])...), nil }
		err := readItems(ctx, len(s.codes), text, func(_ context.Context, worker, i int, json []byte) error {
			return named(s.first[i], visit(worker, s.counts[i], 1<<set, json))
		})
		if err != nil {
			return err
		}
	}
	return readItems(ctx, len(t.apart), t.append, func(_ context.Context, worker, i int, json []byte) error {
		object := t.apart[i]
		return named(object, visit(worker, 1, t.lacks[object], json))
	})
}

// append appends what is read of an object of which something is not at hand. It is unpacked
// once for all sets.
func (t *Tally) append(dst []byte, i int) ([]byte, error) {
	object := t.apart[i]
	o, lacks := t.objects[object], t.lacks[object]
	if set := bits.TrailingZeros64(uint64(lacks)); lacks == 1<<set && t.sets[set].at != nil {
		return t.sets[set].at.append(dst, t.rows[object], o)
	}
	if t.excerpts != nil {
		dst, _, err := t.excerpts.append(dst, o)
		return dst, err
	}
	start := len(dst)
	dst, err := o.AppendJSON(dst)
	if err != nil {
		return dst, err
	}
	end := len(dst)
	for set := range t.sets {
		if at := t.sets[set].at; at != nil && lacks.Has(set) {
			dst = at.excerpts.appendOf(dst, dst[start:end], o)
			at.keep(t.rows[object], o, dst[end:], end-start)
			dst = dst[:end]
		}
	}
	return dst, nil
}

package cache

import (
	"context"
	"errors"
	"slices"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
)

const (
	// ranksKept is of how many orders a column keeps the ranks of its texts.
	ranksKept = 2
	// ranksFrom is how many objects at least there are to be for each text, as a divisor, for
	// all texts to be ranked: a question about few of them ranks those alone.
	ranksFrom = 2
	// ranksLacking is the part of the objects, as a divisor, that may not be at hand.
	ranksLacking = 8
)

// ranks are the places of the texts of a column in an order, from 0 on: those that are equal in
// it have one. Whoever asks for that order again waits for no more than that objects are put in
// their places. They are immutable.
type ranks struct {
	order string
	of    []uint32 // by code, less 1
	// In what order values are depends on what all of them can be read as, so that ranks are
	// good for objects that have the same type in each key as all texts have.
	types [][]scalar.Type // by key and code, less 1
	all   []scalar.Type   // by key
}

// rank is which of the objects of l comes first in o, and so on, if all that o is about is in
// at, and it can be told from the ranks of its texts; else nil.
func (o Order) rank(ctx context.Context, l *located, at *columnAt) ([]uint32, error) {
	codes := numberSlices.get(len(l.objects))[:len(l.objects)]
	defer numberSlices.put(codes)
	if ok, err := at.findCodes(ctx, l, codes); !ok || err != nil {
		return nil, err
	}
	r, err := at.ranks(ctx, o, codes)
	if r == nil || err != nil {
		return nil, err
	}
	return r.arrange(codes), nil
}

// findCodes finds the codes of objects. It reads those that have none, and reports whether all
// have one: there may be too many of those, or nothing is kept of one that was read.
func (at *columnAt) findCodes(ctx context.Context, l *located, codes []uint32) (all bool, err error) {
	var lacking []int
	for i, row := range l.rows {
		if codes[i] = at.codes.at(row); codes[i] == 0 {
			lacking = append(lacking, i)
		}
	}
	if !lackFew(len(lacking), len(codes)) {
		return false, nil
	}
	read := func(dst []byte, i int) ([]byte, error) {
		return at.append(dst, l.rows[lacking[i]], l.objects[lacking[i]])
	}
	err = readItems(ctx, len(lacking), read, func(_ context.Context, _, i int, text []byte) error {
		codes[lacking[i]] = at.codeOf(text)
		return nil
	})
	return err == nil && !slices.Contains(codes, 0), err
}

// lackFew reports whether a column that lacks some of so many objects is used for all of them.
func lackFew(lacking, objects int) bool { return lacking <= objects/ranksLacking }

// codeOf is the code of a text; 0: it has none, or codes are others by now.
func (at *columnAt) codeOf(text []byte) uint32 {
	c := at.column
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbering != at.numbering {
		return 0
	}
	code, _ := c.texts.find(text)
	if code == 0 || !c.texts.has(code, text) {
		return 0
	}
	return code
}

// ranks are those of an order that are good for these codes; nil: there are none.
func (at *columnAt) ranks(ctx context.Context, o Order, codes []uint32) (*ranks, error) {
	order, last := o.String(), slices.Max(codes)
	r, texts := at.rankedBefore(order)
	if r == nil || int(last) > len(r.of) {
		if texts.len() > ranksFrom*len(codes) || int(last) > texts.len() {
			return nil, nil
		}
		var err error
		r, err = newRanks(ctx, o, &texts)
		if _, ok := errors.AsType[*textError](err); ok {
			return nil, nil // it may be of an object that is not asked about
		}
		if err != nil {
			return nil, err
		}
		at.keepRanks(r)
	}
	if !r.good(codes) {
		return nil, nil
	}
	return r, nil
}

// rankedBefore are the ranks of an order that are kept, and the texts that there are now; no
// texts: codes are others by now.
func (at *columnAt) rankedBefore(order string) (*ranks, textsAt) {
	c := at.column
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbering != at.numbering {
		return nil, textsAt{}
	}
	if i := slices.IndexFunc(c.ranked, func(r *ranks) bool { return r.order == order }); i >= 0 {
		return c.ranked[i], c.texts.textsAt
	}
	return nil, c.texts.textsAt
}

// keepRanks keeps ranks in the place of those of the same order, or of the oldest, if there is
// room.
func (at *columnAt) keepRanks(r *ranks) {
	c := at.column
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbering != at.numbering || c.closed {
		return
	}
	i := slices.IndexFunc(c.ranked, func(other *ranks) bool { return other.order == r.order })
	if i < 0 && len(c.ranked) >= ranksKept {
		i = 0
	}
	var freed int64
	if i >= 0 {
		freed = c.ranked[i].bytes()
	}
	if !c.take(r.bytes() - freed) {
		return
	}
	if i >= 0 {
		c.ranked = slices.Delete(c.ranked, i, i+1)
	}
	c.ranked = append(c.ranked, r)
}

// newRanks ranks all texts.
func newRanks(ctx context.Context, o Order, texts *textsAt) (*ranks, error) {
	paths := make([]rawjson.Path, len(o))
	keys := make([]int, len(o))
	for i, k := range o {
		paths[i], keys[i] = k.Path, i
	}
	text := func(dst []byte, i int) ([]byte, error) { return append(dst, texts.text(uint32(i+1))...), nil }
	columns, err := o.readTexts(ctx, texts.len(), text, paths, keys, nil)
	if err != nil {
		return nil, err
	}
	r := &ranks{order: o.String(), of: make([]uint32, texts.len())}
	for i, rank := range scalar.Ranks(columns, o.directions()) {
		r.of[i] = uint32(rank)
	}
	for _, c := range columns {
		types := c.Types()
		all := scalar.None
		for _, t := range types {
			all = scalar.Join(all, t)
		}
		r.types, r.all = append(r.types, types), append(r.all, all)
	}
	return r, nil
}

// good reports whether texts with these codes are among themselves as they are among all.
func (r *ranks) good(codes []uint32) bool {
	for key, all := range r.all {
		typ := scalar.None
		for _, code := range codes {
			if typ == all {
				break
			}
			typ = scalar.Join(typ, r.types[key][code-1])
		}
		if typ != all {
			return false
		}
	}
	return true
}

// arrange is which of the objects with these codes comes first, and so on, in one of
// numberSlices. Those of one rank keep their order.
func (r *ranks) arrange(codes []uint32) []uint32 {
	next := numberSlices.zeros(len(r.of) + 1) // where the next object of each rank goes
	defer numberSlices.put(next)
	for _, code := range codes {
		next[r.of[code-1]+1]++
	}
	for rank := range len(r.of) {
		next[rank+1] += next[rank]
	}
	order := numberSlices.get(len(codes))[:len(codes)]
	for i, code := range codes {
		rank := r.of[code-1]
		order[next[rank]] = uint32(i)
		next[rank]++
	}
	return order
}

// bytes are those that are held.
func (r *ranks) bytes() int64 { return int64(len(r.of)) * int64(4+len(r.types)) }

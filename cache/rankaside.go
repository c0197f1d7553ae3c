package cache

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// asideFrom is how many objects there are at least, for it to be worth while.
	asideFrom = 1024
	// asideKnown is of how many objects it can be told whether many have the same text, and
	// asideShared for how many there is to be one text at least.
	asideKnown  = asideFrom / 2
	asideShared = 2
	// asideLong and asideMost are how many bytes one text may have, and all of them: where a path
	// leads to a part of an object that is large, the values are less than that.
	asideLong = 1 << 10
	asideMost = 16 << 20
)

// aside has the texts of the objects of one question, of most of which no column has them: each
// once, and its number for each object. So a sort by what many objects have in common, such as
// what they request, takes four bytes for each and compares each text once, in the place of the
// values of all. It holds no more than asideMost bytes of texts.
type aside struct {
	codes   []uint32 // by object
	readers []asideReader

	mu    sync.Mutex // guards all below
	texts texts
	found int // how many objects they are of
}

// asideReader is what one of those has who read objects: neighbours often have the same text.
type asideReader struct {
	text, last []byte
	code       uint32 // of last; 0: there was none
	found      int    // objects since aside was told
}

var errTooMany = errors.New("too few objects have the same text, or texts are long")

// rankAside is which of the objects of l comes first in o, and so on, by what they have at paths,
// which are all that o is about. at is the column of these paths, nil if there is none. There is
// no order (nil) if a column has most of the objects, or texts are not what aside is for.
func (o Order) rankAside(ctx context.Context, l *located, paths []rawjson.Path, at *columnAt) ([]uint32, error) {
	if len(l.objects) < asideFrom || at.hasMost(l) {
		return nil, nil
	}
	a := &aside{codes: numberSlices.get(len(l.objects))[:len(l.objects)], readers: make([]asideReader, Workers())}
	defer numberSlices.put(a.codes)
	switch err := a.read(ctx, l, paths, at); {
	case errors.Is(err, errTooMany):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r, err := newRanks(ctx, o, &a.texts.textsAt)
	if _, ok := errors.AsType[*textError](err); ok {
		return nil, nil // who reads the objects themselves can say which it is
	}
	if err != nil {
		return nil, err
	}
	return r.arrange(a.codes), nil
}

// hasMost reports whether the column has as many of the objects as it takes for it to be used.
func (at *columnAt) hasMost(l *located) bool {
	if at == nil {
		return false
	}
	lacking := 0
	for _, row := range l.rows {
		if at.codes.at(row) == 0 {
			lacking++
		}
	}
	return lackFew(lacking, len(l.rows))
}

// read finds the text of each object.
func (a *aside) read(ctx context.Context, l *located, paths []rawjson.Path, at *columnAt) error {
	enter := func(_ context.Context, worker, i int, text []byte) error {
		r := &a.readers[worker]
		r.text = append(r.text[:0], text...)
		return a.enter(r, i)
	}
	x := newExcerpts(paths)
	write := func(dst []byte, i int) ([]byte, error) {
		if at != nil {
			return at.append(dst, l.rows[i], l.objects[i])
		}
		dst, _, err := x.append(dst, l.objects[i])
		return dst, err
	}
	return readItems(ctx, len(l.objects), write, enter)
}

// enter gives object i the number of the text of r.
func (a *aside) enter(r *asideReader, i int) error {
	r.found++
	if r.code == 0 || !bytes.Equal(r.text, r.last) {
		var err error
		if r.code, err = a.code(r.text, r.found); err != nil {
			return err
		}
		r.found = 0
		r.text, r.last = r.last, r.text
	}
	a.codes[i] = r.code
	return nil
}

// code is the number of a text, which it gets if it has none. objects is how many were read since
// the same reader called it last.
func (a *aside) code(text []byte, objects int) (uint32, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found += objects
	code, hash := a.texts.find(text)
	if code > 0 && a.texts.has(code, text) {
		return code, nil
	}
	switch {
	case code > 0, // two texts have one hash
		len(text) > asideLong, a.texts.held > asideMost,
		a.found > asideKnown && a.texts.len() > a.found/asideShared:
		return 0, errTooMany
	}
	code, ok := a.texts.add(text, hash)
	if !ok {
		return 0, errTooMany
	}
	return code, nil
}

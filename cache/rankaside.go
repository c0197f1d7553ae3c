package cache

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// asideFrom is of how many objects it is found out whether many have the same text.
	asideFrom = 4096
	// asideShared is for how many objects there is to be one text at least.
	asideShared = 2
)

// aside has the texts of the objects of one question, where no column has them: each once, and
// its number for each object. So a sort by what many objects have in common, such as what they
// request, takes four bytes for each and compares each text once, in the place of values of all.
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

var errTooMany = errors.New("too few objects have the same text")

// rankAside is which of the objects of l comes first in o, and so on, by what they have at paths,
// all that o is about; nil: too few have the same. at is their column, nil if there is none.
func (o Order) rankAside(ctx context.Context, l *located, paths []rawjson.Path, at *columnAt) ([]int, error) {
	a := &aside{codes: make([]uint32, len(l.objects)), readers: make([]asideReader, Workers())}
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

// read finds the text of each object.
func (a *aside) read(ctx context.Context, l *located, paths []rawjson.Path, at *columnAt) error {
	if at != nil {
		write := func(dst []byte, i int) ([]byte, error) { return at.append(dst, l.rows[i], l.objects[i]) }
		return readItems(ctx, len(l.objects), write, func(_ context.Context, worker, i int, text []byte) error {
			r := &a.readers[worker]
			r.text = append(r.text[:0], text...)
			return a.enter(r, i)
		})
	}
	excerpt := rawjson.NewExcerpt(paths)
	return Read(ctx, l.objects, func(_ context.Context, worker, i int, json []byte) error {
		r := &a.readers[worker]
		r.text = excerpt.Append(r.text[:0], json)
		return a.enter(r, i)
	})
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

// code is the number of a text, which it gets if it has none, after so many objects more.
func (a *aside) code(text []byte, objects int) (uint32, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found += objects
	code, hash := a.texts.find(text)
	if code > 0 && a.texts.has(code, text) {
		return code, nil
	}
	if code > 0 || a.found > asideFrom && a.texts.len() > a.found/asideShared {
		return 0, errTooMany // two texts with one hash are nothing to be sorted by, either
	}
	code, ok := a.texts.add(text, hash)
	if !ok {
		return 0, errTooMany
	}
	return code, nil
}

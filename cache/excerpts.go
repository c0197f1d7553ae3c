package cache

import (
	"sync"

	"github.com/informerd/informerd/cache/internal/delta"
	"github.com/informerd/informerd/cache/internal/shape"
	"github.com/informerd/informerd/cache/rawjson"
)

// excerpts takes an excerpt of each of many objects. Of those that are held beside the same
// template, which mostly differ from it in a few texts alone, it looks into the template in the
// place of each of them. Safe for concurrent use.
type excerpts struct {
	of     *rawjson.Excerpt
	shapes sync.Pool // of *templateShape
}

func newExcerpts(paths []rawjson.Path) *excerpts {
	return &excerpts{of: rawjson.NewExcerpt(paths)}
}

// templateShape is for whoever reads objects one after the other.
type templateShape struct {
	shape shape.Shape
	of    *dictionary // the template that shape is of; nil: it is of none
	last  *dictionary // the template of the object before
	steps delta.Steps // of the object that is read now
}

// append appends the excerpt of an object, and says how long the object is.
func (x *excerpts) append(dst []byte, o *Object) (_ []byte, size int, err error) {
	s := x.beside(o)
	defer x.done(s)
	start := len(dst)
	if s == nil {
		dst, err = o.AppendJSON(dst)
	} else {
		dst, err = o.dict.unpackSteps(dst, &s.steps, int(o.size))
	}
	if err != nil {
		return dst, 0, err
	}
	end := len(dst) // the excerpt, which is made of the object and shorter, takes its place
	dst = x.take(dst, dst[start:end], o, s)
	return append(dst[:start], dst[end:]...), end - start, nil
}

// appendOf appends the excerpt of an object whose JSON is plain.
func (x *excerpts) appendOf(dst, plain []byte, o *Object) []byte {
	s := x.beside(o)
	defer x.done(s)
	return x.take(dst, plain, o, s)
}

// beside has read what an object that is held beside a template differs in. nil: o is not, or is
// damaged, of which who unpacks it is told.
func (x *excerpts) beside(o *Object) *templateShape {
	if o.dict == nil || o.dict.template == nil || o.was != 0 {
		return nil
	}
	s, _ := x.shapes.Get().(*templateShape)
	if s == nil {
		s = &templateShape{}
	}
	if !s.steps.Read(o.data()) {
		x.done(s)
		return nil
	}
	return s
}

func (x *excerpts) done(s *templateShape) {
	if s != nil {
		s.steps.Release()
		x.shapes.Put(s)
	}
}

// take appends the excerpt of an object whose JSON is plain; s is what beside says of it.
func (x *excerpts) take(dst, plain []byte, o *Object, s *templateShape) []byte {
	if s != nil && s.follow(x.of, o.dict) {
		if out, ok := s.shape.Append(dst, plain, &s.steps); ok {
			return out
		}
	}
	return x.of.Append(dst, plain)
}

// follow reports whether s has the shape of template d. It takes it where the object before was
// beside d, too: to take it costs as much as to read two objects, and who reads pods of all over the
// cluster meets each template once.
func (s *templateShape) follow(e *rawjson.Excerpt, d *dictionary) bool {
	again := s.last == d
	if s.last = d; s.of == d {
		return true
	}
	if !again {
		return false
	}
	s.of = nil
	err := plains.use(d, func(base []byte) error {
		s.shape.Take(e, base)
		return nil
	})
	if err == nil {
		s.of = d
	}
	return err == nil
}

package cache

import (
	"sync"

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
}

// append appends the excerpt of an object, and says how long the object is.
func (x *excerpts) append(dst []byte, o *Object) (_ []byte, size int, err error) {
	start := len(dst)
	dst, err = o.AppendJSON(dst)
	if err != nil {
		return dst, 0, err
	}
	end := len(dst) // the excerpt, which is made of the object and shorter, takes its place
	dst = x.appendOf(dst, dst[start:end], o)
	return append(dst[:start], dst[end:]...), end - start, nil
}

// appendOf appends the excerpt of an object whose JSON is plain.
func (x *excerpts) appendOf(dst, plain []byte, o *Object) []byte {
	if o.dict != nil && o.dict.template != nil && o.was == 0 {
		s, _ := x.shapes.Get().(*templateShape)
		if s == nil {
			s = &templateShape{}
		}
		out, ok := dst, false
		if s.follow(x.of, o.dict) {
			out, ok = s.shape.Append(dst, plain, o.data())
		}
		x.shapes.Put(s)
		if ok {
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

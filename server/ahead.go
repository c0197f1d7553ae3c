package server

import (
	"context"

	"github.com/informerd/informerd/cache"
)

const (
	// aheadFrom is how many objects are worth more than one processor.
	aheadFrom = 128
	// aheadSize is how much JSON the objects have together that are read at a time: what is
	// shown of them is held until it is written, and is no more than that.
	aheadSize = 2 << 20
)

// ahead makes what is shown of the objects of a long list, in their order. It reads some of
// them at a time, on all processors, ahead of the one goroutine that writes.
type ahead struct {
	*encoder
	ctx        context.Context
	objects    []*cache.Object
	start, end int      // of those that were read last
	made       [][]byte // what is shown of them, by worker
	parts      []madePart
}

// madePart is where in made an object is.
type madePart struct{ worker, from, to int }

// itemsOf is what appends item i of objects. What is only copied, or known without unpacking
// objects, is made by who writes it.
func itemsOf(ctx context.Context, enc *encoder, objects []*cache.Object) func(dst []byte, i int) ([]byte, error) {
	if enc.projection == nil || enc.spec != nil || len(objects) < aheadFrom {
		return func(dst []byte, i int) ([]byte, error) { return enc.append(dst, i, objects[i]) }
	}
	a := &ahead{encoder: enc, ctx: ctx, objects: objects, made: make([][]byte, cache.Workers())}
	return a.item
}

func (a *ahead) item(dst []byte, i int) ([]byte, error) {
	if i < a.start || i >= a.end {
		if err := a.read(i); err != nil {
			return dst, err
		}
	}
	p := a.parts[i-a.start]
	return append(dst, a.made[p.worker][p.from:p.to]...), nil
}

// read makes what is shown of the objects from start on.
func (a *ahead) read(start int) error {
	a.start, a.end = start, start // nothing, should it fail
	end := start
	for size := 0; end < len(a.objects) && size < aheadSize; end++ {
		size += a.objects[end].Size()
	}
	for w := range a.made {
		a.made[w] = a.made[w][:0]
	}
	a.parts = append(a.parts[:0], make([]madePart, end-start)...)
	read := func(dst []byte, i int) ([]byte, error) { return a.encoder.read(dst, start+i, a.objects[start+i]) }
	err := cache.ReadAs(a.ctx, a.objects[start:end], read, func(_ context.Context, worker, i int, json []byte) (err error) {
		from := len(a.made[worker])
		a.made[worker], err = a.project(a.made[worker], json)
		a.parts[i] = madePart{worker, from, len(a.made[worker])}
		return err
	})
	if err == nil {
		a.end = end
	}
	return err
}

package replica

import (
	"errors"
	"io"
	"sync"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
)

// batchBytes is how much of a list is decoded at a time: enough to be worth
// handing over, and little enough to stay in a processor's cache.
const batchBytes = 256 << 10

// batchBuffers are used again by batches to come.
var batchBuffers sync.Pool

func batchBuffer() []byte {
	if b, ok := batchBuffers.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, batchBytes)
}

// release gives back the memory of the JSON, unless one huge object made it grow.
func (b *batch) release() {
	if raw := b.raw; cap(raw) <= 4*batchBytes {
		batchBuffers.Put(&raw)
	}
	b.raw = nil
}

// batch is a part of a list.
type batch struct {
	raw   []byte // items one after the other
	ends  []int  // of each item in raw
	items []runtime.Object
}

// decodeList decodes the items of a list, on all processors while it goes on
// reading. It holds one batch of JSON for each of them and one more. Items that
// the decoder refuses are counted and left out.
func (s *source) decodeList(r *rawjson.ListReader) ([]runtime.Object, error) {
	var decoders errgroup.Group
	decoders.SetLimit(cache.Workers())
	var batches []*batch
	var err error
	for err == nil {
		b := &batch{raw: batchBuffer()}
		err = b.fill(r)
		batches = append(batches, b)
		size := len(b.raw)
		decoders.Go(func() error {
			b.decode(s)
			b.release()
			return nil
		})
		if err == nil {
			err = s.reading.took(size)
		}
	}
	_ = decoders.Wait() // items that fail are counted
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	n := 0
	for _, b := range batches {
		n += len(b.items)
	}
	items := make([]runtime.Object, 0, n)
	for _, b := range batches {
		items = append(items, b.items...)
		b.items = nil
	}
	return items, nil
}

// fill reads items. It returns io.EOF when the list is complete.
func (b *batch) fill(r *rawjson.ListReader) error {
	for len(b.raw) < batchBytes {
		raw, err := r.Next()
		if err != nil {
			return err
		}
		b.raw = append(b.raw, raw...)
		b.ends = append(b.ends, len(b.raw))
	}
	return nil
}

func (b *batch) decode(s *source) {
	b.items = make([]runtime.Object, 0, len(b.ends))
	start := 0
	for _, end := range b.ends {
		obj, err := s.decodeListed(b.raw[start:end])
		if start = end; err != nil {
			s.undecoded(err)
			continue
		}
		b.items = append(b.items, listed{obj})
	}
}

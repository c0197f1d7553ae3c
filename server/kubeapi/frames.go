package kubeapi

import (
	"container/list"
	"sync"

	"github.com/informerd/informerd/cache"
)

const (
	maxFrames     = 4096
	maxFrameBytes = 32 << 20
)

// frames keeps the JSON of objects that events were about lately: however many
// watchers an event has, it is unpacked once. What was made first goes first.
type frames struct {
	mu    sync.Mutex // guards all below
	byKey map[frameKey]*frame
	order list.List // of *frame
	bytes int64
}

type frameKey struct {
	object *cache.Object // events share their objects
	as     string
}

type frame struct {
	key  frameKey
	once sync.Once
	json []byte // not to be modified
	err  error
}

func (f *frames) init() {
	f.byKey = map[frameKey]*frame{}
	f.order.Init()
}

// get returns the JSON of o in the form as. It must not be modified.
func (f *frames) get(o *cache.Object, as string) ([]byte, error) {
	fr := f.frame(frameKey{o, as})
	fr.once.Do(func() { fr.json, fr.err = appendObject(make([]byte, 0, o.Size()), o, as) })
	return fr.json, fr.err
}

func (f *frames) frame(key frameKey) *frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fr := f.byKey[key]; fr != nil {
		return fr
	}
	fr := &frame{key: key}
	f.byKey[key] = fr
	f.order.PushBack(fr)
	f.bytes += int64(key.object.Size())
	for f.order.Len() > maxFrames || f.bytes > maxFrameBytes && f.order.Len() > 1 {
		oldest := f.order.Remove(f.order.Front()).(*frame)
		delete(f.byKey, oldest.key)
		f.bytes -= int64(oldest.key.object.Size())
	}
	return fr
}

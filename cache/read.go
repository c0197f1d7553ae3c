package cache

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// readChunk is how many objects a worker takes at a time.
const readChunk = 32

// processors are as many as Go found. The program may add some to spare, which are for what
// takes a moment and not for this.
var processors = runtime.GOMAXPROCS(0)

// Workers is how many goroutines Read uses at most.
func Workers() int { return processors }

// Read unpacks objects on all processors and calls visit with the position and
// the JSON of each, which is valid during the call. Its context is for Yield. Calls with the same worker,
// a number below Workers, follow one another and have rising positions. Read
// ends early with the error of visit or ctx, and waits for the Turns of ctx, if there
// are any. It holds one unpacked object per worker.
func Read(ctx context.Context, objects []*Object, visit func(ctx context.Context, worker, i int, json []byte) error) error {
	write := func(dst []byte, i int) ([]byte, error) { return objects[i].AppendJSON(dst) }
	return ReadAs(ctx, objects, write, visit)
}

func (r *reading) run(ctx context.Context) error {
	workers := min(Workers(), (len(r.objects)+readChunk-1)/readChunk)
	if workers == 0 {
		return ctx.Err()
	}
	defer Pause(ctx)() // each worker takes turns of its own
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := 1; w < workers; w++ {
		wg.Go(func() { errs[w] = r.work(ctx, w) })
	}
	errs[0] = r.work(ctx, 0)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// reading is one Read.
type reading struct {
	objects []*Object
	write   func(dst []byte, i int) ([]byte, error)
	visit   func(ctx context.Context, worker, i int, json []byte) error
	next    atomic.Int64 // the first object nobody has taken
}

// work takes chunks until there are none left.
func (r *reading) work(ctx context.Context, worker int) error {
	buf := buffers.get()
	used := *buf
	defer func() { buffers.put(buf, used) }()
	turn := turnOf(ctx)
	defer turn.end()
	held := turn.in(ctx)
	for {
		end := int(r.next.Add(readChunk))
		start := end - readChunk
		if start >= len(r.objects) {
			return nil
		}
		for i := start; i < min(end, len(r.objects)); i++ {
			err := ctx.Err()
			if err == nil {
				err = turn.next(ctx)
			}
			if err == nil {
				used, err = r.write(used[:0], i)
			}
			if err == nil {
				err = r.visit(held, worker, i, used)
			}
			if err != nil {
				r.next.Store(int64(len(r.objects))) // no use to go on
				return err
			}
		}
	}
}

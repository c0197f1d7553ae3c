package cache

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	// readChunk is how many objects a worker takes at a time, at least.
	readChunk = 32
	// readChunkMost is how many it takes at most. The siblings that a chunk ends between are read by
	// two workers, each of which has to unpack the template and to look into it: of a million pods,
	// fifty of each ReplicaSet, chunks of 32 take 12 % longer than chunks of 512.
	readChunkMost = 512
	// readChunks is how many chunks each worker takes, within these bounds. Where all objects take
	// as long, the last worker ends at most one of them later than the first one.
	readChunks = 64
)

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
	return readItems(ctx, len(objects), write, visit)
}

// ReadAs is Read of other JSON than that which the objects are unpacked to: write appends
// that of object i.
func ReadAs(ctx context.Context, objects []*Object, write func(dst []byte, i int) ([]byte, error), visit func(ctx context.Context, worker, i int, json []byte) error) error {
	return readItems(ctx, len(objects), write, visit)
}

// readItems is Read of n texts: write appends text i.
func readItems(ctx context.Context, n int, write func(dst []byte, i int) ([]byte, error), visit func(ctx context.Context, worker, i int, json []byte) error) error {
	return (&reading{n: n, write: write, visit: visit}).run(ctx)
}

func (r *reading) run(ctx context.Context) error {
	workers := min(Workers(), (r.n+readChunk-1)/readChunk)
	if workers == 0 {
		return ctx.Err()
	}
	r.chunk = min(max(readChunk, r.n/(workers*readChunks)), readChunkMost)
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
	n     int
	chunk int // how many a worker takes at a time
	write func(dst []byte, i int) ([]byte, error)
	visit func(ctx context.Context, worker, i int, json []byte) error
	next  atomic.Int64 // the first one nobody has taken
	ended atomic.Bool  // with an error: no use to go on
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
		end := int(r.next.Add(int64(r.chunk)))
		start := end - r.chunk
		if start >= r.n || r.ended.Load() {
			return nil
		}
		for i := start; i < min(end, r.n) && !r.ended.Load(); i++ {
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
				r.ended.Store(true)
				return err
			}
		}
	}
}

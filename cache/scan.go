package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// scanned is what a scan left of the objects it was given.
type scanned struct {
	objects []*Object
	scanned int // had their JSON read
	faults  Faults
}

// filter keeps those of objs that match, in their order. It may reuse objs.
func (m *Matcher) filter(ctx context.Context, objs []*Object) (scanned, error) {
	if err := ctx.Err(); err != nil {
		return scanned{}, err
	}
	kept := objs[:0]
	for _, o := range objs {
		if m.matchHeld(o, true) {
			kept = append(kept, o)
		}
	}
	if m.scan.empty() || len(kept) == 0 {
		return scanned{objects: kept}, nil
	}
	return m.scan.all(ctx, kept)
}

// scanChunk is how many objects a worker takes at a time.
const scanChunk = 32

// scan is one pass over objects on all processors.
type scan struct {
	scanner
	objects []*Object
	next    atomic.Int64  // the first object nobody has taken
	cost    atomic.Uint64 // of the filter so far
	keep    []bool        // by object
	workers []scanWorker
}

// scanWorker is the part of a scan that one goroutine has.
type scanWorker struct {
	err    error
	faults Faults
	at     int // of faults.First
}

func (s scanner) all(ctx context.Context, objs []*Object) (scanned, error) {
	sc := &scan{scanner: s, objects: objs, keep: make([]bool, len(objs))}
	sc.workers = make([]scanWorker, min(runtime.GOMAXPROCS(0), (len(objs)+scanChunk-1)/scanChunk))
	var wg sync.WaitGroup
	for i := range sc.workers[1:] {
		wg.Go(func() { sc.work(ctx, &sc.workers[i+1]) })
	}
	sc.work(ctx, &sc.workers[0])
	wg.Wait()
	return sc.result()
}

// work takes chunks until there are none left. It has one buffer for all its
// objects.
func (sc *scan) work(ctx context.Context, w *scanWorker) {
	buf := buffers.get()
	used := *buf
	defer func() { buffers.put(buf, used) }()
	for {
		end := int(sc.next.Add(scanChunk))
		start := end - scanChunk
		if start >= len(sc.objects) {
			return
		}
		for i := start; i < min(end, len(sc.objects)); i++ {
			if w.err = ctx.Err(); w.err != nil {
				return
			}
			if used, w.err = sc.one(w, i, used[:0]); w.err != nil {
				sc.next.Store(int64(len(sc.objects))) // no use to go on
				return
			}
		}
	}
}

// one matches object i.
func (sc *scan) one(w *scanWorker, i int, buf []byte) (used []byte, err error) {
	ok, cost, used, err := sc.matchBuffer(sc.objects[i], buf)
	sc.keep[i] = ok
	if fault, isFault := errors.AsType[*EvalError](err); isFault {
		w.fault(i, sc.objects[i], fault)
		err = nil
	}
	switch {
	case err != nil:
		return used, fmt.Errorf("match %s: %w", sc.objects[i].Key(), err)
	case cost > 0 && sc.cost.Add(cost) > maxScanCost:
		return used, &CostError{What: "all objects", Limit: maxScanCost}
	}
	return used, nil
}

func (w *scanWorker) fault(i int, o *Object, fault *EvalError) {
	if w.faults.Count == 0 {
		w.at = i
		w.faults.First, w.faults.Key = fault.Message, o.Key()
	}
	w.faults.Count++
}

// result puts together what the workers found.
func (sc *scan) result() (scanned, error) {
	out := scanned{objects: sc.objects[:0], scanned: len(sc.objects)}
	first := len(sc.objects)
	for _, w := range sc.workers {
		if w.err != nil {
			return scanned{}, w.err
		}
		if w.faults.Count > 0 && w.at < first {
			first = w.at
			out.faults.First, out.faults.Key = w.faults.First, w.faults.Key
		}
		out.faults.Count += w.faults.Count
	}
	for i, o := range sc.objects {
		if sc.keep[i] {
			out.objects = append(out.objects, o)
		}
	}
	return out, nil
}

package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// scanned is what a scan left of the objects it was given.
type scanned struct {
	objects []*Object
	scanned int // had their JSON read, or what is known without it
	// excerpts is of about how many of those what is read was at hand.
	excerpts int
	faults   Faults
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

// scan is one pass of a scanner over objects.
type scan struct {
	scanner
	objects []*Object
	cost    atomic.Uint64 // of the filter so far
	keep    []bool        // by object
	faults  []scanFaults  // by worker
	again   []Again[verdict]
}

// verdict is what match says of one JSON, but for what it cost.
type verdict struct {
	ok  bool
	err error
}

// scanFaults are those that one worker found.
type scanFaults struct {
	Faults
	at int // of First
}

// all keeps those of objs that match; it reuses objs.
func (s scanner) all(ctx context.Context, objs []*Object) (scanned, error) {
	sc := &scan{scanner: s, objects: objs, keep: make([]bool, len(objs)), faults: make([]scanFaults, Workers()), again: make([]Again[verdict], Workers())}
	appendRead, excerpts := s.readerOf(len(objs))
	read := func(dst []byte, i int) ([]byte, error) { return appendRead(dst, objs[i]) }
	if err := ReadAs(ctx, objs, read, sc.visit); err != nil {
		return scanned{}, err
	}
	out := scanned{objects: objs[:0], scanned: len(objs), excerpts: excerpts, faults: sc.allFaults()}
	for i, o := range objs {
		if sc.keep[i] {
			out.objects = append(out.objects, o)
		}
	}
	return out, nil
}

func (sc *scan) visit(ctx context.Context, worker, i int, json []byte) error {
	ok, cost, err := sc.matchAgain(ctx, worker, json)
	sc.keep[i] = ok
	if fault, isFault := errors.AsType[*EvalError](err); isFault {
		sc.faults[worker].add(i, sc.objects[i], fault)
		err = nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("match %s: %w", sc.objects[i].Key(), err)
	case cost > 0 && sc.cost.Add(cost) > maxScanCost:
		return TooExpensive("all objects", maxScanCost)
	}
	return nil
}

// matchAgain is match, once for all objects of which the same is read, and for nothing after
// that: a cost may be of the time that one evaluation took, which the others did not take.
func (sc *scan) matchAgain(ctx context.Context, worker int, json []byte) (ok bool, cost uint64, err error) {
	if sc.identity || sc.filter != nil && sc.filter.Clock() { // with names nothing comes twice
		return sc.match(ctx, json)
	}
	again := &sc.again[worker]
	if v, known := again.Get(json); known {
		return v.ok, 0, v.err
	}
	ok, cost, err = sc.match(ctx, json)
	if _, isFault := errors.AsType[*EvalError](err); err == nil || isFault {
		again.Put(json, verdict{ok, err})
	}
	return ok, cost, err
}

func (f *scanFaults) add(i int, o *Object, fault *EvalError) {
	if f.Count == 0 {
		f.at = i
		f.First, f.Key = fault.Message, o.Key()
	}
	f.Count++
}

func (sc *scan) allFaults() (all Faults) {
	first := len(sc.objects)
	for _, f := range sc.faults {
		if f.Count > 0 && f.at < first {
			first = f.at
			all.First, all.Key = f.First, f.Key
		}
		all.Count += f.Count
	}
	return all
}

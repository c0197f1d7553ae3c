package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// scanned is what a scan left of the objects it was given.
type scanned struct {
	located
	scanned  int // had their JSON read, or what is known without it
	excerpts int // of how many of those what is read was at hand
	faults   Faults
}

// filter leaves those of l that match, in their order.
func (m *Matcher) filter(ctx context.Context, l located) (scanned, error) {
	if err := ctx.Err(); err != nil {
		return scanned{}, err
	}
	if !m.holdsAll() {
		l.keep(func(i int) bool { return m.matchHeld(l.objects[i], true) })
	}
	if m.scan.empty() || len(l.objects) == 0 {
		return scanned{located: l, scanned: l.ruledOut, excerpts: l.ruledOut}, nil
	}
	return m.scan.all(ctx, l)
}

// scan is one pass of a scanner over objects, item by item.
type scan struct {
	scanner
	*items
	cost   atomic.Uint64 // of the filter so far
	found  []outcome     // by item
	faults []firstFault  // by worker
	again  []Again[verdict]
	asked  *verdicts // of the same question before; nil: there are none
	open   []int     // the items that they say nothing of; nil: all
}

// outcome is what a scan has found out of an item.
type outcome uint8

const (
	other outcome = iota
	matches
	faulted // the filter has no value for it
)

// verdict is what match says of one JSON, but for what it cost.
type verdict struct {
	ok  bool
	err error
}

// firstFault is the first that one worker has found.
type firstFault struct {
	any     bool
	item    int
	message string
	key     Key
}

// all leaves those of l that match.
func (s scanner) all(ctx context.Context, l located) (scanned, error) {
	x := l.items(s.columnPaths())
	defer x.release()
	sc := &scan{scanner: s, items: x, found: make([]outcome, x.len()), faults: make([]firstFault, Workers()), again: make([]Again[verdict], Workers())}
	if err := sc.run(ctx); err != nil {
		return scanned{}, err
	}
	out := scanned{scanned: len(l.objects) + l.ruledOut, excerpts: x.known + l.ruledOut, faults: sc.first()}
	l.keep(func(i int) bool {
		found := sc.found[x.item(i)]
		if found == faulted {
			out.faults.Count++
		}
		return found == matches
	})
	out.located = l
	return out, nil
}

// run finds out what is not known of items.
func (sc *scan) run(ctx context.Context) error {
	if question := sc.question(); sc.at != nil && question != "" {
		sc.recall(sc.at.verdicts(question))
	}
	if sc.open == nil {
		return readItems(ctx, sc.len(), sc.read, sc.visit)
	}
	read := func(dst []byte, i int) ([]byte, error) { return sc.read(dst, sc.open[i]) }
	return readItems(ctx, len(sc.open), read, func(ctx context.Context, worker, i int, json []byte) error {
		return sc.visit(ctx, worker, sc.open[i], json)
	})
}

// recall takes over what is known.
func (sc *scan) recall(asked *verdicts) {
	if asked == nil {
		return
	}
	room := 64
	if known, _ := asked.count(); known == 0 {
		room = sc.len() // all is open the first time
	}
	sc.asked, sc.open = asked, make([]int, 0, room)
	for item := range sc.len() {
		var known bool
		if code := sc.code(item); code > 0 {
			sc.found[item], known = asked.of(code)
		}
		if !known {
			sc.open = append(sc.open, item)
		}
	}
}

// read appends what is read of an item.
func (sc *scan) read(dst []byte, item int) ([]byte, error) {
	if sc.at == nil {
		return sc.appendRead(dst, sc.objects[item])
	}
	return sc.append(dst, item)
}

func (sc *scan) visit(ctx context.Context, worker, item int, json []byte) error {
	ok, cost, err := sc.matchAgain(ctx, worker, json)
	if ok {
		sc.found[item] = matches
	}
	if fault, isFault := errors.AsType[*EvalError](err); isFault {
		sc.fault(worker, item, fault)
		err = nil
	}
	if sc.asked != nil && err == nil {
		sc.asked.note(sc.code(item), sc.found[item])
	}
	switch {
	case err != nil:
		return fmt.Errorf("match %s: %w", sc.objects[sc.object(item)].Key(), err)
	case cost > 0 && sc.cost.Add(cost) > maxScanCost:
		return TooExpensive("all objects", maxScanCost)
	}
	return nil
}

// matchAgain is match, once for all objects of which the same is read, and for nothing after
// that: a cost may be of the time that one evaluation took, which the others did not take.
func (sc *scan) matchAgain(ctx context.Context, worker int, json []byte) (ok bool, cost uint64, err error) {
	if sc.identity || sc.filter != nil && sc.filter.Clock() { // with names nothing comes twice
		return sc.scanner.match(ctx, json)
	}
	again := &sc.again[worker]
	if v, known := again.Get(json); known {
		return v.ok, 0, v.err
	}
	ok, cost, err = sc.scanner.match(ctx, json)
	if _, isFault := errors.AsType[*EvalError](err); err == nil || isFault {
		again.Put(json, verdict{ok, err})
	}
	return ok, cost, err
}

// fault notes an item for which the filter has no value. Each worker has rising ones.
func (sc *scan) fault(worker, item int, fault *EvalError) {
	sc.found[item] = faulted
	if f := &sc.faults[worker]; !f.any {
		*f = firstFault{true, item, fault.Message, sc.objects[sc.object(item)].Key()}
	}
}

// first is the first of all faults: items are in the order of their first objects.
func (sc *scan) first() (all Faults) {
	var first *firstFault
	for w := range sc.faults {
		if f := &sc.faults[w]; f.any && (first == nil || f.item < first.item) {
			first = f
		}
	}
	if first != nil {
		all.First, all.Key = first.message, first.key
	}
	return all
}

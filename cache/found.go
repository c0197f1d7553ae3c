package cache

import (
	"context"
	"fmt"

	"github.com/informerd/informerd/cache/rawjson"
)

// Within is how to append the JSON of object i of the Objects, or as much of it as paths lead
// to, for what is about nothing else. Query.Reads says that it will be asked for.
func (r *Result) Within(paths []rawjson.Path) func(dst []byte, i int) ([]byte, error) {
	at := r.located.column(paths)
	if at == nil {
		return func(dst []byte, i int) ([]byte, error) { return r.Objects[i].AppendJSON(dst) }
	}
	return func(dst []byte, i int) ([]byte, error) { return at.append(dst, r.located.rows[i], r.Objects[i]) }
}

// Tally is what is read of all objects of a Result, and of how many the same: of what
// questions are about, many objects often have the same.
type Tally struct {
	objects int
	items   *items // nil: nothing is read
	counts  []int  // of objects, by item; nil: one each
}

// Tally is of what paths lead to. What of it is not at hand is of one object each. Of no paths
// it is that there are objects.
func (r *Result) Tally(paths []rawjson.Path) *Tally {
	if len(paths) == 0 {
		return &Tally{objects: len(r.Objects)}
	}
	x := itemsOf(r.Objects, r.located.rows, r.located.column(paths))
	t := &Tally{objects: len(r.Objects), items: x}
	if x.at != nil {
		t.counts = x.counts()
	}
	return t
}

// Read calls visit with the JSON of each item, or as much of it as the paths lead to, and with
// how many objects have it. Its error names one of them. Otherwise it is as Read is.
func (t *Tally) Read(ctx context.Context, visit func(worker, objects int, json []byte) error) error {
	if t.objects == 0 {
		return nil
	}
	if t.items == nil {
		return visit(0, t.objects, []byte("{}"))
	}
	return readItems(ctx, t.items.len(), t.items.append, func(_ context.Context, worker, i int, json []byte) error {
		n := 1
		if t.counts != nil {
			n = t.counts[i]
		}
		if err := visit(worker, n, json); err != nil {
			return fmt.Errorf("summarize %s: %w", t.items.objects[t.items.object(i)].Key(), err)
		}
		return nil
	})
}

package graph

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
)

// Options of a Graph. Every zero value is useful.
type Options struct {
	// Declared are references beside the built-in ones.
	Declared []Rule
}

// Graph relates the objects of one cluster. It is safe for concurrent use, has
// no goroutine, and does nothing until it is asked: the first question reads
// all objects, every later one what changed since.
type Graph struct {
	resources func() []follow.Resource
	rules     []*compiled
	edges     []string // kinds of edges, sorted

	// updating is held by whoever brings the state up to date. It is taken
	// before mu; its holder may read what mu guards.
	updating chan struct{}
	follower follow.Follower

	mu sync.RWMutex // guards all below; taken before the locks of stores
	*state
	unread uint64
}

// Stats are counts of one moment.
type Stats struct {
	Nodes int // objects, and what references name
	Edges int // references
	// Unread counts objects whose references could not be read.
	Unread uint64
}

// New makes a Graph over resources, which is called with every question and
// lists the resources of one cluster. It fails for a declared reference that
// cannot be read.
func New(resources func() []follow.Resource, opts Options) (*Graph, error) {
	rules, err := compileRules(opts.Declared)
	if err != nil {
		return nil, err
	}
	return &Graph{
		resources: resources,
		rules:     rules,
		edges:     edgeNames(rules),
		updating:  make(chan struct{}, 1),
		state:     newState(),
	}, nil
}

// Edges are the kinds of edges there can be, sorted.
func (g *Graph) Edges() []string { return slices.Clone(g.edges) }

// Stats returns the Graph's counts as of the last question.
func (g *Graph) Stats() Stats {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return Stats{Nodes: len(g.nodes) - len(g.free), Edges: g.state.edges, Unread: g.unread}
}

// Close forgets everything. The Graph remains usable and begins anew.
func (g *Graph) Close() {
	g.updating <- struct{}{}
	defer func() { <-g.updating }()
	g.reset()
}

func (g *Graph) reset() {
	g.follower.Close()
	g.mu.Lock()
	g.state = newState()
	g.mu.Unlock()
}

// update brings the state up to date with the stores as they are when it is
// called.
func (g *Graph) update(ctx context.Context) error {
	select {
	case g.updating <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-g.updating }()
	resources := g.resources()
	deltas, err := g.follower.Read(ctx, resources)
	if err != nil {
		return err
	}
	if !g.learn(deltas) {
		g.reset()
		if deltas, err = g.follower.Read(ctx, resources); err != nil {
			return err
		}
		g.learn(deltas)
	}
	if err := g.apply(ctx, deltas); err != nil {
		g.follower.Close() // what is left comes again
		return err
	}
	return nil
}

// learn takes in what resources there are, all before the first reference. It
// reports false when those read before mean something else now.
func (g *Graph) learn(deltas []follow.Delta) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range deltas {
		d := &deltas[i]
		if d.Gone {
			g.forget(d)
			continue
		}
		id, ok := g.state.learn(d.Status)
		if !ok {
			return false
		}
		g.all[id].status, g.all[id].store = d.Status, d.Store
	}
	return true
}

// forget marks a resource that the cluster does not have any more.
func (g *Graph) forget(d *follow.Delta) {
	id, ok := g.byResource[d.Status.Spec.GVR.GroupResource()]
	if ok {
		g.all[id].known, g.all[id].store = false, nil
		g.all[id].status.State = ""
	}
}

// apply enters what changed in the objects.
func (g *Graph) apply(ctx context.Context, deltas []follow.Delta) error {
	for i := range deltas {
		d := &deltas[i]
		if d.Empty() {
			continue
		}
		id, ok := g.byResource[d.Status.Spec.GVR.GroupResource()]
		if !ok {
			continue // gone before it was ever known
		}
		if d.Store == nil {
			if g.all[id].loaded {
				g.drop(id, nil)
				g.all[id].loaded = false
			}
			continue
		}
		if d.Whole {
			g.drop(id, d.Objects)
		}
		if err := g.enter(ctx, id, d); err != nil {
			return err
		}
		g.all[id].loaded = true
	}
	return nil
}

// drop removes the objects of a kind but those to keep.
func (g *Graph) drop(k kindID, keep []*cache.Object) {
	kept := make(map[cache.Key]bool, len(keep))
	for _, o := range keep {
		kept[o.Key()] = true
	}
	var gone []cache.Key
	for key, id := range g.all[k].byKey {
		if g.nodes[id].present && !kept[key] {
			gone = append(gone, key)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range gone {
		g.remove(k, key)
	}
}

// batch is how many objects are read before they are entered: it bounds the
// memory of the first question.
const batch = 1024

// enter takes in the objects of one delta.
func (g *Graph) enter(ctx context.Context, k kindID, d *follow.Delta) error {
	r, err := g.readerOf(k)
	if err != nil {
		return err
	}
	changed := g.changed(k, d.Objects)
	for objects := range slices.Chunk(changed, batch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		read, unread := readAll(r, objects)
		g.mu.Lock()
		for _, l := range read {
			g.put(k, l)
		}
		g.unread += unread
		g.mu.Unlock()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range d.Deleted {
		g.remove(k, key)
	}
	return nil
}

// changed leaves out the objects that were read in the same version.
func (g *Graph) changed(k kindID, objects []*cache.Object) []*cache.Object {
	return slices.DeleteFunc(objects, func(o *cache.Object) bool {
		id, ok := g.all[k].byKey[o.Key()]
		return ok && g.nodes[id].present && g.nodes[id].stamp == stampOf(o)
	})
}

func (g *Graph) readerOf(k kindID) (*reader, error) {
	kind := g.all[k]
	if kind.reader != nil {
		return kind.reader, nil
	}
	r, err := newReader(kind.status.Spec.GVR.GroupResource(), g.rules)
	if err == nil {
		kind.reader = r
	}
	return r, err
}

// readAll reads objects on all processors. One that cannot be read says nothing
// about others, and is counted.
func readAll(r *reader, objects []*cache.Object) (all []*links, unread uint64) {
	all = make([]*links, len(objects))
	failed := make([]bool, len(objects))
	const chunk = 32
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for start := 0; start < len(objects); start += chunk {
		work := func() error {
			for i := start; i < min(start+chunk, len(objects)); i++ {
				var err error
				if all[i], err = r.read(objects[i]); err != nil {
					all[i] = &links{key: objects[i].Key(), uid: objects[i].UID(), stamp: stampOf(objects[i])}
					failed[i] = true
				}
			}
			return nil
		}
		if len(objects) <= chunk {
			_ = work()
			break
		}
		workers.Go(work)
	}
	_ = workers.Wait() // work returns no errors
	for _, f := range failed {
		if f {
			unread++
		}
	}
	return all, unread
}

// compareNodes orders nodes by resource, namespace and name.
func (s *state) compareNodes(a, b nodeID) int {
	x, y := &s.nodes[a], &s.nodes[b]
	if x.kind != y.kind {
		return cmp.Or(cmp.Compare(s.all[x.kind].name(), s.all[y.kind].name()), cmp.Compare(x.kind, y.kind))
	}
	return cmp.Or(x.key.Compare(y.key), cmp.Compare(x.uid, y.uid))
}

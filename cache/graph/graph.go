package graph

import (
	"cmp"
	"context"
	"slices"
	"sync"

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
	updater *follow.Updater[*links]

	// asking is held for reading by a question from its update to its answer, so
	// that both are by the same rules; taken before all other locks. It guards
	// rules.
	asking sync.RWMutex
	ruleset

	mu sync.RWMutex // guards all below; taken before the locks of stores
	*state
	unread uint64
}

// ruleset is what a Graph reads out of objects. It is immutable.
type ruleset struct {
	rules     []*compiled
	readers   readers
	edgeKinds []string // sorted
}

func newRuleset(declared []Rule) (ruleset, error) {
	rules, err := compileRules(declared)
	if err != nil {
		return ruleset{}, err
	}
	readers, err := newReaders(rules)
	return ruleset{rules, readers, edgeNames(rules)}, err
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
	rules, err := newRuleset(opts.Declared)
	if err != nil {
		return nil, err
	}
	g := &Graph{ruleset: rules, state: newState()}
	g.updater = follow.NewUpdater(resources, sink{g})
	return g, nil
}

// Declare replaces the declared references. It waits for the questions being
// answered; the next one reads all objects again. After an error nothing changed.
func (g *Graph) Declare(declared []Rule) error {
	rules, err := newRuleset(declared)
	if err != nil {
		return err
	}
	defer g.updater.Interrupt()()
	g.asking.Lock()
	defer g.asking.Unlock()
	g.ruleset = rules
	g.updater.Close()
	return nil
}

// Edges are the kinds of edges there can be, sorted.
func (g *Graph) Edges() []string {
	g.asking.RLock()
	defer g.asking.RUnlock()
	return slices.Clone(g.edgeKinds)
}

// Prepare reads with a third of a processor, before anybody asks, what the next question would have
// to read.
func (g *Graph) Prepare(ctx context.Context) error {
	g.asking.RLock()
	defer g.asking.RUnlock()
	return g.updater.Prepare(ctx)
}

// Stats returns the Graph's counts as of the last question.
func (g *Graph) Stats() Stats {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return Stats{Nodes: g.nodes.Len(), Edges: g.state.edges, Unread: g.unread}
}

// Close forgets everything. The Graph remains usable and begins anew.
func (g *Graph) Close() {
	defer g.updater.Interrupt()()
	g.asking.Lock()
	defer g.asking.Unlock()
	g.updater.Close()
}

func compareKinds(k, l *kind) int {
	return cmp.Or(cmp.Compare(k.name(), l.name()), cmp.Compare(k.group.Kind, l.group.Kind))
}

// kindOrder is the place of each kind where nodes are in order. Those that are called the same
// have the same.
func (s *sighted) kindOrder() []int {
	byName := make([]int, len(s.all))
	for i := range byName {
		byName[i] = i
	}
	slices.SortFunc(byName, func(a, b int) int { return compareKinds(s.all[a], s.all[b]) })
	order := make([]int, len(s.all))
	for place, i := range byName {
		if order[i] = place; place > 0 && compareKinds(s.all[byName[place-1]], s.all[i]) == 0 {
			order[i] = order[byName[place-1]]
		}
	}
	return order
}

// compareNodes orders nodes by resource, namespace and name, by nothing that is not
// shown of them.
func (s *sighted) compareNodes(a, b nodeID) int {
	x, y := s.nodeOf(a), s.nodeOf(b)
	if x.kind != y.kind {
		return compareKinds(s.all[x.kind], s.all[y.kind])
	}
	if c := x.key().Compare(y.key()); c != 0 {
		return c
	}
	return cmp.Compare(s.uid(a), s.uid(b))
}

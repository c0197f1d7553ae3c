package search

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
)

// Options of a Search. Every zero value is useful.
type Options struct {
	// Texts are further paths to look at, by resource as kubectl names it.
	Texts map[string][]string
}

// Search finds objects of one cluster. It is safe for concurrent use, has no
// goroutine, and does nothing until it is asked: the first question reads all
// objects, every later one what changed since.
type Search struct {
	updater *follow.Updater[*content]

	// asking is held for reading by a question from its update to its answer, so
	// that both are of the same paths; taken before all other locks. It guards
	// readers.
	asking  sync.RWMutex
	readers readers

	mu sync.RWMutex // guards all below
	*state
	unread uint64
}

// Stats are counts of one moment.
type Stats struct {
	Objects int
	Texts   int // different ones
	// Unread counts objects of which only identity and labels could be read.
	Unread uint64
}

// readers by resource. That of "" is for all others.
type readers map[schema.GroupResource]*reader

func (r readers) of(resource schema.GroupResource) *reader {
	if own := r[resource]; own != nil {
		return own
	}
	return r[schema.GroupResource{}]
}

// New makes a Search over resources, which is called with every question and
// lists the resources of one cluster. It fails for a path that cannot be read.
func New(resources func() []follow.Resource, opts Options) (*Search, error) {
	readers, err := newReaders(opts.Texts)
	if err != nil {
		return nil, err
	}
	s := &Search{state: newState(), readers: readers}
	s.updater = follow.NewUpdater(resources, sink{s})
	return s, nil
}

func newReaders(texts map[string][]string) (readers, error) {
	plain, err := newReader(nil)
	if err != nil {
		return nil, err
	}
	all := readers{{}: plain}
	for resource, paths := range texts {
		if all[schema.ParseGroupResource(resource)], err = newReader(paths); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Declare replaces the further paths to look at. It waits for the questions being
// answered; the next one reads all objects again. After an error nothing changed.
func (s *Search) Declare(texts map[string][]string) error {
	readers, err := newReaders(texts)
	if err != nil {
		return err
	}
	defer s.updater.Interrupt()()
	s.asking.Lock()
	defer s.asking.Unlock()
	s.readers = readers
	s.updater.Close()
	return nil
}

// Prepare reads with a third of a processor, before anybody asks, what the next question would have
// to read.
func (s *Search) Prepare(ctx context.Context) error {
	s.asking.RLock()
	defer s.asking.RUnlock()
	return s.updater.Prepare(ctx)
}

// Stats returns the counts as of the last question.
func (s *Search) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Stats{Objects: s.docs.Len(), Texts: s.values.Len(), Unread: s.unread}
}

// Close forgets everything. The Search remains usable and begins anew.
func (s *Search) Close() {
	defer s.updater.Interrupt()()
	s.asking.Lock()
	defer s.asking.Unlock()
	s.updater.Close()
}

// Find answers a question. It returns an *cache.InvalidError for a kind that the
// cluster does not have.
func (s *Search) Find(ctx context.Context, q Query) (*Answer, error) {
	s.asking.RLock()
	defer s.asking.RUnlock()
	if err := s.updater.Update(ctx, s.mu.RLocker()); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	m := newMatch(s.state)
	for _, t := range q.Terms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := m.require(t); err != nil {
			return nil, err
		}
	}
	m.see(q.Sight)
	faults, err := m.within(ctx, q.Within)
	if err != nil {
		return nil, err
	}
	a := m.answer(&q)
	a.Unanswered, a.Faults = m.unanswered(), faults
	return a, nil
}

func (m *match) unanswered() []cache.View {
	out := []cache.View{}
	for i, k := range m.kinds {
		if k.known && !k.view.Readable() && !m.scopes[i].Empty() {
			out = append(out, *k.view.SeenBy(m.scopes[i]))
		}
	}
	return out
}

package search

import (
	"context"
	"maps"
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
	readers readers
	updater *follow.Updater[*content]

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
	texts := maps.Clone(opts.Texts)
	if texts == nil {
		texts = map[string][]string{}
	}
	texts[""] = nil
	s := &Search{state: newState(), readers: readers{}}
	for resource, paths := range texts {
		var err error
		if s.readers[schema.ParseGroupResource(resource)], err = newReader(paths); err != nil {
			return nil, err
		}
	}
	s.updater = follow.NewUpdater(resources, sink{s})
	return s, nil
}

// Stats returns the counts as of the last question.
func (s *Search) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Stats{Objects: len(s.docs) - len(s.freeDocs), Texts: len(s.values) - len(s.freeValues), Unread: s.unread}
}

// Close forgets everything. The Search remains usable and begins anew.
func (s *Search) Close() { s.updater.Close() }

// Find answers a question. It returns an *cache.InvalidError for a kind that the
// cluster does not have.
func (s *Search) Find(ctx context.Context, q Query) (*Answer, error) {
	if err := s.updater.Update(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
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
	a := m.answer(&q)
	a.Unanswered = s.unanswered()
	return a, nil
}

func (s *state) unanswered() []cache.Status {
	out := []cache.Status{}
	for _, k := range s.kinds {
		if k.known && k.store == nil {
			out = append(out, k.status)
		}
	}
	return out
}

package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/informerd/informerd/cache"
)

// Caches is what handlers need of the running informers. Implementations are safe for
// concurrent use.
type Caches interface {
	// Match are the known resources that names or globs name, in clusters, all if none is
	// named; see Handler.Resources. A name that is unknown is of nothing, for now.
	Match(clusters, names []string) []cache.Resource
	// Names reports whether Match could ever list a resource of a cluster: whether the cluster
	// is configured and among clusters, and names name the resource. Whether it is known now
	// does not matter.
	Names(clusters, names []string, cluster string, r schema.GroupResource) bool
	// Resource finds a resource, in whichever version is watched.
	Resource(cluster string, r schema.GroupResource) (Resource, bool)
	// Lacks reports whether a cluster has told that it has no such resource. As long as the
	// resource's group does not answer, it has not.
	Lacks(cluster string, r schema.GroupResource) bool
}

// Resource is one resource as handlers see it; *replica.Informer is one.
type Resource interface {
	View() *cache.View
}

// Options of a Manager. Caches, Ledgers and SaveNow are required.
type Options struct {
	Caches  Caches
	Ledgers cache.Ledgers
	// SaveNow saves what Save of the Manager gives it, and returns when that is durable.
	SaveNow func() error
	// Log gets what goes wrong with handlers; discarded if nil.
	Log *slog.Logger
}

// Manager runs handlers. It is safe for concurrent use. What it knows is saved with the
// snapshot: it is a replica.Beside.
type Manager struct {
	options Options
	metrics *metrics
	saver   saver

	applying sync.Mutex      // one Apply at a time; guards wanted and unlisted; taken before mu
	wanted   map[string]bool // the handlers of the last Apply
	unlisted bool            // which ledgers there are could not be told then

	mu       sync.Mutex // guards all below
	ctx      context.Context
	handlers map[string]*running
	removed  map[string]struct{} // whose ledgers are to be forgotten
}

var _ Surface = (*Manager)(nil)

// NewManager makes a Manager without handlers.
func NewManager(o Options) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Manager{options: o, handlers: map[string]*running{}, removed: map[string]struct{}{}}
	m.metrics = newMetrics(m)
	return m
}

// Apply makes the running handlers those that are given: new ones begin where their ledger
// ends, changed ones look at everything again, and of those that are missing nothing is kept.
// The others go on undisturbed. Where ledgers are out of reach, Run looks again: a handler
// waits until it is known what was known of it.
func (m *Manager) Apply(all []Handler) error {
	m.applying.Lock()
	defer m.applying.Unlock()
	var errs []error
	m.wanted = map[string]bool{}
	for _, spec := range all {
		m.wanted[spec.Name] = true
		errs = append(errs, m.apply(spec))
	}
	if err := m.forgetOthers(); !errors.Is(err, cache.ErrAway) {
		errs = append(errs, err)
	}
	for _, name := range m.names() {
		if !m.wanted[name] {
			m.forget(name)
		}
	}
	return errors.Join(errs...)
}

// forgetOthers forgets the ledgers of handlers that are not configured any more. Called with
// applying.
func (m *Manager) forgetOthers() error {
	names, err := m.options.Ledgers.Ledgers()
	m.unlisted = errors.Is(err, cache.ErrAway)
	for _, name := range names {
		if !m.wanted[name] {
			m.options.Log.Info("handler is not configured any more: what was known of it is forgotten", "handler", name)
			m.forget(name)
		}
	}
	return err
}

func (m *Manager) apply(spec Handler) error {
	m.mu.Lock()
	h := m.handlers[spec.Name]
	m.mu.Unlock()
	if h != nil {
		h.change(spec)
		return nil
	}
	// What a save under way forgets of a handler of that name must not be taken for what is known.
	m.saver.saving.Lock()
	defer m.saver.saving.Unlock()
	h = newRunning(m, spec)
	err := h.load(m.options.Ledgers)
	switch {
	case errors.Is(err, cache.ErrAway):
		m.options.Log.Warn("what was known of a handler is out of reach: it waits", "handler", spec.Name, "err", err)
		h.discard()
		h = newRunning(m, spec)
		h.unread = err
	case err != nil:
		m.options.Log.Error("what was known of a handler cannot be read: it begins anew", "handler", spec.Name, "err", err)
		h.discard()
		h = newRunning(m, spec)
		h.anew = true
	}
	m.install(h)
	if err != nil && !errors.Is(err, cache.ErrCorrupt) && !errors.Is(err, cache.ErrAway) {
		return fmt.Errorf("handler %s: %w", spec.Name, err)
	}
	return nil
}

// install makes h one of the handlers, and starts it if it is known what was known of it.
func (m *Manager) install(h *running) {
	h.mu.Lock()
	h.dropLinesLocked()
	unread := h.unread != nil
	h.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, again := m.removed[h.name]; again {
		delete(m.removed, h.name)
		h.anew, h.unread, unread = true, nil, false
	}
	m.handlers[h.name] = h
	if m.ctx != nil && !unread {
		h.start(m.ctx)
	}
}

func (m *Manager) forget(name string) {
	m.mu.Lock()
	h := m.handlers[name]
	delete(m.handlers, name)
	m.removed[name] = struct{}{}
	m.mu.Unlock()
	if h != nil {
		h.remove()
		h.end()
		m.metrics.forget(name)
	}
}

func (m *Manager) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.handlers))
}

func (m *Manager) find(name string) (*running, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.handlers[name]; h != nil {
		return h, nil
	}
	return nil, ErrUnknown
}

func (m *Manager) all() []*running {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.allLocked()
}

func (m *Manager) allLocked() []*running {
	return slices.SortedFunc(maps.Values(m.handlers), func(a, b *running) int { return cmp.Compare(a.name, b.name) })
}

// Run delivers until ctx ends, and returns when nothing is under way. Save may be called
// after it, and must be once more, for what was delivered last.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	m.ctx = ctx
	for _, h := range m.handlers {
		if !h.isUnread() {
			h.start(ctx)
		}
	}
	m.mu.Unlock()
	var reading sync.WaitGroup
	reading.Go(func() { wait.UntilWithContext(ctx, m.readUnread, unreadInterval) })
	defer reading.Wait()
	m.saver.run(ctx, m.options.SaveNow, m.options.Log)
	m.applying.Lock() // none begins from now on
	defer m.applying.Unlock()
	for _, h := range m.all() {
		h.end()
	}
	return nil
}

// durable returns when everything that was noted of the handler before is saved. Of one that
// rests by now nobody knows whether it is.
func (h *running) durable(ctx context.Context) error {
	if err := h.m.saver.wait(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unread
}

// Pause implements Surface.
func (m *Manager) Pause(ctx context.Context, name string) error {
	return m.steer(ctx, name, func(h *running) { h.pauseLocked("paused by hand") })
}

// Resume implements Surface.
func (m *Manager) Resume(ctx context.Context, name string) error {
	return m.steer(ctx, name, func(h *running) {
		h.meta.Paused, h.meta.Reason, h.noted = false, "", true
		h.gate.open()
		h.signal()
	})
}

func (m *Manager) steer(ctx context.Context, name string, do func(*running)) error {
	h, err := m.find(name)
	if err != nil {
		return err
	}
	if h.isUnread() {
		return fmt.Errorf("%w: what was known of the handler is out of reach, and may not be changed before it is read", cache.ErrNotSynced)
	}
	h.mu.Lock()
	do(h)
	h.mu.Unlock()
	return h.durable(ctx)
}

// Redrive implements Surface.
func (m *Manager) Redrive(ctx context.Context, name string, keys []KeyName) (int, error) {
	n := 0
	err := m.steer(ctx, name, func(h *running) {
		for e := range h.dead {
			if len(keys) == 0 || slices.Contains(keys, e.line.nameOf(e)) {
				e.tried()
				h.pendLocked(e)
				n++
			}
		}
	})
	return n, err
}

func (l *line) nameOf(e *entry) KeyName {
	return KeyName{Cluster: l.key.cluster, Resource: l.key.GroupResource.String(), Namespace: e.namespace(), Name: e.name}
}

func compareNames(a, b KeyName) int {
	return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

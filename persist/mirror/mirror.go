// Package mirror keeps tables for SQL equal to copies: each resource that is to be mirrored
// is followed through the ring of its recent events, and what changed since the last time
// is written in one transaction with the version that it is then of. A resource that was not
// followed, or that changed faster than its ring remembers, is compared as a whole.
//
// It is a reader of copies like any other, beside the snapshot and never on the way of an
// event. It refuses to mirror what was not proven current since the start: a copy that comes
// from a snapshot may be older than its mirror.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// Options of a Mirror.
type Options struct {
	// Tables are where it is written.
	Tables cache.Mirrors
	// Views are those of all resources that are to be mirrored now.
	Views func() []*cache.View
	// Gone reports whether a resource is certainly not to be mirrored any more: it is left
	// out, its cluster is, or the cluster has no such resource. Of one that is not in Views
	// and not Gone the rows stay.
	Gone func(r cache.Resource) bool
	// Rests reports whether somebody else writes the tables now; nil: nobody ever does. What is
	// there when it ends is compared as a whole.
	Rests func() bool
	// Interval is the time between two looks at what changed; default 1 s.
	Interval time.Duration
	Log      *slog.Logger
}

// Mirror is one mirror of all copies.
type Mirror struct {
	options Options
	due     chan struct{} // holds one: there may be something to write

	// known is what there are rows of; nil: to be asked. Of write alone.
	known map[name]cache.Resource

	mu        sync.Mutex // guards all below
	lines     map[name]*line
	forgotten map[string]bool
	status    Status
}

// Status is what is known of a Mirror.
type Status struct {
	Resources         int // that are mirrored
	Pending           int // changes that are not written yet
	Commits, Failures uint64
	Written, Deleted  uint64 // rows
	Altered           uint64 // of the written rows
	Err               string // of the last commit, if it failed
	LastCommit        time.Time
	CommitSeconds     float64
}

// name names a resource as the tables do, without its version.
type name struct {
	cluster string
	schema.GroupResource
}

func nameOf(r cache.Resource) name { return name{r.Cluster, r.GVR.GroupResource()} }

// New makes a Mirror.
func New(o Options) *Mirror {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Mirror{options: o, due: make(chan struct{}, 1), lines: map[name]*line{}, forgotten: map[string]bool{}}
}

// Run mirrors until ctx ends. Copies are followed while what changed before is written.
func (m *Mirror) Run(ctx context.Context) error {
	defer m.close()
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() { m.writeAll(ctx) })
	tick := time.NewTicker(m.options.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if m.rests() {
			m.rest()
		} else {
			m.follow()
		}
		select {
		case m.due <- struct{}{}:
		default:
		}
	}
}

// writeAll writes what changed until ctx ends.
func (m *Mirror) writeAll(ctx context.Context) {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.due:
		}
		err := m.write(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			m.options.Log.Error("cannot write the mirror for SQL, trying again", "err", err)
		}
		if err == nil && failing {
			m.options.Log.Info("the mirror for SQL is written again")
		}
		failing = err != nil
		if !failing {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * m.options.Interval):
		}
	}
}

func (m *Mirror) rests() bool { return m.options.Rests != nil && m.options.Rests() }

// rest follows nothing any more.
func (m *Mirror) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lines {
		l.close()
	}
	clear(m.lines)
	m.status.Resources, m.status.Pending, m.status.Err = 0, 0, ""
}

func (m *Mirror) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lines {
		l.close()
	}
}

// Forget has the rows of a cluster deleted, but for those of copies there are by then.
func (m *Mirror) Forget(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgotten[cluster] = true
}

// Status is what is known now.
func (m *Mirror) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// follow notes what changed since it was last called, whether it can be written or not: it
// is called often enough for a ring to remember it.
func (m *Mirror) follow() {
	views := m.options.Views()
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[name]bool{}
	pending := 0
	for _, v := range views {
		n := nameOf(v.Spec.Resource)
		if seen[n] {
			continue // in another version, for a moment
		}
		seen[n] = true
		l := m.lines[n]
		if l == nil {
			l = &line{whole: true}
			m.lines[n] = l
		}
		pending += l.follow(v)
	}
	for n, l := range m.lines {
		if !seen[n] {
			l.close()
			delete(m.lines, n)
		}
	}
	m.status.Resources, m.status.Pending = len(m.lines), pending
}

// write writes what changed. An error of one resource keeps no other from being written,
// unless the tables are out of reach for all of them.
func (m *Mirror) write(ctx context.Context) error {
	if m.rests() {
		m.known = nil
		return nil
	}
	if m.known == nil {
		if err := m.ask(ctx); err != nil {
			return m.failed(err)
		}
	}
	pass := &pass{began: time.Now()}
	defer pass.say(m.options.Log)
	var errs []error
	lines := m.followed()
	for _, n := range slices.SortedFunc(maps.Keys(lines), name.compare) {
		err := m.writeLine(ctx, n, lines[n], pass)
		if err != nil {
			errs = append(errs, err)
		}
		if errors.Is(err, cache.ErrAway) || ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
	err := errors.Join(append(errs, m.deleteGone(ctx))...)
	if err == nil {
		m.mu.Lock()
		m.status.Err = ""
		m.mu.Unlock()
	}
	return err
}

// followed are the lines that there are now.
func (m *Mirror) followed() map[name]*line {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.lines)
}

func (n name) compare(o name) int {
	return cmp.Or(strings.Compare(n.cluster, o.cluster), strings.Compare(n.Group, o.Group), strings.Compare(n.Resource, o.Resource))
}

// ask finds out what there are rows of.
func (m *Mirror) ask(ctx context.Context) error {
	all, err := m.options.Tables.Mirrored(ctx)
	if err != nil {
		return err
	}
	m.known = map[name]cache.Resource{}
	for _, r := range all {
		m.known[nameOf(r)] = r
	}
	return nil
}

func (m *Mirror) writeLine(ctx context.Context, n name, l *line, p *pass) error {
	change, ok, err := l.take(ctx)
	if err != nil || !ok {
		return err
	}
	began := time.Now()
	result, err := m.options.Tables.Mirror(ctx, change)
	if errors.Is(err, cache.ErrNoSnapshot) && !change.Whole {
		// The database was put back, or somebody else took the rows away.
		l.failed(err)
		if change, ok, err = l.take(ctx); err == nil && ok {
			result, err = m.options.Tables.Mirror(ctx, change)
		}
	}
	if err != nil {
		l.failed(err)
		return m.failed(err)
	}
	l.written(&change)
	m.known[n] = change.Spec.Resource
	if change.Whole {
		p.add(&change, result)
		m.options.Log.Debug("mirrored for SQL", "gvr", change.Spec.Resource.String(), "resourceVersion", change.Version, "objects", len(change.Put),
			"written", result.Written, "deleted", result.Deleted, "duration", time.Since(began).Round(time.Millisecond))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Commits++
	m.status.LastCommit = time.Now()
	m.status.CommitSeconds += time.Since(began).Seconds()
	m.status.Written += uint64(result.Written)
	m.status.Deleted += uint64(result.Deleted)
	m.status.Altered += uint64(result.Altered)
	return nil
}

// pass is what was compared as a whole in one go.
type pass struct {
	began                                time.Time
	resources, objects, written, deleted int
}

func (p *pass) add(c *cache.MirrorChange, r cache.MirrorResult) {
	p.resources++
	p.objects += len(c.Put)
	p.written += r.Written
	p.deleted += r.Deleted
}

func (p *pass) say(log *slog.Logger) {
	if p.resources > 0 {
		log.Info("mirrored for SQL", "resources", p.resources, "objects", p.objects, "written", p.written, "deleted", p.deleted,
			"duration", time.Since(p.began).Round(time.Millisecond))
	}
}

func (m *Mirror) failed(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Failures++
	m.status.Err = err.Error()
	return err
}

// deleteGone deletes the rows of what is not to be mirrored any more.
func (m *Mirror) deleteGone(ctx context.Context) error {
	m.mu.Lock()
	forgotten := maps.Clone(m.forgotten)
	m.mu.Unlock()
	lines := m.followed()
	for n, r := range m.known {
		if lines[n] != nil || !forgotten[n.cluster] && !m.options.Gone(r) {
			continue
		}
		if err := m.options.Tables.Unmirror(ctx, r); err != nil {
			return m.failed(err)
		}
		delete(m.known, n)
		m.options.Log.Info("no longer mirrored for SQL, rows deleted", "gvr", r.String())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for cluster := range forgotten {
		delete(m.forgotten, cluster)
	}
	return nil
}

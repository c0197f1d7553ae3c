package replica

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
)

// settle works out what the resource is worth now and publishes it as its View. It
// tells and logs a change of state.
func (i *Informer) settle() {
	i.mu.Lock()
	before, v := i.view.Load(), i.viewLocked(time.Now())
	changed := v.State != before.State
	if v.Since = before.Since; changed {
		v.Since = time.Now()
		close(i.changed)
		i.changed = make(chan struct{})
	}
	i.view.Store(v)
	i.expireLocked(v)
	if i.next != nil && i.next.synced() {
		select {
		case i.filled <- struct{}{}:
		default:
		}
	}
	i.mu.Unlock()
	if changed {
		i.logState(before.State, v.State, v.Reason)
	}
}

// expireLocked settles again when the lease of a live resource is over.
func (i *Informer) expireLocked(v *cache.View) {
	if i.expiry != nil {
		i.expiry.Stop()
		i.expiry = nil
	}
	if v.State == cache.Live && !i.stopped {
		i.expiry = time.AfterFunc(i.factory.options.lease-time.Since(v.Proof), i.settle)
	}
}

// View is what is known of the resource now. All that is read of it, state, age and
// objects, is of one View.
func (i *Informer) View() *cache.View {
	v := i.view.Load()
	if v.State == cache.Live && time.Since(v.Proof) >= i.factory.options.lease {
		i.settle() // the timer may be late
		v = i.view.Load()
	}
	return v
}

// viewLocked looks at the feed that is read from, and at the one that is to take
// over, which says why the first is not kept up to date.
func (i *Informer) viewLocked(now time.Time) *cache.View {
	f := i.current
	if f == nil {
		v := &cache.View{Spec: i.spec, State: cache.Unwatched, Reason: "left out by the configuration"}
		if i.spec.Watch {
			v.State, v.Reason = cache.Failed, i.failure.Error()
		}
		return v
	}
	v := f.view(now)
	if i.foreign {
		v.State, v.Reason = cache.Syncing, i.succession
	}
	if next := i.next; next != nil {
		if !v.State.Readable() {
			v = next.view(now)
			v.Hold(nil)
			if v.State.Readable() {
				v.State = cache.Syncing
			}
		} else if i.succession != "" {
			behind := next.view(now)
			v.Reason = i.succession
			if behind.State != cache.Syncing || behind.Reason != "first sync under way" {
				v.Reason += ": " + behind.Reason
			}
			if v.State == cache.Live && i.lost {
				v.State = cache.Stale
			}
		}
	}
	if !v.State.Readable() {
		v.Spec = i.spec
		v.Hold(nil)
	}
	return v
}

// specOfLocked is what a feed's copy is under: what decides about its objects is the
// feed's, all else as it is wanted now.
func (i *Informer) specOfLocked(f *feed) cache.Spec {
	if sameCopy(f.spec, i.spec) {
		return i.spec
	}
	spec := f.spec
	spec.Indexes = i.spec.Indexes
	return spec
}

// view is what the feed's store is worth. A resource of several sources is as good
// as the worst of those that may be read.
func (f *feed) view(now time.Time) *cache.View {
	i := f.informer
	v := (&cache.View{Spec: i.specOfLocked(f)}).Hold(f.store)
	sources, failure := f.running()
	if errors.Is(failure, errForbidden) {
		v.State, v.Reason = cache.Forbidden, failure.Error()
		return v
	}
	if len(sources) == 0 {
		v.State, v.Reason = cache.Syncing, f.waitingFor(failure)
		if f.store.Version() != "" {
			v.State, v.Proof = cache.Warm, i.restoredProof
		}
		return v
	}
	lease := i.factory.options.lease
	v.Lease = lease
	var reasons []string
	refused, known := 0, true
	for _, s := range sources {
		h := s.get()
		if r := h.reason(now, lease); r != "" {
			reasons = append(reasons, r)
		}
		if h.refused {
			refused++
			continue
		}
		if state := h.state(now, lease); v.State == "" || rank(state) > rank(v.State) {
			v.State = state
		}
		// Of several sources, the oldest proof counts; one without any leaves it unknown.
		if known = known && !h.proof.IsZero(); v.Proof.IsZero() || h.proof.Before(v.Proof) {
			v.Proof = h.proof
		}
	}
	if !known {
		v.Proof = time.Time{}
	}
	if refused == len(sources) {
		v.State = cache.Forbidden
	}
	if v.State == cache.Live {
		reasons = nil
	}
	slices.Sort(reasons)
	v.Reason = strings.Join(slices.Compact(reasons), "; ")
	v.Missing = missing(f.store, sources, now, lease)
	return v
}

func (f *feed) waitingFor(failure error) string {
	if failure != nil {
		return failure.Error()
	}
	select {
	case <-f.informer.cluster.identified:
		return "starting"
	default:
		return "waiting for the API server: " + f.informer.cluster.status().Err
	}
}

// missing says of each namespace that is not held why that is so.
func missing(store *cache.Store, sources []*source, now time.Time, lease time.Duration) (all []cache.MissingNamespace) {
	if len(sources) == 1 && sources[0].namespace == "" {
		return nil
	}
	for _, held := range store.Sources() {
		if held.Held || held.Namespace == "" {
			continue
		}
		m := cache.MissingNamespace{Namespace: held.Namespace, State: cache.Syncing, Reason: "first sync under way"}
		for _, s := range sources {
			if s.namespace == held.Namespace {
				h := s.get()
				m.State, m.Reason = h.state(now, lease), h.reason(now, lease)
			}
		}
		all = append(all, m)
	}
	return all
}

// logState says what an operator wants to know: once a change, and not once a
// resource when the API server as a whole is away.
func (i *Informer) logState(before, after cache.State, reason string) {
	level := slog.LevelInfo
	switch {
	case after == cache.Forbidden || after == cache.Failed:
		level = slog.LevelWarn
	case after == cache.Live && before != cache.Stale, after == cache.Warm, after == cache.Syncing:
		level = slog.LevelDebug
	case !i.cluster.status().Reachable || before == cache.Stale || after == cache.Stale:
		level = slog.LevelDebug
	}
	i.log.Log(context.Background(), level, "state changed", "from", before, "to", after, "reason", reason)
}

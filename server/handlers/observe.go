package handlers

import (
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
)

// Handlers implements Surface.
func (m *Manager) Handlers() []Status {
	all := []Status{}
	for _, h := range m.all() {
		s := h.status()
		s.Lines = nil
		all = append(all, s)
	}
	return all
}

// Handler implements Surface.
func (m *Manager) Handler(name string) (Status, error) {
	h, err := m.find(name)
	if err != nil {
		return Status{}, err
	}
	return h.status(), nil
}

// States of a handler.
const (
	stateActive  = "active"
	stateWaiting = "waiting"
	statePaused  = "paused"
	stateDown    = "down"
)

func (h *running) status() Status {
	trouble := h.m.saver.trouble()
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	c := &h.counts
	s := Status{
		Name: h.name, Resources: h.spec.Resources, Sink: "claim",
		Pending: h.pending - len(h.dead), InFlight: len(h.began), Dead: len(h.dead),
		Delivered: c.delivers, Failed: c.fails, PerSecond: c.perSecond(now),
		FilterErrors: c.filterErrors, FilterError: c.filterError,
		LastError: c.err, LastErrorAt: c.errAt.UTC(), LastDelivery: c.deliveredAt.UTC(),
		SaveError: trouble,
	}
	if h.spec.Sink != nil {
		s.Sink = h.spec.SinkKind
	}
	s.Retrying, s.OldestSeconds = h.waitsLocked(now)
	for _, l := range h.lines {
		s.Known += l.known
		s.Lines = append(s.Lines, LineStatus{
			Cluster: l.key.cluster, Resource: l.nameLocked(), State: l.state, Reason: l.reason,
			ResourceVersion: l.cursor.Version, Known: l.known,
		})
	}
	slices.SortFunc(s.Lines, func(a, b LineStatus) int {
		return compareNames(KeyName{Cluster: a.Cluster, Resource: a.Resource}, KeyName{Cluster: b.Cluster, Resource: b.Resource})
	})
	s.State, s.Reason = h.stateLocked(now, s.Lines)
	return s
}

// waits is what is found by looking at every key: how many are tried again, and since when the
// oldest has been pending. Whoever looks holds up deliveries, so that it is good for a while:
// looking takes a twentieth of the time at most.
type waits struct {
	retrying int
	oldest   int64 // Unix milliseconds, 0: nothing is pending
	until    time.Time
}

func (h *running) waitsLocked(now time.Time) (retrying int, oldest float64) {
	if h.pending <= len(h.dead) {
		h.waits = waits{}
		return 0, 0
	}
	if now.After(h.waits.until) {
		h.waits = waits{}
		for _, l := range h.lines {
			l.keys.each(h.waits.look)
		}
		took := time.Since(now)
		h.waits.until = now.Add(20 * took)
	}
	if h.waits.oldest == 0 {
		return h.waits.retrying, 0
	}
	return h.waits.retrying, max(0, float64(now.UnixMilli()-h.waits.oldest)/1000)
}

func (w *waits) look(e *entry) {
	if e.since == 0 || e.is(dead) {
		return
	}
	if w.oldest == 0 || e.since < w.oldest {
		w.oldest = e.since
	}
	if e.attempts() > 0 {
		w.retrying++
	}
}

func (l *line) nameLocked() string {
	if l.cursor.Resource != "" {
		return l.cursor.Resource
	}
	return l.key.GroupResource.String()
}

func (h *running) stateLocked(now time.Time, lines []LineStatus) (state, reason string) {
	switch {
	case h.unread != nil:
		return stateWaiting, "what was known of it cannot be read: " + h.unread.Error()
	case h.meta.Paused:
		return statePaused, h.meta.Reason
	case h.gate.reason != "":
		return stateDown, h.gate.reason
	case len(lines) == 0:
		return stateWaiting, "no resource is called like that, or the cluster has not told yet what it has"
	}
	for _, l := range lines {
		if l.State != lineFollowing {
			return stateWaiting, l.Resource + ": " + l.Reason
		}
	}
	return stateActive, ""
}

// DeadLetters implements Surface.
func (m *Manager) DeadLetters(name string, limit int, after string) ([]DeadLetter, string, error) {
	h, err := m.find(name)
	if err != nil {
		return nil, "", err
	}
	from, err := parseAfter(after)
	if err != nil {
		return nil, "", err
	}
	h.mu.Lock()
	all := make([]DeadLetter, 0, len(h.dead))
	for e := range h.dead {
		k := e.line.nameOf(e)
		if after != "" && compareNames(k, from) <= 0 {
			continue
		}
		all = append(all, DeadLetter{
			Cluster: k.Cluster, Resource: k.Resource, Namespace: k.Namespace, Name: k.Name,
			Attempts: e.attempts(), Error: e.more.err, Since: time.UnixMilli(e.since).UTC(),
		})
	}
	h.mu.Unlock()
	slices.SortFunc(all, func(a, b DeadLetter) int { return compareNames(a.key(), b.key()) })
	if limit <= 0 || len(all) <= limit {
		return all, "", nil
	}
	all = all[:limit]
	return all, all[limit-1].key().after(), nil
}

func (d DeadLetter) key() KeyName {
	return KeyName{Cluster: d.Cluster, Resource: d.Resource, Namespace: d.Namespace, Name: d.Name}
}

// after is the key as a token to go on after.
func (k KeyName) after() string {
	return strings.Join([]string{k.Cluster, k.Resource, k.Namespace, k.Name}, "/")
}

func parseAfter(after string) (KeyName, error) {
	if after == "" {
		return KeyName{}, nil
	}
	parts := strings.Split(after, "/")
	if len(parts) != 4 {
		return KeyName{}, &cache.InvalidError{Parameter: "continue", Message: "is not one that was given out"}
	}
	return KeyName{parts[0], parts[1], parts[2], parts[3]}, nil
}

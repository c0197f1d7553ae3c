package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// upstream is a model of the API server: what it holds, and every change of it.
type upstream struct {
	version int
	uids    int
	server  string // whose bytes objects have
	state   map[Key]written
	log     []written
}

// written is an object as one write left it.
type written struct {
	key     Key
	uid     string
	version int
	gone    bool
}

func (w written) String() string { return fmt.Sprintf("%s@%d", w.uid, w.version) }

// write changes one object.
func (h *upstream) write(r *rand.Rand) {
	h.version += 1 + r.IntN(3)
	k := Key{pick(r, "a", "b"), "k" + strconv.Itoa(r.IntN(10))}
	w, ok := h.state[k]
	switch {
	case !ok:
		h.uids++
		w = written{key: k, uid: "u" + strconv.Itoa(h.uids)}
	case r.IntN(3) == 0:
		w.gone = true
	}
	w.version = h.version
	if h.log = append(h.log, w); w.gone {
		delete(h.state, k)
	} else {
		h.state[k] = w
	}
}

// restore goes back to what was held at an earlier version.
func (h *upstream) restore(version int) {
	h.log = slices.DeleteFunc(h.log, func(w written) bool { return w.version > version })
	h.version, h.state = version, map[Key]written{}
	h.replay(0, h.state)
}

// replay tells a reader of everything after a version.
func (h *upstream) replay(after int, state map[Key]written) {
	for _, w := range h.log {
		if w.version > after && w.gone {
			delete(state, w.key)
		} else if w.version > after {
			state[w.key] = w
		}
	}
}

// client is a reader like those of the Kubernetes API: it resumes from the
// resourceVersion of the object it was told of last.
type client struct {
	sub   *Subscription
	state map[Key]written
	at    int
	// again: it resumed, or was told of a rewritten object, and is told again of what
	// came before the highest version it was shown.
	again bool
	peak  int
}

// resumption feeds a Store from an upstream in all ways there are, with clients that
// lose their connection anywhere.
type resumption struct {
	t       *testing.T
	r       *rand.Rand
	server  upstream
	store   *Store
	fed     int // the version that the Store has
	clients []*client
}

func (run *resumption) object(w written) *Object {
	raw := fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"%d"},"spec":{"server":%q}}`, w.key.Namespace, w.key.Name, w.uid, w.version, run.server.server)
	o, err := run.store.Decode(raw, "example.com/v1", "Thing")
	if err != nil {
		run.t.Fatal(err)
	}
	return o
}

// follow applies what the Store has not heard of, or the first part of it.
func (run *resumption) follow() {
	for _, w := range run.server.log {
		if w.version <= run.fed {
			continue
		}
		kind := Modified
		if w.gone {
			kind = Deleted
		}
		run.store.Apply("", kind, run.object(w))
		if run.fed = w.version; run.r.IntN(8) == 0 {
			return
		}
	}
	run.store.Bookmark("", strconv.Itoa(run.server.version))
	run.fed = run.server.version
}

func (run *resumption) list() (objs []*Object) {
	for _, w := range run.server.state {
		objs = append(objs, run.object(w))
	}
	return objs
}

func (run *resumption) relist() {
	run.fed = run.server.version
	version := strconv.Itoa(run.fed)
	if run.r.IntN(2) == 0 {
		run.store.Replace("", run.list(), version)
		return
	}
	var gone []Key
	for _, o := range run.store.objectsOf("") {
		if _, ok := run.server.state[o.Key()]; !ok {
			gone = append(gone, o.Key())
		}
	}
	run.store.Amend("", gone, run.list(), version)
}

// takeOver relists into a Store of another Spec.
func (run *resumption) takeOver() {
	before := run.store
	spec := thingSpec
	spec.Redact = pick(run.r, nil, []string{"spec.server"})
	run.store = newStore(run.t, spec)
	run.store.Replace("", run.list(), strconv.Itoa(run.server.version))
	if _, err := before.TakeOver(run.store); err != nil {
		run.t.Fatal(err)
	}
	run.store, run.fed = before, run.server.version
}

// goBack restores a backup. Nobody goes on from before.
func (run *resumption) goBack() {
	higher := run.fed
	run.server.restore(run.server.version - run.r.IntN(40))
	if run.server.version >= run.fed {
		return
	}
	run.relist()
	for _, c := range run.clients {
		if events, err := c.sub.Poll(); !errors.Is(err, ErrExpired) {
			run.t.Fatalf("a subscriber of before is told %s, %v", say(events), err)
		}
		if c.at > run.fed && c.at <= higher {
			if _, err := run.store.Watch(strconv.Itoa(c.at)); !errors.Is(err, ErrExpired) {
				run.t.Fatalf("Watch(%d) after going back from %d to %d = %v", c.at, higher, run.fed, err)
			}
		}
		c.sub.Close()
	}
	run.clients = nil
}

func (run *resumption) begin() {
	list, err := run.store.Select(context.Background(), Query{})
	if err != nil {
		run.t.Fatal(err)
	}
	c := &client{state: map[Key]written{}}
	for _, o := range list.Objects {
		c.state[o.Key()] = writtenOf(run.t, o)
	}
	c.at, _ = strconv.Atoi(list.Version)
	c.peak = c.at
	if c.sub, err = run.store.Watch(list.Version); err != nil {
		run.t.Fatal(err)
	}
	run.clients = append(run.clients, c)
}

func writtenOf(t *testing.T, o *Object) written {
	version, err := strconv.Atoi(o.ResourceVersion())
	if err != nil {
		t.Fatal(err)
	}
	return written{key: o.Key(), uid: o.UID(), version: version}
}

// read tells c of some events and perhaps cuts it off after.
func (run *resumption) read(c *client) {
	events, _, err := c.sub.read()
	if errors.Is(err, ErrExpired) {
		c.sub.Close()
		run.forget(c)
		return
	}
	if err != nil {
		run.t.Fatal(err)
	}
	cut := len(events)
	if run.r.IntN(2) == 0 {
		cut = run.r.IntN(cut + 1)
	}
	for _, e := range events[:cut] {
		run.tell(c, e)
	}
	if cut == len(events) && run.r.IntN(3) > 0 {
		run.compare(c)
		return
	}
	c.sub.Close()
	c.again = true
	if c.sub, err = run.store.Watch(strconv.Itoa(c.at)); err != nil {
		if !errors.Is(err, ErrExpired) {
			run.t.Fatal(err)
		}
		run.forget(c)
	}
}

// forget is about a client that has to list.
func (run *resumption) forget(c *client) {
	run.clients = slices.DeleteFunc(run.clients, func(other *client) bool { return other == c })
}

func (run *resumption) tell(c *client, e Event) {
	w := writtenOf(run.t, e.Object)
	if e.Type == Modified && e.Old.ResourceVersion() == e.Object.ResourceVersion() {
		c.again = true
	}
	if w.version < c.at && !c.again {
		run.t.Fatalf("%s %s is told at %d after %d", e.Type, e.Object.Key(), w.version, c.at)
	}
	if held, ok := c.state[w.key]; ok && e.Type != Deleted && held.uid != w.uid && !c.again {
		run.t.Fatalf("%s replaces %s without its deletion", w, held)
	}
	if c.at = w.version; c.at > c.peak {
		c.peak, c.again = c.at, false
	}
	if e.Type == Deleted {
		delete(c.state, w.key)
	} else {
		c.state[w.key] = w
	}
	// At the API server, too, all that it was not told comes after this version.
	elsewhere := maps.Clone(c.state)
	run.server.replay(c.at, elsewhere)
	if !maps.Equal(elsewhere, run.server.state) {
		run.t.Fatalf("who resumes from %d after %s of %s ends with\n%v, want\n%v", c.at, e.Type, w, elsewhere, run.server.state)
	}
}

// compare checks a client that was told everything.
func (run *resumption) compare(c *client) {
	if c.sub.next != run.store.ring.next {
		return
	}
	held := map[Key]written{}
	for _, o := range run.store.objectsOf("") {
		held[o.Key()] = writtenOf(run.t, o)
	}
	if !maps.Equal(held, c.state) {
		run.t.Fatalf("a client has\n%v, the Store\n%v", c.state, held)
	}
}

func (run *resumption) step() {
	switch n := run.r.IntN(100); {
	case n < 40:
		run.server.write(run.r)
	case n < 60:
		run.follow()
	case n < 70:
		run.relist()
	case n < 74:
		run.server.server = strconv.Itoa(run.r.IntN(1000))
		run.relist()
	case n < 77:
		run.takeOver()
	case n < 79:
		run.goBack()
	case n < 85:
		if len(run.clients) < 5 {
			run.begin()
		}
	default:
		for _, c := range slices.Clone(run.clients) {
			run.read(c)
		}
	}
}

// TestResume: a client that is cut off anywhere goes on from the version it was
// shown last, at the Store or at the API server, and misses nothing. What it is told
// does not fall, but for what a list rewrites.
func TestResume(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			run := &resumption{t: t, r: rand.New(rand.NewPCG(seed, 2)), server: upstream{version: 1000, server: "first", state: map[Key]written{}}}
			run.store = newStore(t, thingSpec)
			run.relist()
			for range 1500 {
				run.step()
			}
		})
	}
}

package replica

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
)

// liar is a control plane as bad as real ones: one etcd, and behind one address
// several API servers, each with a watch cache of its own that has seen the history
// up to some version only. Its servers lag, stall, freeze, hang up and garble, are of
// different versions with other bytes of equal objects, and its etcd may be restored
// from a backup. It is made for testing/synctest: its network is in memory, and its
// times are those of a real API server.
//
// What etcd has is the truth. Of every history there was, liar knows what it was at
// any version.
type liar struct {
	mu  sync.Mutex // guards all below, and the members
	uid string
	// facts is the present history, past what was taken back of the ones before.
	facts   []fact
	past    [][]fact
	version int
	// compacted is the version before which etcd remembers nothing.
	compacted int

	members []*member
	turn    int // of the balancer
	pinned  *member
	// refusing: nobody listens at the address.
	refusing bool
	wake     chan struct{} // closed and replaced when anything changes
	conns    chan net.Conn
	closed   chan struct{}

	dials    []time.Time
	requests []request
	// progress is how often etcd tells the cache of a resource how far it is, beside
	// its events and consistent reads of it; all the time if 0.
	progress time.Duration
	// allowed says whether a namespace may be read; everything may if nil.
	allowed func(namespace string) bool
}

// fact is one change of etcd.
type fact struct {
	resource string
	kind     cache.EventType
	object   fakeObject
	version  int
	at       time.Time
}

// request is one that was made: "list", "watch", "watchlist", "metadata", "get",
// "identity", "version" or "review", of a resource.
type request struct {
	verb, resource string
	at             time.Time
}

// member is one API server.
type member struct {
	name       string
	gitVersion string
	// addition is JSON that this version of the API server adds to each object.
	addition string

	// log is what its watch cache has seen, up to version seen; it was begun at start.
	log         []fact
	start, seen int

	stalled bool // its cache learns nothing new; consistent reads work on
	mute    bool // it sends no bookmarks
	frozen  bool // it accepts everything and answers nothing
	resets  bool // it hangs up on whoever connects
	// ends makes watches end after their first bookmark, which comes at once.
	ends bool
	// forge makes up the versions of the bookmarks to send.
	forge func(version int) []int
	// garbled is how many of the next events are sent damaged, with the one text of
	// garbling in the place of the other; broken is an object that no decoder accepts
	// of this server.
	garbled  int
	garbling [2]string
	broken   string
	// swallowed is how many of the next events are not sent at all.
	swallowed int
	// slow is how long what a watch sends is on its way.
	slow time.Duration
	// listing is how long a list takes.
	listing time.Duration
	// quiet is a namespace whose watches are told nothing.
	quiet string
	// hollow is what lists are answered with, "" for what is true.
	hollow string
	// told is what consistent reads of a resource told its cache.
	told map[string]int
	// answer may answer requests of a resource with a status code, 0 for what is true.
	answer func(verb, resource string) (code int)
	conns  map[net.Conn]struct{}
}

// newLiar has members that are all of one version and tell the truth.
func newLiar(members int) *liar {
	l := &liar{
		uid: "cluster-1", version: 100,
		wake: make(chan struct{}),
	}
	for n := range members {
		l.members = append(l.members, &member{
			name: fmt.Sprintf("m%d", n), gitVersion: "v1.36.3", start: l.version, seen: l.version, conns: map[net.Conn]struct{}{}, told: map[string]int{},
			garbling: [2]string{`"spec":{`, `"spec":}`},
		})
	}
	return l
}

// do changes something and tells open watches.
func (l *liar) do(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.wakeLocked()
}

func (l *liar) wakeLocked() {
	for _, m := range l.members {
		m.learnLocked(l)
	}
	close(l.wake)
	l.wake = make(chan struct{})
}

// learnLocked brings the watch cache to what etcd has. After a restore that it lived
// through, it waits for versions that it does not have yet, as etcd's watches do.
func (m *member) learnLocked(l *liar) {
	if m.stalled || m.frozen {
		return
	}
	for _, f := range l.facts {
		if f.version > m.seen {
			m.log = append(m.log, f)
		}
	}
	m.seen = max(m.seen, l.version)
}

// restartLocked begins the watch cache from what etcd has. Open watches end.
func (m *member) restartLocked(l *liar) {
	m.log = slices.Clone(l.facts)
	m.start, m.seen = l.version, l.version
	m.stalled, m.frozen, m.resets = false, false, false
	m.hangUpLocked()
}

func (m *member) hangUpLocked() {
	for c := range m.conns {
		_ = c.Close()
	}
	clear(m.conns)
}

// restart is done to every member, or to the given ones.
func (l *liar) restart(members ...*member) {
	l.do(func() {
		for _, m := range l.orAll(members) {
			m.restartLocked(l)
		}
	})
}

// hangUp closes the connections of members, or of all.
func (l *liar) hangUp(members ...*member) {
	l.do(func() {
		for _, m := range l.orAll(members) {
			m.hangUpLocked()
		}
	})
}

// each changes members, or all.
func (l *liar) each(change func(*member), members ...*member) {
	l.do(func() {
		for _, m := range l.orAll(members) {
			change(m)
		}
	})
}

func (l *liar) orAll(members []*member) []*member {
	if len(members) == 0 {
		return l.members
	}
	return members
}

// compact makes members forget the past: watches from before now get 410.
func (l *liar) compact() {
	l.each(func(m *member) { m.start = m.seen })
}

// put creates or changes an object of pods.
func (l *liar) put(name, value string) { l.putIn("pods", name, value) }

// putIn makes change, if there is one, to a new object or one that is there.
func (l *liar) putIn(resource, name, value string, change ...func(*fakeObject)) {
	l.do(func() {
		key := keyOf(name)
		o, ok := state(l.facts, resource, l.version)[key]
		kind := cache.Modified
		l.version++
		if !ok {
			kind, o = cache.Added, fakeObject{key: key, uid: fmt.Sprintf("uid-%s-%d-%d", name, l.version, len(l.past))}
		}
		o.version, o.value = l.version, value
		for _, c := range change {
			c(&o)
		}
		l.facts = append(l.facts, fact{resource, kind, o, l.version, time.Now()})
	})
}

func (l *liar) delete(name string) { l.deleteIn("pods", name) }

func (l *liar) deleteIn(resource, name string) {
	l.do(func() {
		o, ok := state(l.facts, resource, l.version)[keyOf(name)]
		if !ok {
			return
		}
		l.version++
		o.version = l.version
		l.facts = append(l.facts, fact{resource, cache.Deleted, o, l.version, time.Now()})
	})
}

// keyOf makes a key of "namespace/name" or of the name of an object in team-a.
func keyOf(name string) cache.Key {
	if ns, name, ok := strings.Cut(name, "/"); ok {
		return cache.Key{Namespace: ns, Name: name}
	}
	return cache.Key{Namespace: "team-a", Name: name}
}

// backup is the version to restore to.
func (l *liar) backup() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

// restore takes etcd back to a backup. Its API servers run on unless they are
// restarted.
func (l *liar) restore(backup int) {
	l.do(func() {
		l.past = append(l.past, slices.Clone(l.facts))
		l.facts = slices.DeleteFunc(slices.Clone(l.facts), func(f fact) bool { return f.version > backup })
		l.version = backup
	})
}

// pass lets etcd reach a version, by changes of something else.
func (l *liar) pass(version int) {
	l.do(func() { l.version = max(l.version, version) })
}

// state is what a resource is at a version of a history.
func state(facts []fact, resource string, version int) map[cache.Key]fakeObject {
	out := map[cache.Key]fakeObject{}
	for _, f := range facts {
		switch {
		case f.version > version:
			return out
		case f.resource != resource:
		case f.kind == cache.Deleted:
			delete(out, f.object.key)
		default:
			out[f.object.key] = f.object
		}
	}
	return out
}

func describeState(objects map[cache.Key]fakeObject) map[string]string {
	out := map[string]string{}
	for k, o := range objects {
		out[k.String()] = fmt.Sprintf("%s@%d=%s", o.uid, o.version, o.value)
	}
	return out
}

// truth is what a store should hold.
func (l *liar) truth(resource string) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return describeState(state(l.facts, resource, l.version))
}

// truths are what a store may hold that is complete up to a version: one for each
// history.
func (l *liar) truths(resource string, version int) (all []map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, facts := range append(slices.Clone(l.past), l.facts) {
		all = append(all, describeState(state(facts, resource, version)))
	}
	return all
}

// before is the version of the last change of a resource that is older than a moment,
// 0 for none.
func (l *liar) before(resource string, at time.Time) (version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.facts {
		if f.resource == resource && f.at.Before(at) {
			version = f.version
		}
	}
	return version
}

// count is how many requests there were, of verbs and, if it is not "", of a resource.
func (l *liar) count(resource string, verbs ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.requests {
		if (resource == "" || r.resource == resource) && (len(verbs) == 0 || slices.Contains(verbs, r.verb)) {
			n++
		}
	}
	return n
}

// lists is how many lists of all objects of a resource there were.
func (l *liar) lists(resource string) int { return l.count(resource, "list", "watchlist") }

// most is the highest number of moments within any span of time, those before from
// left out.
func most(moments []time.Time, from time.Time, span time.Duration) (n int) {
	moments = slices.SortedFunc(slices.Values(moments), time.Time.Compare)
	first := 0
	for i, at := range moments {
		for moments[first].Before(from) && first < i || at.Sub(moments[first]) >= span {
			first++
		}
		if !at.Before(from) {
			n = max(n, i-first+1)
		}
	}
	return n
}

// asked are the moments of all requests and dials.
func (l *liar) asked() (requests, dials []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.requests {
		requests = append(requests, r.at)
	}
	return requests, slices.Clone(l.dials)
}

func (o fakeObject) jsonAs(resource, addition string) string {
	kind := cmp.Or(map[string]string{"pods": "Pod"}[resource], strings.ToUpper(resource))
	if o.secret != "" {
		addition += fmt.Sprintf(`,"secret":%q`, o.secret)
	}
	labels := ""
	if o.labels != nil {
		raw, _ := json.Marshal(o.labels)
		labels = fmt.Sprintf(`,"labels":%s`, raw)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d"%s},"spec":{"value":%q%s}}`,
		kind, o.key.Name, o.key.Namespace, o.uid, o.version, labels, o.value, addition)
}

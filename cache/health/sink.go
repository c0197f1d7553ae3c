package health

import (
	"iter"
	"maps"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
)

// sink is an Index as its updater sees it. The updater alone changes which entries there
// are, so that it may look them up without a lock.
type sink struct{ *Index }

// reading is what is found out of one object.
type reading struct {
	key    cache.Key
	stamp  uint64
	health Health
	owner  owner
	over   bool
	calls  []call
	read   bool // its bytes could be read
}

// Learn takes in what resources there are. It returns false if one is of another kind now,
// and so judged by another rule.
func (s sink) Learn(deltas []follow.Delta) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++ // it is called when there is something new
	for _, k := range s.kinds {
		k.known = false
		k.view.Hold(nil)
	}
	for i := range deltas {
		if d := &deltas[i]; !d.Gone && !s.learn(d.View) {
			return false
		}
	}
	return true
}

// learn enters a resource of the cluster. It reports false if it is of another kind than it
// was.
func (s *state) learn(view *cache.View) bool {
	gr := view.Spec.GVR.GroupResource()
	gk := schema.GroupKind{Group: gr.Group, Kind: view.Spec.Kind}
	id, ok := s.byResource[gr]
	if !ok {
		id = kindID(len(s.kinds))
		s.kinds = append(s.kinds, &kind{group: gk, judge: JudgeOf(gk), records: records[gr], entries: map[cache.Key]*entry{}})
		s.byResource[gr] = id
	}
	s.byKind[gk] = id
	k := s.kinds[id]
	k.view, k.known = *view, true
	return k.group == gk
}

func (s sink) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision := s.revision
	s.state = newState()
	s.revision = revision
}

// Stamp is not known of what is good: after a relist that tells everything anew it is
// judged again.
func (s sink) Stamp(r cache.Resource, key cache.Key) (uint64, bool) {
	e, ok := s.of(r).entries[key]
	if !ok {
		return 0, false
	}
	return e.stamp, true
}

func (s sink) Keys(r cache.Resource) iter.Seq[cache.Key] { return maps.Keys(s.of(r).entries) }

func (s sink) Read(r cache.Resource, o *cache.Object) reading {
	k := s.of(r)
	if k.records {
		return reading{key: o.Key()}
	}
	if k.judge.pod && o.Sound() { // as soundPod is read, which says nothing else that is kept
		return reading{key: o.Key(), stamp: follow.Stamp(o), read: true}
	}
	return read(k.judge, o, s.now(), false)
}

// room is what it takes to read an object. It is used again for others, so that nothing of
// it may be kept.
type room struct {
	json   []byte
	parsed object
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// maxRoom is the size of JSON up to which a room is used again.
const maxRoom = 256 << 10

// read judges an object, and finds the owner of one that is not good, or of any.
func read(j Judge, o *cache.Object, now time.Time, any bool) reading {
	r := reading{key: o.Key(), stamp: follow.Stamp(o)}
	in := rooms.Get().(*room)
	defer func() {
		if cap(in.json) <= maxRoom {
			rooms.Put(in)
		}
	}()
	json, err := o.AppendJSON(in.json[:0])
	if err != nil {
		r.health = Health{Status: Unknown, Reason: "Unreadable", Message: "what is held of it cannot be read"}
		return r
	}
	in.json = json
	parsed := &in.parsed
	if j.pod && !any {
		parsed.empty(now)
		if r.health, r.read = soundPod(json, parsed); r.read {
			return r
		}
	}
	parsed.parse(json, now)
	r.health, r.read = j.verdict(parsed), true
	if j.calls {
		r.calls = parsed.calls()
	}
	if any || r.keep() {
		r.owner, r.over = parsed.owner(), parsed.over()
	}
	return r
}

// keep reports whether the verdict has to be remembered.
func (r *reading) keep() bool {
	return r.health.Status != Good || !r.health.Until.IsZero() || len(r.calls) > 0
}

// over reports whether an object is a pod that will not run again.
func (o *object) over() bool { return is(o.kind, "Pod") && is(o.status.Get("phase"), "Failed") }

func (s sink) Enter(r cache.Resource, read []reading, gone []cache.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(r)
	for _, key := range gone {
		delete(k.entries, key)
	}
	for i := range read {
		s.put(k, &read[i])
	}
}

// put enters a verdict. The few words there are for reasons are held once.
func (s *state) put(k *kind, r *reading) {
	if !r.keep() {
		delete(k.entries, r.key)
		return
	}
	h := r.health
	h.Reason = unique.Make(h.Reason).Value()
	k.entries[r.key] = &entry{stamp: r.stamp, health: h, owner: r.owner, over: r.over, calls: r.calls}
	s.due = earlier(s.due, h.Until)
}

// of is the kind of a resource that Learn has told of.
func (s *state) of(r cache.Resource) *kind { return s.kinds[s.byResource[r.GVR.GroupResource()]] }

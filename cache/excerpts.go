package cache

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// excerptAfter is how many questions that read many objects ask about the same paths
	// before what they read is kept.
	excerptAfter = 3
	// excerptFrom is how many objects are many.
	excerptFrom = 256
	// excerptSets is for how many sets of paths it is known how often they were asked about.
	excerptSets = 64
	// excerptMost is how many bytes are kept of the objects of one extraction, and
	// excerptEach how many for each of them: about half of what a pod is held in.
	excerptMost = 64 << 20
	excerptEach = 512
	// excerptEntry is about what one excerpt costs besides its text.
	excerptEntry = 64
	// excerptShare is how many times as long an object is as an excerpt that is worth it.
	excerptShare = 4
	// excerptIdle is how long excerpts are kept that nobody asks for: they keep what they are
	// of, which may be there no more.
	excerptIdle = 5 * time.Minute

	excerptShards = 64
)

// excerpts keep what questions read again and again of the objects of one extraction: an excerpt
// of each, for the paths that they are about. To unpack an object and to walk through it is
// most of what a question costs that no index answers, and an excerpt needs neither.
//
// An excerpt is of one *Object, which never changes, so that it cannot be out of date; what
// is asked reads it as it would read the object. They are made by the questions themselves,
// not by changes. They are forgotten with the extraction that they belong to, when nobody has
// asked for them for a while, when others are asked for and there is no room, and all at once
// when too many are of objects that are there no more.
type excerpts struct {
	mu    sync.Mutex             // guards all below
	sets  map[string]*excerptSet // by paths
	timer *time.Timer            // set while there are sets
}

// excerptSet are the excerpts for one set of paths.
type excerptSet struct {
	excerpt *rawjson.Excerpt
	asked   int       // guarded by excerpts.mu, as are the next two
	last    time.Time // when it was asked about
	most    int       // of how many objects at most

	objects, bytes atomic.Int64 // that are kept
	room           atomic.Int64 // for bytes
	refused        atomic.Int64 // objects whose excerpts are not much shorter
	shards         [excerptShards]excerptShard
}

type excerptShard struct {
	mu    sync.Mutex // guards all below
	of    map[*Object][]byte
	bytes int64
}

func newExcerpts() *excerpts { return &excerpts{sets: map[string]*excerptSet{}} }

// about are the excerpts for paths, for a question that reads so many objects; nil if there
// are none.
func (x *excerpts) about(paths []rawjson.Path, objects int) *excerptSet {
	if x == nil || objects < excerptFrom || len(paths) == 0 {
		return nil
	}
	name := excerptName(paths)
	x.mu.Lock()
	defer x.mu.Unlock()
	set := x.sets[name]
	if set == nil {
		x.forgetOldest(excerptSets - 1)
		set = &excerptSet{excerpt: rawjson.NewExcerpt(paths)}
		x.sets[name] = set
	}
	if x.timer == nil {
		x.timer = time.AfterFunc(excerptIdle, x.forgetIdle)
	}
	set.last = time.Now()
	if set.asked++; set.asked <= excerptAfter || set.refused.Load() > set.objects.Load()+excerptFrom {
		return nil
	}
	if set.objects.Load() > int64(set.most+set.most/4) {
		set.forget() // too many are of objects that are gone
		set.most = 0
	}
	set.most = max(set.most, objects)
	x.makeRoom(set)
	return set
}

// excerptName is the same for the same paths in another order.
func excerptName(paths []rawjson.Path) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = p.String()
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// forgetOldest leaves no more than so many sets, those that were asked about last.
func (x *excerpts) forgetOldest(most int) {
	for len(x.sets) > most {
		oldest := ""
		for name, set := range x.sets {
			if oldest == "" || set.last.Before(x.sets[oldest].last) {
				oldest = name
			}
		}
		delete(x.sets, oldest)
	}
}

// forgetAll is for when another extraction has taken the place: what is kept of the objects
// of this one would keep them, too.
func (x *excerpts) forgetAll() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.sets)
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
}

// forgetIdle forgets what nobody has asked for.
func (x *excerpts) forgetIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, set := range x.sets {
		if time.Since(set.last) >= excerptIdle {
			delete(x.sets, name)
		}
	}
	x.timer = nil
	if len(x.sets) > 0 {
		x.timer = time.AfterFunc(excerptIdle, x.forgetIdle)
	}
}

// makeRoom says how much a set may keep of all: half, and what others have left of the rest.
// Those that were asked about longest ago give way.
func (x *excerpts) makeRoom(set *excerptSet) {
	all := int64(0) // also where this question is about few of the objects
	for _, other := range x.sets {
		all = max(all, min(int64(other.most)*excerptEach, excerptMost))
	}
	for {
		var others int64
		var oldest *excerptSet
		for _, other := range x.sets {
			if other == set || other.bytes.Load() == 0 {
				continue
			}
			others += other.bytes.Load()
			if oldest == nil || other.last.Before(oldest.last) {
				oldest = other
			}
		}
		set.room.Store(all - others)
		if oldest == nil || others <= all/2 {
			return
		}
		oldest.forget()
		oldest.asked = 0
	}
}

// held is how many bytes are kept.
func (x *excerpts) held() (bytes int64) {
	if x == nil {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, set := range x.sets {
		bytes += set.bytes.Load()
	}
	return bytes
}

func (s *excerptSet) forget() {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		s.objects.Add(-int64(len(shard.of)))
		s.bytes.Add(-shard.bytes)
		shard.of, shard.bytes = nil, 0
		shard.mu.Unlock()
	}
	s.refused.Store(0)
}

var excerptSeed = maphash.MakeSeed()

func (s *excerptSet) shard(o *Object) *excerptShard {
	return &s.shards[maphash.Comparable(excerptSeed, o)%excerptShards]
}

// append appends the excerpt of an object.
func (s *excerptSet) append(dst []byte, o *Object) ([]byte, error) {
	shard := s.shard(o)
	shard.mu.Lock()
	known, ok := shard.of[o]
	shard.mu.Unlock()
	if ok {
		return append(dst, known...), nil
	}
	start := len(dst)
	dst, err := o.AppendJSON(dst)
	if err != nil {
		return dst, err
	}
	// The excerpt is shorter, and made of what comes after it.
	whole := len(dst)
	dst = s.excerpt.Append(dst, dst[start:whole])
	s.keep(shard, o, dst[whole:], whole-start)
	return append(dst[:start], dst[whole:]...), nil
}

func (s *excerptSet) keep(shard *excerptShard, o *Object, text []byte, size int) {
	if len(text) > excerptEntry && len(text)*excerptShare > size {
		s.refused.Add(1)
		return
	}
	cost := int64(len(text) + excerptEntry)
	if s.bytes.Load()+cost > s.room.Load() {
		return
	}
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if _, ok := shard.of[o]; ok {
		return
	}
	if shard.of == nil {
		shard.of = map[*Object][]byte{}
	}
	shard.of[o] = slices.Clone(text)
	shard.bytes += cost
	s.objects.Add(1)
	s.bytes.Add(cost)
}

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
	// excerptPaths is how many paths a question may be about.
	excerptPaths = 64
	// excerptSets is for how many sets of paths it is known how often they were asked about.
	excerptSets = 64
	// excerptMost is how many bytes are kept of the objects of one extraction, and excerptEach
	// how many for each of them: about half of what a pod is held in. Up to excerptFew in all it
	// is excerptEachOfFew: what several kinds of questions are about has to fit.
	excerptMost      = 64 << 20
	excerptEach      = 512
	excerptFew       = 24 << 20
	excerptEachOfFew = 1536
	// excerptEntry is about what is held of each object besides the text, and excerptText of
	// each text, which objects of which the same is read share.
	excerptEntry = 32
	excerptText  = 96
	// excerptShare is how many times as long an object is as an excerpt that is worth it.
	excerptShare = 4
	// excerptIdle is how long excerpts are kept that nobody asks for, and how long none are
	// made after memory was short.
	excerptIdle = 5 * time.Minute

	excerptShards = 64
)

// excerpts keep what questions read again and again of the objects of one extraction: an
// excerpt of each, for the paths that they are about. To unpack an object and to walk through
// it is most of what a question costs that no index answers, and an excerpt needs neither.
//
// An excerpt is of one *Object, which never changes, so that it cannot be out of date; what
// is asked reads it as it would read the object. They are made by the questions themselves,
// not by changes, and leave with their objects. They are forgotten with the extraction that
// they belong to, when nobody has asked for them for a while, when memory is short, and when
// others are asked for and there is no room.
type excerpts struct {
	live   atomic.Int64 // how many objects there are
	bytes  atomic.Int64 // that are kept
	limit  atomic.Int64 // of bytes
	few    int64        // excerptFew
	filled atomic.Pointer[[]*excerptSet]

	mu     sync.Mutex             // guards all below
	sets   map[string]*excerptSet // by paths
	timer  *time.Timer            // set while there are sets
	paused time.Time              // until when nothing is kept
}

// excerptSet are the excerpts for one set of paths.
type excerptSet struct {
	of      *excerpts
	excerpt *rawjson.Excerpt
	asked   int       // guarded by excerpts.mu, as are the next two
	last    time.Time // when it was asked about
	useless bool      // most excerpts are not much shorter than the objects

	objects, bytes atomic.Int64 // that are kept
	refused        atomic.Int64 // objects whose excerpts are not much shorter, since it was asked about last
	closed         atomic.Bool  // nothing is kept any more
	shards         [excerptShards]excerptShard

	mu    sync.Mutex // guards texts; taken after that of a shard
	texts map[string]*sharedText
}

type excerptShard struct {
	mu sync.Mutex // guards all below
	of map[*Object]*sharedText
}

// sharedText is the excerpt of some objects: of what questions are about, such as nodes and
// phases, many have the same.
type sharedText struct {
	text    string
	objects int // guarded by excerptSet.mu
}

func newExcerpts() *excerpts { return &excerpts{few: excerptFew, sets: map[string]*excerptSet{}} }

// about are the excerpts for paths, for a question that reads so many objects; nil if there
// are none.
func (x *excerpts) about(paths []rawjson.Path, objects int) *excerptSet {
	if x == nil || objects < excerptFrom || len(paths) == 0 || len(paths) > excerptPaths {
		return nil
	}
	name := excerptName(paths)
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	if now.Before(x.paused) {
		return nil
	}
	set := x.sets[name]
	if set == nil {
		x.leave(excerptSets - 1)
		set = &excerptSet{of: x, excerpt: rawjson.NewExcerpt(paths)}
		x.sets[name] = set
	}
	if x.timer == nil {
		x.timer = time.AfterFunc(excerptIdle, x.forgetIdle)
	}
	set.last = now
	if set.asked++; set.asked <= excerptAfter || set.useless {
		return nil
	}
	if set.refused.Swap(0) > set.objects.Load()+excerptFrom {
		set.useless = true
		set.forget()
		return nil
	}
	live := x.live.Load()
	if set.objects.Load() > live+live/4+excerptFrom {
		set.forget() // questions about the past have left too many
	}
	x.limit.Store(max(min(live*excerptEachOfFew, x.few), min(live*excerptEach, excerptMost)))
	x.makeRoom(set)
	x.publish()
	return set
}

// reader is how to append as much of an object as paths lead to, for a question that reads so
// many: an excerpt, or all of it.
func (x *excerpts) reader(paths []rawjson.Path, objects int) func(dst []byte, o *Object) ([]byte, error) {
	if kept := x.about(paths, objects); kept != nil {
		return kept.append
	}
	return appendWhole
}

func appendWhole(dst []byte, o *Object) ([]byte, error) { return o.AppendJSON(dst) }

// excerptName is the same for the same paths in another order.
func excerptName(paths []rawjson.Path) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = p.String()
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// leave leaves no more than so many sets: first those go that were not asked about often
// enough to be kept, and of these the ones that were asked about longest ago.
func (x *excerpts) leave(most int) {
	for len(x.sets) > most {
		first := ""
		for name, set := range x.sets {
			if first == "" || set.before(x.sets[first]) {
				first = name
			}
		}
		x.drop(first)
	}
}

// before reports whether s goes before other.
func (s *excerptSet) before(other *excerptSet) bool {
	if kept := s.asked > excerptAfter; kept != (other.asked > excerptAfter) {
		return !kept
	}
	return s.last.Before(other.last)
}

// drop takes a set out. A question that is under way may still read it.
func (x *excerpts) drop(name string) {
	set := x.sets[name]
	delete(x.sets, name)
	set.closed.Store(true)
	set.forget()
}

// publish says which sets may have kept something.
func (x *excerpts) publish() {
	var filled []*excerptSet
	for _, set := range x.sets {
		if set.asked > excerptAfter {
			filled = append(filled, set)
		}
	}
	x.filled.Store(&filled)
}

// makeRoom sees to it that others than set leave half of what may be kept. Those that were
// asked about longest ago give way.
func (x *excerpts) makeRoom(set *excerptSet) {
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
		if oldest == nil || others <= x.limit.Load()/2 {
			return
		}
		oldest.forget()
		oldest.asked = 0
	}
}

// forgetAll gives everything back, and reports whether there was something. Nothing is kept
// for a while after.
func (x *excerpts) forgetAll(pause time.Duration) (any bool) {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	any = x.bytes.Load() > 0
	for name := range x.sets {
		x.drop(name)
	}
	x.publish()
	x.paused = time.Now().Add(pause)
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	return any
}

// forgetIdle forgets what nobody has asked for.
func (x *excerpts) forgetIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, set := range x.sets {
		if time.Since(set.last) >= excerptIdle {
			x.drop(name)
		}
	}
	x.publish()
	x.timer = nil
	if len(x.sets) > 0 {
		x.timer = time.AfterFunc(excerptIdle, x.forgetIdle)
	}
}

// come and gone are called for each object that is there from now on, and no more.
func (x *excerpts) come() {
	if x != nil {
		x.live.Add(1)
	}
}

func (x *excerpts) gone(o *Object) {
	if x == nil {
		return
	}
	x.live.Add(-1)
	if filled := x.filled.Load(); filled != nil {
		for _, set := range *filled {
			set.remove(o)
		}
	}
}

// held is how many bytes are kept.
func (x *excerpts) held() (bytes int64) {
	if x == nil {
		return 0
	}
	return x.bytes.Load()
}

func (s *excerptSet) forget() {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		for _, text := range shard.of {
			s.release(text)
		}
		shard.of = nil
		shard.mu.Unlock()
	}
	s.mu.Lock()
	if len(s.texts) == 0 {
		s.texts = nil // a map does not become smaller
	}
	s.mu.Unlock()
	s.refused.Store(0)
}

func (s *excerptSet) remove(o *Object) {
	shard := s.shard(o)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if text, ok := shard.of[o]; ok {
		delete(shard.of, o)
		s.release(text)
	}
}

// share is the text for one more object; nil if there is no room for it.
func (s *excerptSet) share(text []byte) *sharedText {
	s.mu.Lock()
	defer s.mu.Unlock()
	shared, cost := s.texts[string(text)], int64(excerptEntry)
	if shared == nil {
		cost += excerptText + int64(len(text))
	}
	if s.of.bytes.Add(cost) > s.of.limit.Load() {
		s.of.bytes.Add(-cost)
		return nil
	}
	if shared == nil {
		if s.texts == nil {
			s.texts = map[string]*sharedText{}
		}
		shared = &sharedText{text: string(text)}
		s.texts[shared.text] = shared
	}
	shared.objects++
	s.objects.Add(1)
	s.bytes.Add(cost)
	return shared
}

// release is called for each object that had a text and is not kept any more.
func (s *excerptSet) release(shared *sharedText) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cost := int64(excerptEntry)
	if shared.objects--; shared.objects == 0 {
		delete(s.texts, shared.text)
		cost += excerptText + int64(len(shared.text))
	}
	s.objects.Add(-1)
	s.bytes.Add(-cost)
	s.of.bytes.Add(-cost)
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
		return append(dst, known.text...), nil
	}
	start := len(dst)
	dst, err := o.AppendJSON(dst)
	if err != nil {
		return dst, err
	}
	// The excerpt is shorter, and made of what comes before it.
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
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if _, ok := shard.of[o]; ok || s.closed.Load() {
		return
	}
	shared := s.share(text)
	if shared == nil {
		return
	}
	if shard.of == nil {
		shard.of = map[*Object]*sharedText{}
	}
	shard.of[o] = shared
}

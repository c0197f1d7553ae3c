package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/informerd/informerd/cache"
)

// source is one watch of a resource: of all namespaces, or of a single one. It
// runs a client-go Reflector whose ListerWatcher and store it is itself:
//
//   - the first "list" of a source that can resume is answered from the
//     snapshot's resourceVersion, with no items and no request, so that the
//     Reflector goes on to watch from there;
//   - the watch it hands out (resumeWatch) outlives the connections under it,
//     so that only an expired resourceVersion leads to a relist;
//   - what the Reflector stores goes straight to the Store, in order, from the
//     one goroutine of the Reflector.
type source struct {
	namespace string // "" for all
	spec      cache.Spec
	store     *cache.Store
	cluster   *cluster
	syncs     chan struct{} // semaphore over initial syncs and relists
	intake    *intake       // of the lists of all clusters
	// compareLeast is how many objects make a comparison worth its requests.
	compareLeast int
	count        *counters
	changed      func() // called after every change of the standing
	// relist ends the watch so that the Reflector relists; it holds one. Who goes
	// on where this source ends has the same, so that no demand is lost.
	relist chan relistDemand
	// renew ends the watch for one that soon brings a bookmark; it holds one.
	renew chan struct{}
	retry retry
	lease time.Duration
	pulse *pulse        // of the process
	grace time.Duration // how long a difference may last: the watch may be about to tell
	log   *slog.Logger

	// epoch is the configuration of the cluster under which its history was last
	// judged. Only the goroutine of the open watch touches it, and reflect before
	// there is one.
	epoch int
	// known is when the history of what is held was: it was asked for in a list, began to
	// be judged, or a watch of it ended as it should. It is touched as epoch is.
	known time.Time

	// resume is the version the first watch continues from; "" for none. Only
	// the Reflector's goroutine touches it and the fields below.
	resume string
	// judged: resume was listed a moment ago, its history is known.
	judged bool
	// reading is the plain list that is on its way in; nil in between.
	reading *reading
	// streaming is the watch of a streaming list until its objects are entered.
	streaming *resumeWatch
	// skipReplace makes the sink ignore the empty answer to the first list.
	skipReplace bool
	// demand is why the relist under way is made, if it was demanded.
	demand relistDemand
	// listErr is what the failed streaming list or comparison said: List answers
	// with it, since a plain LIST would cost the API server more and fare no
	// better.
	listErr error
	// retries keeps lists apart that fail.
	retries retries
	// listFailures counts lists that failed one after the other.
	listFailures int
	// pending is a difference that the next Replace enters.
	pending *difference
	// compareFailures counts comparisons that failed one after the other.
	compareFailures int
	// asked is when the list under way was asked for, of the latest version.
	asked time.Time
	// copied: another informerd answered the list under way.
	copied bool
	// consistent: it is a consistent read, also if another informerd answers.
	consistent bool
	// serving is the version of the API servers that a list is about to be made
	// from, "" if different ones answer or they were not asked.
	serving string
	// noStreaming is set once the server refused a streaming list as such, noPlain
	// once a plain list took too long.
	noStreaming, noPlain bool
	// undecodable is the version at which the open watch brought something that
	// could not be decoded.
	undecodable string
	// listing is held during a list, which the Reflector makes in a goroutine
	// that it does not wait for.
	listing sync.Mutex

	apart      atomic.Bool     // its versions are of another etcd than the cluster's
	bookmarked atomic.Bool     // the server has sent a bookmark
	asking     atomic.Bool     // a question of background is under way
	ctx        context.Context // of run
	history    context.Context // of the feed
	after      time.Time       // of the feed
	background sync.WaitGroup  // questions asked beside the watch; run waits for them

	end context.CancelCauseFunc // ends the source

	mu       sync.Mutex // guards all below
	standing standing
	refused  time.Time // of the first 403 in a row
	promised promise
	doubts   doubts
	read     mark      // the last consistent read of the resource itself
	lagged   time.Time // when it was last looked into why bookmarks are behind
	served   string    // version of the API servers that the copy was last listed from in full
	listed   string    // version of the last list or comparison that was entered
	// newestListed are the newest objects as of listed, until a watch has opened.
	newestListed []*cache.Object
}

// promise is a bookmark that the sink is about to get: it proves the copy to have
// been current when it was told.
type promise struct {
	version string
	told    time.Time
	copied  bool // it is of the moment it was told, as another informerd knows
}

// relistDemand says why a copy is to be listed anew.
type relistDemand struct {
	reason string
	full   bool // equal versions prove nothing: every object is to be listed
	mend   bool // found by verification: what it changes is counted
}

// errForbidden ends a source: the API server refuses list or watch.
var errForbidden = errors.New("forbidden")

// refusal is an errForbidden in the API server's own words, which say that it is one.
type refusal struct{ error }

func (r refusal) Unwrap() []error { return []error{errForbidden, r.error} }

// patience, in longest pauses between two attempts, is how long a source that
// has data does not believe that it is refused.
const patience = 2

func (s *source) get() standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standing
}

func (s *source) servedBy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// begin notes that what is to be held, of the latest version, is asked for now.
func (s *source) begin() {
	s.asked = time.Now()
	s.known = s.asked
}

// asListed reports whether nothing was told since the last list. What a watch tells
// after it may be of another server, which may not know yet that etcd was restored.
func (s *source) asListed() bool {
	now := s.store.Versions()[s.namespace]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed != "" && s.listed == now
}

func (s *source) live() bool { return s.get().live(time.Now(), s.lease) }

func (s *source) update(f func(*standing)) {
	s.mu.Lock()
	f(&s.standing)
	refused := s.standing.refused
	s.mu.Unlock()
	s.store.Refuse(s.namespace, refused)
	s.changed()
}

// run keeps the source going until ctx ends (nil), the API server forbids it
// (errForbidden) or its history turns out to be another (errOtherHistory).
func (s *source) run(ctx context.Context) error {
	defer s.background.Wait()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.ctx, s.end = ctx, end
	history := s.history
	defer context.AfterFunc(history, func() { end(context.Cause(history)) })()
	err := s.reflect(ctx)
	if errors.Is(err, errOtherHistory) && !errors.Is(err, errLacks) && !s.ownHistory() {
		s.cluster.rewritten(history, err)
	}
	return err
}

func (s *source) reflect(ctx context.Context) error {
	s.epoch = s.cluster.configured()
	if s.resume != "" && !s.judged {
		if err := s.resumeJudged(ctx); err != nil || ctx.Err() != nil {
			return cmp.Or(err, endOf(ctx))
		}
	}
	// The Reflector's own messages are about single attempts; the ones an
	// operator needs are logged here, once per change.
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(quiet{s.log.Handler()}))
	backoff := s.retry.backoff()
	r := toolscache.NewReflectorWithOptions(s, &item{}, sink{s}, toolscache.ReflectorOptions{
		Name:            s.spec.String(),
		TypeDescription: s.spec.Kind,
		Backoff:         &backoff,
	})
	r.RunWithContext(ctx)
	s.listing.Lock() // ctx has ended, and no list begins after that
	defer s.listing.Unlock()
	return endOf(ctx)
}

// endOf is why a source was ended; nil for the end of its informer.
func endOf(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, errForbidden) || errors.Is(err, errOtherHistory) {
		return err
	}
	return nil
}

// resumeJudged retries until the server says whether resume can be gone on with. A
// copy that lacks something, or has the bytes of another API server, is listed.
func (s *source) resumeJudged(ctx context.Context) error {
	backoff, since := s.retry.backoff(), time.Now()
	for s.cluster.awaitReachable(ctx) {
		s.known = time.Now()
		j := s.judge(ctx, s.resume)
		if j.verdict == same {
			demand, err := s.upgraded(ctx, since)
			if err == nil && demand != nil {
				s.resume, s.demand = "", *demand
				return nil
			}
			if err == nil {
				return nil
			}
			j = judgement{unknown, err}
		}
		switch j.verdict {
		case goneBack, other, lacks:
			return j.err
		case missed, forgotten:
			s.resume, s.demand = "", relistDemand{reason: j.err.Error()}
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		s.note(j.err)
		if !s.cluster.pause(ctx, backoff.Step()) {
			return nil
		}
	}
	return nil
}

// upgraded asks for a full list if the copy is not known to be of the API servers
// that answer since a moment, all of one version.
func (s *source) upgraded(ctx context.Context, since time.Time) (*relistDemand, error) {
	serving, err := s.cluster.serving(ctx, since)
	if err != nil {
		return nil, err
	}
	served := s.servedBy()
	if serving == "" || serving == served {
		return nil, nil
	}
	return &relistDemand{reason: fmt.Sprintf("the copy is of API server %q, which is now %s", served, serving), full: true}, nil
}

func (s *source) decode(raw []byte) (*cache.Object, error) {
	return s.store.Decode(raw, s.spec.GVR.GroupVersion().String(), s.spec.Kind)
}

// decodeListed is decode of an object of a list.
func (s *source) decodeListed(raw []byte) (*cache.Object, error) {
	return s.store.DecodeListed(raw, s.spec.GVR.GroupVersion().String(), s.spec.Kind)
}

// demandRelist makes the open watch end as if its version had expired.
func (s *source) demandRelist(reason string) { s.demandOf(relistDemand{reason: reason}) }

func (s *source) demandOf(d relistDemand) {
	select {
	case s.relist <- d:
	default:
	}
}

// promise notes that the bookmark of a version proves the copy current. It does
// when the sink has it: events before it may still be on their way to the store.
func (s *source) promise(p promise) {
	s.mu.Lock()
	s.promised = p
	s.mu.Unlock()
}

// keptPromise returns the promise of the version that the sink has been brought to.
func (s *source) keptPromise(version string) (p promise, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p = s.promised; p.version != version || version == "" {
		return promise{}, false
	}
	s.promised = promise{}
	return p, true
}

// breakPromise forgets the promise: something has failed since.
func (s *source) breakPromise() {
	s.mu.Lock()
	s.promised = promise{}
	s.mu.Unlock()
}

package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/server/access"
)

// lineKey names a line. The version is not part of it: a server that prefers another one
// still has the same objects.
type lineKey struct {
	cluster string
	schema.GroupResource
}

// line is one resource of a handler: it follows its events and notes which keys they make
// pending. One goroutine runs it; Manager.Save drains it, too.
type line struct {
	h   *running
	key lineKey

	following sync.Mutex // guards sub and from, and that events are considered in order; taken before h.mu
	sub       *cache.Subscription
	from      *source // of sub

	// Guarded by h.mu.

	keys   table
	spaces spaces
	known  int     // keys that something was delivered of, or noted as known
	source *source // what is read now; nil: nothing can be
	cursor cursor
	ready  bool // the copy is not older than what was delivered
	state  string
	reason string
}

// cursor says up to where changes were considered, and what that is worth.
type cursor struct {
	// Version is up to where every change was considered; "": none ever was.
	Version string `json:"version,omitempty"`
	// Lineage is of the copy that has this version. In another one it means nothing.
	Lineage string `json:"lineage,omitempty"`
	// Question is what was asked: the handler's digest, and what could be seen.
	Question string `json:"question,omitempty"`
	// Told is the newest version of the copy that something was delivered from. A copy that is
	// restored is asked for nothing before it has it again, or states would be delivered after
	// newer ones.
	Told string `json:"told,omitempty"`
	// Rule is what the resource's rule drops and redacts. Last states of another one are not
	// kept.
	Rule string `json:"rule,omitempty"`
	// Resource is the resource in the version that was followed, for those who read it.
	Resource string `json:"resource,omitempty"`
}

// source is what a line reads. It is immutable.
type source struct {
	view     *cache.View
	reader   *cache.Reader
	matcher  *cache.Matcher
	fields   *rawjson.Projection // nil: whole objects
	salt     []byte              // of digests
	seen     string              // tells what may be seen from what could be before
	question string
}

func (s *source) cursor(version string) cursor {
	return cursor{
		Version: version, Lineage: s.reader.Lineage(), Question: s.question,
		Rule: ruleOf(s.view.Spec), Resource: s.view.Spec.Name(),
	}
}

// ruleOf tells what is dropped and redacted from what was before.
func ruleOf(spec cache.Spec) string {
	sum := sha256.Sum256(encodeJSON([][]string{spec.Drop, spec.Redact}))
	return hex.EncodeToString(sum[:8])
}

// States of a line.
const (
	lineWaiting   = "waiting"
	lineFollowing = "following"
	lineForbidden = "forbidden"
)

const (
	// viewPoll is how often a copy is looked for that cannot be read yet.
	viewPoll = 100 * time.Millisecond
	// lookInterval is how often a line looks whether its rights or its rule are others.
	lookInterval = 400 * time.Millisecond
)

// errAnew ends a look: what is read must be taken anew.
var errAnew = errors.New("taken anew")

// run follows the resource until ctx ends.
func (l *line) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := viewPoll
		if err := l.follow(ctx); err != nil && !errors.Is(err, errAnew) {
			wait = lookInterval
		}
		sleep(ctx, wait)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// follow finds the copy, begins where the cursor is or by comparing, and considers events
// until that copy ends, or is to be asked in another way.
func (l *line) follow(ctx context.Context) error {
	res, ok := l.h.m.options.Caches.Resource(l.key.cluster, l.key.GroupResource)
	if !ok {
		return l.missing()
	}
	rights := l.generation(ctx) // before rights are asked for: what changes after that is seen
	sub, src, err := l.begin(ctx, res)
	if err != nil {
		return err
	}
	defer sub.Close()
	defer l.set(nil, nil)
	return l.consume(ctx, res, src, sub, rights)
}

func (l *line) set(sub *cache.Subscription, from *source) {
	l.following.Lock()
	defer l.following.Unlock()
	l.sub, l.from = sub, from
}

// missing is for a resource that is not known. One that a cluster does not have any more
// has no objects: what was delivered of it has left. As long as the cluster has not told
// what it has, nothing is known.
func (l *line) missing() error {
	l.wait("the cluster has not told yet whether it has this resource")
	if !l.h.m.options.Caches.Lacks(l.key.cluster, l.key.GroupResource) {
		return nil
	}
	l.wait("the cluster has no such resource")
	h := l.h
	h.mu.Lock()
	defer h.mu.Unlock()
	l.source = nil
	l.readyLocked()
	l.cursor.Version = ""
	l.keys.each(func(e *entry) {
		if e.is(selected) {
			h.leftLocked(e, e.last())
		}
	})
	return nil
}

func (l *line) wait(reason string) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.state, l.reason = lineWaiting, reason
}

// hold is wait where what was read before must not be read any more: nothing is delivered
// until the line has been begun again.
func (l *line) hold(reason string) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.state, l.reason = lineWaiting, reason
	l.source, l.ready = nil, false
}

// forbid forgets everything: nothing may be seen any more. Should that change, the line
// begins as it did at first.
func (l *line) forbid(reason string) {
	h := l.h
	h.mu.Lock()
	defer h.mu.Unlock()
	l.state, l.reason = lineForbidden, reason
	l.source, l.ready = nil, false
	l.keys.each(h.forgetLocked)
	if l.cursor != (cursor{}) {
		l.cursor = cursor{}
		h.moved[l] = struct{}{}
	}
}

// open takes what is read of res now. Its error is told as why the line waits.
func (l *line) open(ctx context.Context, res Resource) (*source, error) {
	view := res.View()
	if !view.Readable() {
		l.hold(fmt.Sprintf("the copy is %s: %s", view.State, view.Reason))
		return nil, errAnew
	}
	spec := l.h.asked()
	scope, err := l.seen(ctx, spec)
	if err != nil {
		l.hold("what may be seen cannot be told: " + err.Error())
		return nil, err
	}
	if scope.Empty() {
		l.forbid(spec.As.Name() + " may not list and watch it")
		return nil, cache.ErrNotSynced
	}
	src := &source{view: view, reader: view.Reader(scope), salt: l.h.salt()}
	if !scope.Whole() {
		src.seen = scope.Digest()
	}
	src.question = spec.Digest + "/" + src.seen
	if src.matcher, err = src.reader.Matcher(spec.Query); err == nil {
		src.fields, err = compileFields(spec.Fields)
	}
	if err != nil {
		l.wait(err.Error())
		return nil, err
	}
	return src, nil
}

// seen is what the handler may see of the resource.
func (l *line) seen(ctx context.Context, spec *Handler) (cache.Scope, error) {
	listed, err := spec.As.Scope(ctx, l.key.cluster, cache.List, l.key.GroupResource)
	if err != nil {
		return cache.Scope{}, access.Unknown(spec.As, err)
	}
	watched, err := spec.As.Scope(ctx, l.key.cluster, cache.Watch, l.key.GroupResource)
	if err != nil {
		return cache.Scope{}, access.Unknown(spec.As, err)
	}
	return listed.And(watched), nil
}

func compileFields(fields []string) (*rawjson.Projection, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	paths := make([]rawjson.Path, len(fields))
	for i, f := range fields {
		var err error
		if paths[i], err = rawjson.ParsePath(f); err != nil {
			return nil, fmt.Errorf("fields: %w", err)
		}
	}
	return rawjson.CompileProjection(paths)
}

// begin goes on after the cursor where that means something, else it compares.
func (l *line) begin(ctx context.Context, res Resource) (*cache.Subscription, *source, error) {
	src, err := l.open(ctx, res)
	if err != nil {
		return nil, nil, err
	}
	l.following.Lock()
	l.resume(src)
	sub, from := l.sub, l.from
	l.following.Unlock()
	if sub != nil {
		return sub, from, nil
	}
	if sub, err = l.compare(ctx, src); err != nil {
		return nil, nil, err
	}
	l.set(sub, src)
	return sub, src, nil
}

// resume goes on after the cursor, if it means something in the copy of src. Called with
// l.following.
func (l *line) resume(src *source) {
	if l.sub != nil {
		return
	}
	l.h.mu.Lock()
	at := l.cursor
	l.h.mu.Unlock()
	if at.Version == "" || at.Lineage != src.reader.Lineage() || at.Question != src.question {
		return
	}
	sub, err := src.reader.Watch(at.Version)
	if err != nil {
		return
	}
	l.sub, l.from = sub, src
	l.use(src)
}

// resumeEarly is resume for a line that has not been begun yet, or not again, when a snapshot
// is about to be saved: else it would be ahead of the ledger. Rights that have to be asked for
// are not waited for.
func (l *line) resumeEarly() {
	res, ok := l.h.m.options.Caches.Resource(l.key.cluster, l.key.GroupResource)
	if !ok || !access.Settled(l.h.asked().As) {
		return
	}
	if src, err := l.open(context.Background(), res); err == nil {
		l.resume(src)
	}
}

// read has keys that are taken from now on read from src. A comparison begins with it: what
// it makes pending may be taken at once, and asked in the old way nothing would be found to
// differ. What a rule takes away is not sent any more from here on either.
func (l *line) read(src *source) {
	h := l.h
	h.mu.Lock()
	defer h.mu.Unlock()
	l.source = src
	if rule := ruleOf(src.view.Spec); l.cursor.Rule != rule {
		if l.cursor.Rule != "" {
			l.forgetLastLocked()
		}
		l.cursor.Rule = rule
		h.moved[l] = struct{}{}
	}
}

// use has what is read of src be enough: all that differs is pending, or will be.
func (l *line) use(src *source) {
	l.read(src)
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.state, l.reason = lineFollowing, ""
}

// forgetLastLocked forgets the last states of what left, which a rule before showed more of
// than it may be: their ends are delivered without.
func (l *line) forgetLastLocked() {
	l.keys.each(func(e *entry) {
		of := e.last()
		if of == nil {
			return
		}
		bare := &last{uid: of.uid, resourceVersion: of.resourceVersion}
		if of.object != nil {
			bare.uid, bare.resourceVersion = of.object.UID(), of.object.ResourceVersion()
		}
		e.setLast(bare)
		l.h.changed[e] = struct{}{}
		l.h.erase = true
	})
}

// consume considers events until the copy ends or is to be asked in another way. What src
// may see was asked for when rights had this generation, or later.
func (l *line) consume(ctx context.Context, res Resource, src *source, sub *cache.Subscription, rights uint64) error {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		changed := sub.Changed()
		err := l.drain()
		if err == nil {
			err = l.catchUp(res, src)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			continue
		case <-tick.C:
		}
		if now := l.generation(ctx); now != rights || l.differs(res, src) {
			if err := l.moved(ctx, src); err != nil {
				return err
			}
			rights = now
		}
	}
}

// generation is another number when rights may be others; an error counts as one.
func (l *line) generation(ctx context.Context) uint64 {
	as := l.h.asked().As
	if access.Settled(as) {
		return 0
	}
	n, err := as.Generation(ctx, l.key.cluster)
	if err != nil {
		return ^uint64(0)
	}
	return n
}

// differs reports whether the question, or the rule that objects are kept under, is another.
func (l *line) differs(res Resource, src *source) bool {
	now := res.View()
	return !now.SameCopy(src.view) || l.h.asked().Digest+"/"+src.seen != src.question ||
		!reflect.DeepEqual(now.Spec, src.view.Spec)
}

// moved ends the look where it is to be taken in another way.
func (l *line) moved(ctx context.Context, src *source) error {
	spec := l.h.asked()
	scope, err := l.seen(ctx, spec)
	if err != nil {
		return err
	}
	seen := ""
	if !scope.Whole() {
		seen = scope.Digest()
	}
	if spec.Digest+"/"+seen != src.question {
		return errAnew
	}
	if res, ok := l.h.m.options.Caches.Resource(l.key.cluster, l.key.GroupResource); !ok || l.differs(res, src) {
		return errAnew
	}
	return nil
}

// catchUp makes the line ready once its copy is as new as what was delivered before a
// restart. A live copy that is older than that is one of another history.
func (l *line) catchUp(res Resource, src *source) error {
	h := l.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.ready {
		return nil
	}
	behind := func() bool {
		version := src.reader.Version()
		return cache.Newer(l.cursor.Version, version) || cache.Newer(l.cursor.Told, version)
	}
	if behind() {
		view := res.View()
		if view.State == cache.Live && view.SameCopy(src.view) && behind() {
			l.cursor.Version, l.cursor.Told = "", ""
			return errAnew
		}
		return nil
	}
	l.readyLocked()
	return nil
}

// readyLocked lets what is pending be delivered.
func (l *line) readyLocked() {
	if l.ready {
		return
	}
	l.ready = true
	l.keys.each(func(e *entry) {
		if e.since != 0 {
			l.h.offerLocked(e)
		}
	})
}

// drain considers what has happened until now.
func (l *line) drain() error {
	l.following.Lock()
	defer l.following.Unlock()
	if l.sub == nil {
		l.resumeEarly()
	}
	if l.sub == nil {
		return nil
	}
	for {
		events, err := l.sub.Poll()
		for _, e := range events {
			l.consider(e)
		}
		if len(events) == 0 || err != nil {
			l.advance(err)
			return err
		}
	}
}

// advance notes how far the line is.
func (l *line) advance(err error) {
	src := l.from
	at := src.cursor(l.sub.Version())
	if errors.Is(err, cache.ErrExpired) {
		at.Version = "" // what was missed is found by comparing
	}
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	at.Told = l.cursor.Told
	if at != l.cursor {
		l.cursor = at
		l.h.moved[l] = struct{}{}
	}
}

package replica

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// ruleChange is a reload, or another definition of a resource, and what is to become
// of it.
type ruleChange struct {
	before, after func(*cache.Spec)
	// serves changes what the API server makes of the same objects.
	serves func(*member)
	// events are what really is different.
	events []string
	// hidden may be in no answer from when the reload has returned.
	hidden string
	// unlisted: nothing has to be listed for it.
	unlisted bool
}

func named(event string, names ...string) (all []string) {
	for _, name := range names {
		all = append(all, event+" team-a/"+name)
	}
	return all
}

var (
	nothing      = func(*cache.Spec) {}
	withSecret   = numbered("p", 4)
	ruledObjects = numbered("p", 12)
)

func dropping(paths ...string) func(*cache.Spec) { return func(s *cache.Spec) { s.Drop = paths } }
func redacted(paths ...string) func(*cache.Spec) { return func(s *cache.Spec) { s.Redact = paths } }
func labelled(selector string) func(*cache.Spec) {
	return func(s *cache.Spec) { s.LabelSelector = selector }
}
func ofFields(selector string) func(*cache.Spec) {
	return func(s *cache.Spec) { s.FieldSelector = selector }
}
func defined(generation int64) func(s *cache.Spec) {
	return func(s *cache.Spec) { s.CRDUID, s.CRDGeneration = "crd-1", generation }
}

var ruleChanges = map[string]ruleChange{
	"drop tightened":         {before: nothing, after: dropping("spec.secret"), events: named("MODIFIED", withSecret...), hidden: `"secret"`, unlisted: true},
	"columns pinned":         {before: nothing, after: func(s *cache.Spec) { s.Columns.Pinned = [][]string{{"spec.value"}} }, unlisted: true},
	"no columns":             {before: func(s *cache.Spec) { s.Columns.Pinned = [][]string{{"spec.value"}} }, after: func(s *cache.Spec) { s.Columns.None = true }, unlisted: true},
	"drop loosened":          {before: dropping("spec.secret"), after: nothing, events: named("MODIFIED", withSecret...)},
	"drop of something else": {before: dropping("spec.value"), after: dropping("spec.secret"), events: named("MODIFIED", ruledObjects...), hidden: `"secret"`},
	"redact tightened":       {before: nothing, after: redacted("spec.secret"), events: named("MODIFIED", withSecret...), hidden: "hush", unlisted: true},
	"redact loosened":        {before: redacted("spec.secret"), after: nothing, events: named("MODIFIED", withSecret...)},
	// With what was redacted the annotation of kubectl apply was cut, which is asked for now.
	"redact becomes drop":         {before: redacted("spec.secret"), after: dropping("spec.secret"), events: named("MODIFIED", withSecret...), hidden: `"secret"`},
	"redact becomes drop of more": {before: redacted("spec.secret"), after: dropping("spec.secret", "metadata.annotations"), events: named("MODIFIED", withSecret...), hidden: `"secret"`, unlisted: true},
	"labels selected":             {before: nothing, after: labelled("half=1"), events: named("DELETED", "p0", "p2", "p4", "p6", "p8", "p10")},
	"other labels selected":       {before: labelled("half=1"), after: labelled("half=0"), events: append(named("DELETED", "p1", "p3", "p5", "p7", "p9", "p11"), named("ADDED", "p0", "p2", "p4", "p6", "p8", "p10")...)},
	"fields selected":             {before: nothing, after: ofFields("metadata.name!=p3"), events: named("DELETED", "p3")},
	"fields selected no more":     {before: ofFields("metadata.name!=p3"), after: nothing, events: named("ADDED", "p3")},
	"defined anew":                {before: defined(1), after: defined(2)},
	"defined anew and converted":  {before: defined(1), after: defined(2), serves: func(m *member) { m.addition = `,"converted":true` }, events: named("MODIFIED", ruledObjects...)},
}

// TestRuleChangeBehindTheView: whatever changes of a rule or a definition, also of all
// resources at once, readers are answered all the time, from the old copy until the
// new one is complete. No watch ends, and what is told is what is different.
// What a rule drops or redacts more is seen by nobody once the reload has returned.
func TestRuleChangeBehindTheView(t *testing.T) {
	for name, change := range ruleChanges {
		for _, resources := range [][]string{{"pods"}, {"pods", "r1", "r2"}} {
			t.Run(fmt.Sprintf("%s, of %d resources", name, len(resources)), func(t *testing.T) {
				inBubble(t, func(t *testing.T) { changeRule(t, change, resources) })
			})
		}
	}
}

func changeRule(t *testing.T, change ruleChange, resources []string) {
	l := newLiar(2)
	for _, resource := range []string{"pods", "r1", "r2"} {
		for n, name := range ruledObjects {
			l.putIn(resource, name, "1", func(o *fakeObject) {
				o.labels = map[string]string{"half": fmt.Sprint(n % 2)}
				if n < len(withSecret) {
					o.secret = "hush"
				}
			})
		}
	}
	specs := func(rule func(*cache.Spec)) (all []cache.Spec) {
		for _, resource := range []string{"pods", "r1", "r2"} {
			spec := specOf(resource)
			if change.before(&spec); slices.Contains(resources, resource) {
				spec = specOf(resource)
				rule(&spec)
			}
			all = append(all, spec)
		}
		return all
	}
	d := deceive(t, l, Options{Snapshots: newMemory()}, specs(change.before)...)
	d.becomes(10*time.Second, cache.Live)
	var readers []*ruledReader
	for _, resource := range resources {
		readers = append(readers, d.readRuled(resource))
	}
	time.Sleep(time.Second)

	// For a while nothing can be listed, so that the old copies have to do.
	lists := l.lists("")
	l.each(func(m *member) {
		m.answer = func(verb, _ string) int {
			if verb == "list" || verb == "watchlist" {
				return 500
			}
			return 0
		}
	})
	if change.serves != nil {
		l.each(change.serves)
	}
	if err := d.Apply("c", specs(change.after)); err != nil {
		t.Fatal(err)
	}
	for _, r := range readers {
		r.hides(change.hidden)
	}
	if change.unlisted {
		time.Sleep(5 * time.Second)
		for _, r := range readers {
			r.told(change.events)
		}
	}
	time.Sleep(40 * time.Second)
	for _, r := range readers {
		if v := d.of(r.resource).View(); !v.State.Readable() {
			t.Errorf("%s is %s while nothing can be listed: %s", r.resource, v.State, v.Reason)
		}
	}
	l.each(func(m *member) { m.answer = nil })
	for _, r := range readers {
		spec := specOf(r.resource)
		change.after(&spec)
		within(t, time.Minute, "another copy of "+r.resource, func() bool { return sameCopy(d.of(r.resource).View().Spec, spec) })
	}
	d.becomes(time.Minute, cache.Live)
	for _, r := range readers {
		if !change.unlisted && l.lists("") == lists || change.unlisted && l.lists("") != lists {
			t.Errorf("%d lists", l.lists("")-lists)
		}
		if !change.unlisted && change.hidden == "" {
			r.told(change.events)
		}
	}
	for _, resource := range resources { // watches go on under the new rule
		l.putIn(resource, "p1", "2")
		l.putIn(resource, "p0", "2")
	}
	time.Sleep(10 * time.Second)
	for _, r := range readers {
		r.end(l)
	}
}

// ruledReader reads a resource all the time and follows its watch.
type ruledReader struct {
	d        *deceived
	resource string
	store    *cache.Store
	sub      *cache.Subscription
	state    map[string]string // as the watch tells
	events   []string
	hidden   string
	stop     func()
}

func (d *deceived) readRuled(resource string) *ruledReader {
	r := &ruledReader{d: d, resource: resource, store: d.of(resource).View().Store(inside.Cache)}
	var err error
	if r.sub, err = r.store.Watch(""); err != nil {
		d.t.Fatal(err)
	}
	r.state = r.answer()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, 20*time.Millisecond) {
			r.answer()
		}
	}()
	r.stop = func() { cancel(); <-done }
	d.t.Cleanup(func() { r.stop(); r.sub.Close() })
	return r
}

// answer is what the resource is read as, byte for byte.
func (r *ruledReader) answer() map[string]string {
	all := map[string]string{}
	v := r.d.of(r.resource).View()
	if !v.Readable() || v.Store(inside.Cache) != r.store {
		r.d.t.Errorf("%s is %s, in another store: %v; %s", r.resource, v.State, v.Readable(), v.Reason)
		return all
	}
	got, err := v.Store(inside.Cache).Select(context.Background(), cache.Query{})
	if err != nil || len(got.Objects) == 0 {
		r.d.t.Errorf("%s: an answer of %v", r.resource, err)
		return all
	}
	for _, o := range got.Objects {
		all[o.Key().String()] = raw(v.Store(inside.Cache), o.Name())
	}
	return all
}

// hides is called when the reload has returned.
func (r *ruledReader) hides(hidden string) {
	if hidden == "" {
		return
	}
	r.hidden = hidden
	for key, object := range r.answer() {
		if strings.Contains(object, hidden) {
			r.d.t.Errorf("after the reload has returned, %s %s is %s", r.resource, key, object)
		}
	}
}

// poll takes the events that are there.
func (r *ruledReader) poll() {
	for {
		events, err := r.sub.Poll()
		if err != nil {
			r.d.t.Errorf("%s: the watch ended: %v", r.resource, err)
		}
		if err != nil || len(events) == 0 {
			return
		}
		for _, e := range events {
			key, object := e.Object.Key().String(), ""
			if e.Type != cache.Deleted {
				b, err := e.Object.JSON()
				if object = string(b); err != nil {
					r.d.t.Error(err)
				}
			}
			if object == r.state[key] {
				r.d.t.Errorf("%s: %s %s was told, and is no change", r.resource, e.Type, key)
			}
			if r.state[key] = object; object == "" {
				delete(r.state, key)
			}
			if r.hidden != "" && strings.Contains(object, r.hidden) {
				r.d.t.Errorf("%s: a watch told %s", r.resource, object)
			}
			r.events = append(r.events, fmt.Sprintf("%s %s", e.Type, key))
		}
	}
}

// told compares what was told with what should have been, in any order.
func (r *ruledReader) told(want []string) {
	r.d.t.Helper()
	r.poll()
	got := slices.Sorted(slices.Values(r.events))
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
		r.d.t.Errorf("%s: events (-want +told):\n%s", r.resource, diff)
	}
}

// end compares the copy with what the watch made of it, and both with etcd.
func (r *ruledReader) end(l *liar) {
	r.stop()
	r.poll()
	held := r.answer()
	if !maps.Equal(held, r.state) {
		r.d.t.Errorf("%s (-copy +watch):\n%s", r.resource, cmp.Diff(held, r.state))
	}
	if version := r.store.Version(); version != fmt.Sprint(l.backup()) && version < fmt.Sprint(l.backup()-6) {
		r.d.t.Errorf("%s is at %s", r.resource, version)
	}
	truth := l.truth(r.resource)
	for key := range held {
		if truth[key] == "" {
			r.d.t.Errorf("%s holds %s, etcd does not", r.resource, key)
		}
		r.hides(r.hidden)
	}
}

// TestRuleTakesAwayWithoutServer: what a rule drops more is gone at once, too, of a
// copy from a snapshot whose API server has not answered yet.
func TestRuleTakesAwayWithoutServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, db := newLiar(1), newMemory()
		l.putIn("pods", "p0", "1", func(o *fakeObject) { o.secret = "hush" })
		d := deceive(t, l, Options{Snapshots: db})
		d.becomes(10*time.Second, cache.Live)
		time.Sleep(5 * time.Second)
		d.stop()
		l.do(func() { l.refusing = true })
		d = deceive(t, l, Options{Snapshots: db})
		d.becomes(10*time.Second, cache.Warm)
		if got := raw(d.pods().View().Store(inside.Cache), "p0"); !strings.Contains(got, "hush") {
			t.Fatalf("the snapshot has %s", got)
		}
		spec := specOf("pods")
		spec.Drop = []string{"spec.secret"}
		if err := d.Apply("c", []cache.Spec{spec}); err != nil {
			t.Fatal(err)
		}
		if got := raw(d.pods().View().Store(inside.Cache), "p0"); got == "" || strings.Contains(got, "hush") {
			t.Errorf("after the reload has returned, p0 is %q", got)
		}
		d.becomes(0, cache.Warm)
		if age, known := d.pods().View().Age(); !known || age < 5*time.Second {
			t.Errorf("it is %v old, %v", age, known)
		}
		lists := l.lists("")
		l.do(func() { l.refusing = false })
		d.becomes(time.Minute, cache.Live)
		d.equal(0)
		if n := l.lists("") - lists; n != 0 {
			t.Errorf("%d lists", n)
		}
	})
}

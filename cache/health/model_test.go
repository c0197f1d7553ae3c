package health

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// thing is an object of the model.
type thing struct {
	resource, id string
	raw          []byte
	owner        string // "resource id uid" of its controller
	holder       string // the UID of its owner, controller or not
	uid          string
	app          string
}

// model is a cluster as a plain map, judged the long way round.
type model map[string]*thing // by "resource id"

// told is what the model says of one thing.
type told struct {
	*thing
	own, status  Health
	cause        *told
	broken       int
	parent       *told
	depth        int
	past         bool
	children     []*told
	belowIsWrong bool
}

func (m model) judge(now time.Time, sees func(resource, id string) bool) []*told {
	all := map[string]*told{}
	for key, o := range m {
		if sees(o.resource, o.id) {
			all[key] = &told{thing: o, own: Of(o.raw, now)}
		}
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b *told) int { return a.compare(b) })
	for _, o := range list {
		if f := strings.Fields(o.owner); len(f) == 3 {
			if p := all[f[0]+" "+f[1]]; p != nil && p.uid == f[2] {
				o.parent, p.children = p, append(p.children, o)
			}
		}
	}
	for _, o := range list {
		for p := o.parent; p != nil; p = p.parent {
			o.depth++
		}
		o.past = o.isPast()
	}
	for _, o := range list {
		o.status = o.own
		if o.past {
			o.status = Health{}
		}
		for _, d := range o.below() {
			if d.own.Status == Good || d.past {
				continue
			}
			o.belowIsWrong = true
			o.status.Status = max(o.status.Status, d.own.Status)
			if o.cause == nil || worse(d, o.cause) {
				o.cause = d
			}
		}
	}
	for _, o := range list {
		for _, d := range o.below() {
			if d.own.Status != Good && !d.past && !d.belowIsWrong {
				o.broken++
			}
		}
	}
	return list
}

// isPast reports whether it is wrong and does not matter any more.
func (o *told) isPast() bool {
	p := o.parent
	switch {
	case o.own.Status == Good || p == nil:
		return false
	case p.isPast():
		return true
	case strings.Contains(string(o.raw), `"phase":"Failed"`) && o.resource == "pods":
		return p.resource == "jobs.batch" && p.own.Reason == "Completed" || p.resource == "replicasets.apps" && p.own.Status == Good
	}
	return p.resource == "cronjobs.batch" && !o.own.Since.IsZero() && o.own.Since.Before(p.own.Since)
}

func (o *told) below() (all []*told) {
	for _, c := range o.children {
		all = append(append(all, c), c.below()...)
	}
	return all
}

func (o *told) compare(b *told) int {
	return cmp.Or(cmp.Compare(o.resource, b.resource), keyOf(o.id).Compare(keyOf(b.id)))
}

func worse(a, b *told) bool {
	if a.own.Status != b.own.Status {
		return a.own.Status > b.own.Status
	}
	if a.depth != b.depth {
		return a.depth > b.depth
	}
	if at, bt := unixOf(a.own.Since), unixOf(b.own.Since); at != bt {
		return at < bt
	}
	return a.compare(b) < 0
}

// unixOf puts times that are not known after all others.
func unixOf(t time.Time) int64 {
	if t.IsZero() {
		return 1 << 62
	}
	return t.Unix()
}

func keyOf(id string) cache.Key {
	namespace, name, ok := strings.Cut(id, "/")
	if !ok {
		namespace, name = "", id
	}
	return cache.Key{Namespace: namespace, Name: name}
}

// list is what is to be answered.
func (m model) list(list []*told, q *Query, selects func(o *told) bool) (items []string, summary Counts) {
	var found []*told
	in := map[*told]bool{}
	for _, o := range list {
		if !selects(o) {
			continue
		}
		summary[o.status.Status]++
		if q.lists(o.status.Status) {
			found = append(found, o)
			in[o] = true
		}
	}
	if !q.All {
		found = slices.DeleteFunc(found, func(o *told) bool {
			for p := o.parent; p != nil; p = p.parent {
				if in[p] && o.status.Status != Good {
					return true
				}
			}
			return false
		})
	}
	since := func(o *told) int64 {
		if o.own.Status == Good && o.cause != nil {
			return unixOf(o.cause.own.Since)
		}
		return unixOf(o.own.Since)
	}
	slices.SortStableFunc(found, func(a, b *told) int {
		if a.status.Status == Good && b.status.Status == Good {
			return a.compare(b)
		}
		return cmp.Or(cmp.Compare(b.status.Status, a.status.Status), cmp.Compare(b.broken, a.broken), cmp.Compare(since(a), since(b)), a.compare(b))
	})
	for _, o := range found {
		items = append(items, o.text())
	}
	return items, summary
}

func (o *told) text() string {
	i := Item{Object: Object{Resource: o.resource, Key: keyOf(o.id), Health: Health{Status: o.status.Status}}, Affected: o.broken}
	i.Reason = o.own.Reason
	if o.past {
		i.Reason = "Superseded"
	}
	if o.cause != nil {
		i.Cause = &Object{Resource: o.cause.resource, Key: keyOf(o.cause.id)}
		if o.cause.own.Status >= o.own.Status {
			i.Reason = cmp.Or(o.cause.own.Reason, i.Reason)
		}
	}
	return i.text()
}

// TestModel: after any changes, and as time goes by, any question is answered as by
// judging every object anew.
func TestModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random{rand.New(rand.NewPCG(seed, 3)), noon}
			w, m := newWorld(t), model{}
			now := noon
			w.index.now = func() time.Time { return now }
			for range 30 {
				for range 1 + r.IntN(20) {
					w.step(r, m)
				}
				for range 6 {
					now = now.Add(time.Duration(r.IntN(120)) * time.Second)
					w.compare(r, m, now)
				}
			}
			followed := w.index
			w.index = w.newIndex()
			w.index.now = followed.now
			w.compare(r, m, now)
		})
	}
}

func (w *world) compare(r random, m model, now time.Time) {
	w.TB.Helper()
	sight, sees := r.sight()
	q, selects := r.query()
	q.Sight = sight
	w.compareOne(r, m, now, sight, sees)
	want, summary := m.list(m.judge(now, sees), &q, selects)
	a, err := w.index.Ask(w.TB.Context(), q)
	if err != nil {
		w.TB.Fatal(err)
	}
	if got := a.text(); !slices.Equal(got, want) {
		w.TB.Fatalf("%+v (-want +got):\n%s", q, gocmp.Diff(want, got))
	}
	if a.Summary != summary {
		w.TB.Fatalf("%+v: summary %v, want %v", q, a.Summary, summary)
	}
	var resources, namespaces Counts
	for _, c := range a.Resources {
		for s, n := range c.Counts {
			resources[s] += n
		}
	}
	for _, c := range a.Namespaces {
		for s, n := range c.Counts {
			namespaces[s] += n
		}
	}
	if resources != summary || namespaces[Bad] > summary[Bad] {
		w.TB.Fatalf("resources have %v, namespaces %v of %v", resources, namespaces, summary)
	}
}

// compareOne asks for one object and what it owns.
func (w *world) compareOne(r random, m model, now time.Time, sight cache.Sight, sees func(resource, id string) bool) {
	w.TB.Helper()
	if len(m) == 0 {
		return
	}
	o := m[pick(r, slices.Sorted(maps.Keys(m))...)]
	q := ObjectQuery{Resource: schema.ParseGroupResource(o.resource), Key: keyOf(o.id), Limit: 1000, Sight: sight}
	a, err := w.index.AskObject(w.TB.Context(), q)
	if !sees(o.resource, o.id) {
		if !errors.Is(err, cache.ErrNotFound) {
			w.TB.Fatalf("%s %s is not seen: %v", o.resource, o.id, err)
		}
		return
	}
	if err != nil {
		w.TB.Fatal(err)
	}
	var want, got []string
	all := m.judge(now, sees)
	for _, t := range all {
		if t.thing == o && a.Item.text() != t.text() {
			w.TB.Fatalf("one object is %s, want %s", a.Item.text(), t.text())
		}
	}
	for _, t := range m.owned(o.uid, all) {
		want = append(want, fmt.Sprintf("%s %s/%s", t.status.Status, t.resource, keyOf(t.id)))
	}
	for i, c := range a.Children {
		got = append(got, fmt.Sprintf("%s %s/%s", c.Status, c.Resource, c.Key))
		if i > 0 && c.Status > a.Children[i-1].Status {
			w.TB.Errorf("%s comes after what is better", got[i])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.TB.Fatalf("%s %s owns (-want +got):\n%s", o.resource, o.id, gocmp.Diff(want, got))
	}
}

// owned is what an object owns, and what those own.
func (m model) owned(uid string, all []*told) (found []*told) {
	for _, t := range all {
		if t.holder == uid {
			found = append(append(found, t), m.owned(t.uid, all)...)
		}
	}
	return found
}

// TestRelisted: what a new copy does not have is forgotten.
func TestRelisted(t *testing.T) {
	w := newWorld(t)
	w.Put("pods", "a/x", `{"status":{"phase":"Failed","reason":"Evicted"}}`)
	if got := w.ask().text(); !slices.Equal(got, []string{"bad pods/a/x Evicted"}) {
		t.Fatalf("%q", got)
	}
	pods := w.Resource("pods")
	pods.Renew(t)
	if a := w.ask(); len(a.Items) > 0 || a.Summary != (Counts{}) {
		t.Errorf("of an empty copy: %q, %v", a.text(), a.Summary)
	}
	pods.State = cache.Failed
	if a := w.ask(); len(a.Unanswered) != 1 || a.Unanswered[0].Spec.Name() != "pods" {
		t.Errorf("unanswered: %v", a.Unanswered)
	}
}

// TestEventsHaveNoHealth: records are neither counted nor told of.
func TestEventsHaveNoHealth(t *testing.T) {
	w := newWorld(t)
	w.Put("events", "a/x", `{"status":{"phase":"Failed"}}`)
	if a := w.ask(func(q *Query) { q.Statuses = Statuses }); len(a.Items) > 0 || a.Summary != (Counts{}) {
		t.Errorf("%q, %v", a.text(), a.Summary)
	}
}

// TestOwnersInARing: objects that own each other are told all the same.
func TestOwnersInARing(t *testing.T) {
	w := newWorld(t)
	ring := func(name, other string) {
		w.Put("widgets.example.com", "a/"+name, fmt.Sprintf(`{%s,"status":{"phase":"Failed"}}`, ownedBy("widgets.example.com", "example.com/v1", "Widget", "a/"+other)))
	}
	ring("x", "y")
	ring("y", "x")
	ring("self", "self")
	if got := w.ask(func(q *Query) { q.All = true }).text(); len(got) != 3 {
		t.Errorf("%q", got)
	}
	for range 10 {
		want := []string{"bad widgets.example.com/a/x Failed 1 by widgets.example.com/a/y", "bad widgets.example.com/a/self Failed"}
		if got := w.ask().text(); !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

// TestGoodIsForgotten: what is good takes no memory.
func TestGoodIsForgotten(t *testing.T) {
	w := newWorld(t)
	for _, phase := range []string{"Failed", "Succeeded"} {
		w.Put("pods", "a/x", fmt.Sprintf(`{"status":{"phase":%q}}`, phase))
		w.ask()
	}
	if n := len(w.index.of(w.Resource("pods").Spec().Resource).entries); n > 0 {
		t.Errorf("%d entries of pods that are good", n)
	}
}

// TestHistory: what failed before the same succeeded is no trouble.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	w.index.now = func() time.Time { return noon }
	cron := func(success time.Duration) {
		w.Put("cronjobs.batch", "a/nightly", fmt.Sprintf(`{"status":{"lastSuccessfulTime":%q}}`, ago(success)))
	}
	cron(3 * time.Hour)
	w.Put("jobs.batch", "a/nightly-1", fmt.Sprintf(`{%s,%s}`, ownedBy("cronjobs.batch", "batch/v1", "CronJob", "a/nightly"), conds(cond("Failed", "True", "BackoffLimitExceeded", "", 2*time.Hour))))
	w.Put("jobs.batch", "a/once", conds0(cond("Complete", "True", "", "", time.Hour)))
	for _, job := range []string{"nightly-1", "once"} {
		w.Put("pods", "a/"+job+"-x", fmt.Sprintf(`{%s,"status":{"phase":"Failed"}}`, ownedBy("jobs.batch", "batch/v1", "Job", "a/"+job)))
	}
	if got, want := w.ask().text(), []string{"bad cronjobs.batch/a/nightly Failed 1 by pods/a/nightly-1-x"}; !slices.Equal(got, want) {
		t.Errorf("after a failure: %q, want %q", got, want)
	}
	cron(time.Hour)
	if a := w.ask(); len(a.Items) > 0 || a.Summary != (Counts{Good: 5}) {
		t.Errorf("after a success: %q, %v", a.text(), a.Summary)
	}
}

func conds0(all ...string) string { return "{" + conds(all...) + "}" }

package review

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
)

// TestLongQuestions: a quarter of a megabyte is neither asked about nor held.
func TestLongQuestions(t *testing.T) {
	api := &accesstest.API{}
	a := New(Options{Reviewer: api, Proposer: &proposals{}})
	long := strings.Repeat("x", 250_000)
	for name, attributes := range map[string]access.Attributes{
		"name": {Name: long}, "namespace": {Namespace: long}, "resource": {Resource: long}, "verb": {Verb: long},
		"labels": {LabelSelector: long}, "fields": {FieldSelector: long}, "all": {Name: long[:4000], LabelSelector: long[:4000], Group: long[:4000]},
	} {
		if v, err := a.Allowed(t.Context(), jane, attributes); err != nil || v.Allowed || v.Reason == "" || len(v.Reason) > 100 {
			t.Errorf("%s: %v, %v", name, v.Allowed, err)
		}
	}
	if v, err := a.Path(t.Context(), jane, "get", "/"+long); err != nil || v.Allowed {
		t.Errorf("path: %v, %v", v.Allowed, err)
	}
	named := access.Named{Only: true, Places: []access.Place{{Namespace: "a", Name: long}}, LabelSelector: long}
	if s, _, err := a.Scope(t.Context(), jane, cache.List, pods, named); err != nil || !s.Empty() {
		t.Errorf("Scope(): %v, %v", s, err)
	}
	if n := len(api.Asked()); n != 0 || len(a.reviews.held.byKey) != 0 {
		t.Errorf("asked %d times, holds %d", n, len(a.reviews.held.byKey))
	}
}

// TestScopesWeigh: scopes of many places count for many.
func TestScopesWeigh(t *testing.T) {
	r := newRecent[*scoped](1000)
	now := time.Now()
	for i := range 100 {
		r.put(access.KeyOf(fmt.Sprint(i)), &scoped{places: 84, until: now.Add(time.Minute)}, now)
	}
	r.put(access.KeyOf("huge"), &scoped{places: 10_000, until: now.Add(time.Minute)}, now)
	if len(r.byKey) != 10 || r.weight != 1000 || len(r.order) != 10 {
		t.Errorf("holds %d of weight %d", len(r.byKey), r.weight)
	}
	if _, ok := r.get(access.KeyOf("99"), now); !ok {
		t.Error("the newest made room")
	}
	r.put(access.KeyOf("next"), &scoped{until: now.Add(time.Hour)}, now.Add(time.Minute))
	if len(r.byKey) != 1 || r.weight != 16 {
		t.Errorf("holds %d of weight %d when all but one are over", len(r.byKey), r.weight)
	}
}

// TestNobodyStarves: one user's thousands of questions leave room for another one's.
func TestNobodyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &accesstest.API{}
		api.Delay(time.Second)
		a := New(Options{Reviewer: api, Proposer: &proposals{}})
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 1000 {
			go func() {
				_, _ = a.Allowed(ctx, jane, access.Attributes{Verb: "get", Resource: "pods", Name: fmt.Sprint(i)})
			}()
		}
		synctest.Wait()
		began := time.Now()
		if _, err := a.Allowed(t.Context(), bob, access.Attributes{Verb: "get", Resource: "pods"}); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		cancel()
		time.Sleep(time.Minute)
	})
}

// TestAskingAboutOthers: what somebody asks about others, of whom they may name as many as
// they like, is their question. Nobody waits for it, not even whom it is about.
func TestAskingAboutOthers(t *testing.T) {
	for name, names := range map[string]func(i int) string{
		"many":          func(i int) string { return fmt.Sprint("other", i) },
		"bob":           func(int) string { return bob.Name },
		"many accounts": func(i int) string { return fmt.Sprint("system:serviceaccount:mine:", i) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &accesstest.API{}
				api.Delay(time.Second)
				a := New(Options{Reviewer: api, Proposer: &proposals{}})
				ctx, cancel := context.WithCancel(t.Context())
				if name != "many accounts" { // they ask by themselves
					ctx = access.AskedBy(ctx, jane.Name)
				}
				for i := range 1000 {
					other := *bob
					other.Name = names(i)
					go func() {
						_, _ = a.Allowed(ctx, &other, access.Attributes{Verb: "get", Resource: "pods", Name: fmt.Sprint(i)})
					}()
				}
				synctest.Wait()
				began := time.Now()
				for i := range 2 { // also what she has asked about
					if _, err := a.Allowed(t.Context(), bob, access.Attributes{Verb: "get", Resource: "pods", Name: fmt.Sprint(998 + i)}); err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("answered after %v", took)
				}
				cancel()
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestTooMany: a request that takes too many questions is told so, and none is asked
// about its places.
func TestTooMany(t *testing.T) {
	var u user.Info = jane
	api := &accesstest.API{}
	var many []string
	var places []access.Place
	for i := range maxAsked + 1 {
		many = append(many, fmt.Sprint("n", i))
		places = append(places, access.Place{Namespace: many[i]})
	}
	for name, c := range map[string]struct {
		proposed cache.Scope
		named    access.Named
	}{
		"named":    {named: access.Named{Only: true, Places: places[:maxNamed+1]}},
		"proposed": {proposed: cache.NewScope(many, nil)},
	} {
		a := New(Options{Reviewer: api, Proposer: &proposals{scope: c.proposed}})
		_, _, err := a.Scope(t.Context(), u, cache.List, pods, c.named)
		if _, ok := errors.AsType[*access.TooManyError](err); !ok || len(api.Asked()) > 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

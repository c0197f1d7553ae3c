package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func pagedStore(t testing.TB, n int, opts StoreOptions) *Store {
	s, err := NewStore(thingSpec, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var objs []*Object
	for i := range n {
		objs = append(objs, decodeSimple(t, s, "a", fmt.Sprintf("x%03d", i), i+1))
	}
	s.Replace("", objs, "1000")
	return s
}

// TestPages: all pages are of the first one's version, whatever happens
// meanwhile, and each can be asked for again.
func TestPages(t *testing.T) {
	ctx := context.Background()
	s := pagedStore(t, 25, StoreOptions{})
	q := Query{Namespaces: []string{"a"}}
	want, err := s.Select(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	var got []*Object
	token := ""
	for page := 0; ; page++ {
		p, err := s.Page(ctx, q, 10, token)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Page(ctx, q, 10, token)
		if err != nil || token != "" && !slices.Equal(p.Objects, again.Objects) {
			t.Fatalf("page %d asked for again differs (%v)", page, err)
		}
		got = append(got, p.Objects...)
		if p.Version != "1000" && token != "" {
			t.Errorf("page %d is of version %s, want 1000", page, p.Version)
		}
		if p.Remaining != 25-len(got) {
			t.Errorf("page %d: %d remain, want %d", page, p.Remaining, 25-len(got))
		}
		if token = p.Continue; token == "" {
			break
		}
		s.Apply("", Deleted, decodeSimple(t, s, "a", fmt.Sprintf("x%03d", 12+page), 1001+page))
		s.Apply("", Added, decodeSimple(t, s, "a", fmt.Sprintf("x%03d-new", page), 1100+page))
	}
	if !slices.Equal(got, want.Objects) {
		t.Errorf("the pages give %v, want %v", keysOf(got), keysOf(want.Objects))
	}
}

func TestPageTokens(t *testing.T) {
	ctx := context.Background()
	s := pagedStore(t, 25, StoreOptions{})
	first, err := s.Page(ctx, Query{}, 10, "")
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewStore(Spec{Resource: Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "others"}}}, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	restarted := pagedStore(t, 25, StoreOptions{})
	for name, c := range map[string]struct {
		store *Store
		query Query
		token string
		want  error
	}{
		"garbage":         {s, Query{}, "!!", errToken},
		"no token":        {s, Query{}, "e30", nil},
		"another query":   {s, Query{Namespaces: []string{"a"}}, first.Continue, nil},
		"another store":   {other, Query{}, first.Continue, nil},
		"another process": {restarted, Query{}, first.Continue, ErrExpired},
	} {
		_, err := c.store.Page(ctx, c.query, 10, c.token)
		var invalid *InvalidError
		switch {
		case c.want == nil && (!errors.As(err, &invalid) || invalid.Parameter != "continue"):
			t.Errorf("%s: %v, want an InvalidError", name, err)
		case c.want != nil && !errors.Is(err, c.want):
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if all, err := s.Page(ctx, Query{}, 0, ""); err != nil || len(all.Objects) != 25 || all.Continue != "" {
		t.Errorf("a page without limit has %d objects, token %q (%v)", len(all.Objects), all.Continue, err)
	}
	if rest, err := s.Page(ctx, Query{}, 0, first.Continue); err != nil || len(rest.Objects) != 15 {
		t.Errorf("the rest without limit has %d objects (%v)", len(rest.Objects), err)
	}
}

// TestCursorsExpire: a list that nobody comes back for does not keep its objects.
func TestCursorsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pagedStore(t, 25, StoreOptions{})
		check := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			s.pager.mu.Lock()
			defer s.pager.mu.Unlock()
			if got := len(s.pager.byID); got != want || s.pager.objects != 25*want || want == 0 && len(s.pager.owned) > 0 {
				t.Errorf("%d lists of %d objects, want %d lists", got, s.pager.objects, want)
			}
		}
		page := func(token string) string {
			t.Helper()
			p, err := s.Page(t.Context(), Query{}, 10, token)
			if err != nil {
				t.Fatal(err)
			}
			return p.Continue
		}
		first := page("")
		check(2*time.Minute, 1)
		page("")
		check(time.Minute, 2)
		page(first)
		check(3*time.Minute, 2)
		check(time.Minute, 1) // the second was not used for five minutes
		check(time.Minute, 0)
		page("")
		check(4*time.Minute, 1)
		check(time.Minute, 0)
	})
}

func TestCursorBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		open := func(s *Store) string {
			p, err := s.Page(ctx, Query{}, 10, "")
			if err != nil {
				t.Fatal(err)
			}
			return p.Continue
		}
		alive := func(s *Store, token string) bool {
			_, err := s.Page(ctx, Query{}, 10, token)
			if err != nil && !errors.Is(err, ErrExpired) {
				t.Fatal(err)
			}
			return err == nil
		}
		s := pagedStore(t, 25, StoreOptions{Cursors: 2})
		a, b := open(s), open(s)
		if !alive(s, a) {
			t.Error("the first of two cursors is gone")
		}
		c := open(s)
		if alive(s, b) || !alive(s, a) || !alive(s, c) {
			t.Error("of three cursors the one used least recently should be gone")
		}
		time.Sleep(4 * time.Minute)
		alive(s, a)
		time.Sleep(4 * time.Minute)
		if !alive(s, a) || alive(s, c) {
			t.Error("a cursor lives five minutes from its last use")
		}
		s = pagedStore(t, 25, StoreOptions{CursorObjects: 40})
		a, b = open(s), open(s)
		if alive(s, a) || !alive(s, b) {
			t.Error("cursors exceed their objects")
		}
		s = pagedStore(t, 25, StoreOptions{CursorObjects: 10})
		if a = open(s); !alive(s, a) {
			t.Error("the only cursor is gone although its token was just given")
		}
		if strings.ContainsAny(a, "+/=") {
			t.Errorf("token %q needs escaping in a URL", a)
		}
	})
}

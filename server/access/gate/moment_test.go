package gate

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
	"github.com/informerd/informerd/server/access/authn"
)

// all are roles that grant everything, as of a version.
type all struct {
	none
	version int64
}

func (a all) Digest() string                                   { return fmt.Sprint("all ", a.version) }
func (all) Scope(cache.Verb, schema.GroupResource) cache.Scope { return cache.WholeScope() }

// TestOneMoment: what one request asks at once is answered as of one moment, with one look at
// the roles; what it asks later, whether that has changed, and another request, as of later ones.
func TestOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, version atomic.Int64
		var revoked atomic.Bool
		roles := func(context.Context, user.Info) (Rights, error) {
			looks.Add(1)
			if revoked.Load() {
				return none{}, nil
			}
			return all{version: version.Load()}, nil
		}
		api := &accesstest.API{}
		api.Token("jane", accesstest.Named("jane"))
		c := &Cluster{Authenticator: authn.New(authn.Options{Tokens: api}), Authorizer: ByRoles{roles}}
		g := New(Options{Clusters: func() []string { return []string{"east"} }, Cluster: func(string) *Cluster { return c }})
		ask := func() access.Asker {
			t.Helper()
			a, err := g.Asker(request("/v1/query?resources=*", "jane"))
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		seesAll := func(a access.Asker) (n int) {
			t.Helper()
			for i := range 60 {
				s, err := a.Scope(t.Context(), "east", cache.List, schema.GroupResource{Resource: fmt.Sprint("kind", i)})
				if err != nil {
					t.Fatal(err)
				}
				if s.Whole() {
					n++
				}
			}
			return n
		}
		generation := func(a access.Asker) uint64 {
			t.Helper()
			n, err := a.Generation(t.Context(), "east")
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		a := ask()
		if n := seesAll(a); n != 60 || looks.Load() != 1 {
			t.Errorf("sees %d of 60 with %d looks at the roles", n, looks.Load())
		}
		first := generation(a)
		version.Add(1) // other roles to the same effect
		if now := generation(a); now != first {
			t.Errorf("generation %d after %d, but nothing is told in another way", now, first)
		}
		revoked.Store(true)
		if n := seesAll(ask()); n != 0 {
			t.Errorf("another request sees %d after all was withdrawn", n)
		}
		if now := generation(a); now == first {
			t.Error("the request is not told that all was withdrawn, at once")
		}
		if n := seesAll(a); n != 0 {
			t.Errorf("it sees %d after it was", n)
		}
		revoked.Store(false)
		time.Sleep(oneMoment)
		if n := seesAll(a); n != 60 {
			t.Errorf("a moment later it sees %d of 60 that were granted again", n)
		}
	})
}

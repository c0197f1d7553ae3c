package rbac

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/informerd/informerd/server/access/rbac/rbactest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster of live resources, and its Grants.
type world struct {
	*rbactest.Cluster
	grants *Grants
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	c := rbactest.NewCluster(tb)
	g := New(c.Followed, Options{})
	tb.Cleanup(g.Close)
	return &world{c, g}
}

// user is one who asks.
type user struct {
	name   string
	groups []string
}

func (u user) GetName() string     { return u.name }
func (u user) GetGroups() []string { return u.groups }

func (w *world) rights(u User) *Rights {
	w.TB.Helper()
	r, err := w.grants.Rights(w.TB.Context(), u)
	if err != nil {
		w.TB.Fatal(err)
	}
	return r
}

var jane = user{name: "jane"}

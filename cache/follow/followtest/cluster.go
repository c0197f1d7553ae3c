// Package followtest has a cluster of real Stores in states that a test chooses,
// for the tests of what follows Stores.
package followtest

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
)

// Resource is a real Store in a state of the test's choice. It is a
// follow.Resource.
type Resource struct {
	State cache.State
	spec  cache.Spec
	opts  cache.StoreOptions
	store *cache.Store
	view  atomic.Pointer[cache.View] // published last
}

// NewResource makes a live resource without objects.
func NewResource(tb testing.TB, spec cache.Spec) *Resource {
	tb.Helper()
	return newResource(tb, spec, cache.StoreOptions{})
}

func newResource(tb testing.TB, spec cache.Spec, opts cache.StoreOptions) *Resource {
	tb.Helper()
	r := &Resource{State: cache.Live, spec: spec, opts: opts}
	r.Renew(tb)
	return r
}

// Renew gives r another, empty Store.
func (r *Resource) Renew(tb testing.TB) {
	tb.Helper()
	store, err := cache.NewStore(r.spec, r.opts)
	if err != nil {
		tb.Fatal(err)
	}
	store.Replace("", nil, "1")
	r.store = store
}

// Spec is what the resource was made with.
func (r *Resource) Spec() cache.Spec { return r.spec }

// Store is the present Store, whatever the state.
func (r *Resource) Store() *cache.Store { return r.store }

// View has the spec, the state and, if that is readable, the Store. It is the same as long
// as these are.
func (r *Resource) View() *cache.View {
	if v := r.view.Load(); v != nil && v.State == r.State && (!r.State.Readable() || v.Store(inside.Cache) == r.store) {
		return v
	}
	v := &cache.View{Spec: r.spec, State: r.State}
	defer r.view.Store(v)
	if r.State.Readable() {
		v.Hold(r.store)
	}
	return v
}

// Cluster is resources whose objects a test writes. Objects are named by their
// resource as in "deployments.apps" and by namespace/name or name.
type Cluster struct {
	TB        testing.TB
	Resources []*Resource
	// Sound is that of the Stores of a kind; nil: of none.
	Sound   func(schema.GroupKind) func(json []byte) bool
	version int
}

// Add makes a live resource without objects.
func (c *Cluster) Add(spec cache.Spec) *Resource {
	c.TB.Helper()
	var opts cache.StoreOptions
	if c.Sound != nil {
		opts.Sound = c.Sound(schema.GroupKind{Group: spec.GVR.Group, Kind: spec.Kind})
	}
	r := newResource(c.TB, spec, opts)
	c.Resources = append(c.Resources, r)
	return r
}

// Resource fails the test if there is none of that name.
func (c *Cluster) Resource(name string) *Resource {
	c.TB.Helper()
	for _, r := range c.Resources {
		if r.spec.Name() == name {
			return r
		}
	}
	c.TB.Fatalf("no resource %s", name)
	return nil
}

// Followed are the resources as an interface that *Resource has.
func Followed[R any](c *Cluster) (all []R) {
	for _, r := range c.Resources {
		all = append(all, any(r).(R))
	}
	return all
}

// Put applies an object of JSON, "" for an empty one, with identity added.
func (c *Cluster) Put(name, id, body string) {
	c.TB.Helper()
	c.Resource(name).store.Apply("", cache.Modified, c.Decode(name, id, body))
}

// Delete deletes an object.
func (c *Cluster) Delete(name, id string) {
	c.TB.Helper()
	c.Apply(cache.Deleted, name, id, map[string]any{})
}

// Apply applies an object, to which it adds identity.
func (c *Cluster) Apply(t cache.EventType, name, id string, o map[string]any) {
	c.TB.Helper()
	c.Resource(name).store.Apply("", t, c.decode(name, id, o))
}

// Decode is Put without applying.
func (c *Cluster) Decode(name, id, body string) *cache.Object {
	c.TB.Helper()
	o := map[string]any{}
	if body != "" {
		if err := json.Unmarshal([]byte(body), &o); err != nil {
			c.TB.Fatalf("%s: %v", body, err)
		}
	}
	return c.decode(name, id, o)
}

func (c *Cluster) decode(name, id string, o map[string]any) *cache.Object {
	c.TB.Helper()
	c.identify(name, id, o)
	raw, err := json.Marshal(o)
	if err != nil {
		c.TB.Fatal(err)
	}
	r := c.Resource(name)
	decoded, err := r.store.Decode(raw, r.spec.GVR.GroupVersion().String(), r.spec.Kind)
	if err != nil {
		c.TB.Fatal(err)
	}
	return decoded
}

// identify adds namespace, name, a new resourceVersion and, unless o has one, the
// UID to the metadata.
func (c *Cluster) identify(name, id string, o map[string]any) {
	meta, _ := o["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	if meta["uid"] == nil {
		meta["uid"] = UID(name, id)
	}
	if namespace, n, ok := strings.Cut(id, "/"); ok {
		meta["namespace"], meta["name"] = namespace, n
	} else {
		meta["name"] = id
	}
	meta["resourceVersion"] = c.NextVersion()
	o["metadata"] = meta
}

// UID is that of an object whose JSON has none.
func UID(name, id string) string { return "uid:" + name + ":" + id }

// NextVersion is a resourceVersion above all before.
func (c *Cluster) NextVersion() string {
	c.version++
	return fmt.Sprint(100 + c.version)
}

// Heap is how many bytes are reachable.
func Heap() uint64 {
	for range 3 { // it takes two to empty a sync.Pool
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

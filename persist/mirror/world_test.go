package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/persist"
	"github.com/informerd/informerd/test/postgres"
)

func TestMain(m *testing.M) {
	// All children are started by one goroutine, which lives as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/informerd/informerd/test/child.startOnLauncher.func1.1"))
}

var podSpec = cache.Spec{
	Resource: cache.Resource{Cluster: "east", GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}, Kind: "Pod", Namespaced: true, Watch: true,
	Redact: []string{"spec.secret"},
}

// world is one copy, as an informer would keep it.
type world struct {
	t     testing.TB
	mu    sync.Mutex // guards all below
	spec  cache.Spec
	state cache.State
	proof time.Time
	store *cache.Store
	// version and objects are what the copy holds.
	version int
	objects map[cache.Key]string // JSON
	// were are, by version, the objects that there were: their keys and resourceVersions.
	were map[string]string
	// objectsOnly: it is not noted what there was.
	objectsOnly bool
}

func newWorld(t testing.TB, spec cache.Spec) *world {
	w := &world{t: t, spec: spec, state: cache.Live, proof: time.Now(), objects: map[cache.Key]string{}, were: map[string]string{}, version: 10000}
	w.copy(spec)
	return w
}

// copy begins another copy, of the same objects, under a rule.
func (w *world) copy(spec cache.Spec) {
	store, err := cache.NewStore(spec, cache.StoreOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.store
	w.spec, w.store = spec, store
	w.replaceLocked()
	if old != nil {
		old.Close()
	}
}

// view is what an informer publishes.
func (w *world) view() *cache.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := &cache.View{Spec: w.spec, State: w.state, Proof: w.proof}
	if w.state.Readable() {
		v.Hold(w.store)
	}
	return v
}

func (w *world) set(state cache.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
}

// object is the JSON of one at a version. extra is more of it, such as ,"a":1
func object(k cache.Key, version int, labels, extra string) string {
	namespace := ""
	if k.Namespace != "" {
		namespace = `"namespace":` + quote(k.Namespace) + `,`
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{%s"name":%s,"uid":"u-%d","resourceVersion":"%d","creationTimestamp":"2026-01-02T03:04:05Z","labels":%s}%s}`,
		namespace, quote(k.Name), version%7, version, labels, extra)
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func (w *world) decode(text string) *cache.Object {
	o, err := w.store.Decode([]byte(text), "v1", "Pod")
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// put changes an object, drop deletes one, relist does several at once, and pass only takes
// the copy to another version.
func (w *world) put(k cache.Key, labels, extra string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	kind := cache.Modified
	if _, ok := w.objects[k]; !ok {
		kind = cache.Added
	}
	w.objects[k] = object(k, w.version, labels, extra)
	w.noteLocked()
	w.store.Apply("", kind, w.decode(w.objects[k]))
}

func (w *world) drop(k cache.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.objects[k]; !ok {
		return
	}
	w.version++
	delete(w.objects, k)
	w.noteLocked()
	w.store.Apply("", cache.Deleted, w.decode(object(k, w.version, "{}", "")))
}

func (w *world) relist(change func(objects map[cache.Key]string, next func() int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w.objects, func() int { w.version++; return w.version })
	w.version++
	w.replaceLocked()
}

func (w *world) replaceLocked() {
	var all []*cache.Object
	for _, k := range slices.SortedFunc(maps.Keys(w.objects), cache.Key.Compare) {
		all = append(all, w.decode(w.objects[k]))
	}
	w.noteLocked()
	w.store.Replace("", all, fmt.Sprint(w.version))
}

func (w *world) pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	w.noteLocked()
	w.store.Bookmark("", fmt.Sprint(w.version))
}

func (w *world) noteLocked() {
	if w.objectsOnly {
		return
	}
	var all []string
	for k, text := range w.objects {
		all = append(all, k.Namespace+"/"+k.Name+"@"+versionOf(text))
	}
	slices.Sort(all)
	w.were[fmt.Sprint(w.version)] = strings.Join(all, " ")
}

// at is what there was at a version.
func (w *world) at(version string) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.were[version]
	return s, ok
}

func versionOf(text string) string {
	_, after, _ := strings.Cut(text, `"resourceVersion":"`)
	v, _, _ := strings.Cut(after, `"`)
	return v
}

// rig is a mirror of worlds in a database.
type rig struct {
	t      testing.TB
	server *postgres.Server
	schema string
	worlds []*world
	log    *slog.Logger

	mu   sync.Mutex
	gone map[string]bool // resources that are certainly not mirrored any more

	rests  atomic.Bool
	tables *persist.Postgres
	mirror *Mirror
	stop   func()
}

var schemas atomic.Int64

func newRig(t testing.TB, s *postgres.Server, worlds ...*world) *rig {
	r := &rig{t: t, server: s, schema: fmt.Sprintf("s%d", schemas.Add(1)), worlds: worlds, gone: map[string]bool{}, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	t.Cleanup(func() {
		if r.stop != nil {
			r.end()
		}
	})
	return r
}

func (r *rig) open() *persist.Postgres {
	r.t.Helper()
	p, err := persist.OpenPostgres(persist.PostgresOptions{URL: r.server.URL(), Schema: r.schema, Log: r.log})
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) newMirror(tables cache.Mirrors) *Mirror {
	return New(Options{
		Tables: tables, Interval: 5 * time.Millisecond, Log: r.log, Rests: r.rests.Load,
		Views: func() (all []*cache.View) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, w := range r.worlds {
				all = append(all, w.view())
			}
			return all
		},
		Gone: func(gone cache.Resource) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.gone[gone.Cluster+"/"+gone.Name()]
		},
	})
}

// begin runs a mirror, end ends it: a restart.
func (r *rig) begin() {
	r.t.Helper()
	r.tables = r.open()
	r.mirror = r.newMirror(r.tables)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.mirror.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run() = %v", err)
		}
		_ = r.tables.Close()
	}
}

// exec runs SQL in the schema.
func (r *rig) exec(query string) {
	r.t.Helper()
	r.server.Exec("SET search_path = " + r.schema + "; " + query)
}

func (r *rig) end() {
	r.stop()
	r.stop = nil
}

// connect is a connection to the database, as somebody who reads has one.
func (r *rig) connect() *pgx.Conn {
	r.t.Helper()
	c, err := pgx.Connect(context.Background(), r.server.URL()+"&search_path="+r.schema)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// seen is what one statement sees of a resource: its version, and its rows.
func seen(c *pgx.Conn, w *world) (version, rows string, objects int, err error) {
	err = c.QueryRow(context.Background(), `SELECT r.resource_version, r.objects, coalesce((SELECT string_agg(o.namespace || '/' || o.name || '@' || o.resource_version, ' '
			ORDER BY (o.namespace || '/' || o.name || '@' || o.resource_version) COLLATE "C") FROM mirror_objects o
			WHERE o.cluster = r.cluster AND o."group" = r."group" AND o.resource = r.resource), '')
		FROM mirror_resources r WHERE r.cluster = $1 AND r."group" = $2 AND r.resource = $3`, w.spec.Cluster, w.spec.GVR.Group, w.spec.GVR.Resource).Scan(&version, &objects, &rows)
	return version, rows, objects, err
}

// settle waits until the mirror is at the version of the copy, and compares row by row.
func (r *rig) settle(w *world) {
	r.t.Helper()
	c := r.connect()
	defer c.Close(context.Background())
	w.mu.Lock()
	want := fmt.Sprint(w.version)
	w.mu.Unlock()
	eventually(r.t, "the mirror is at "+want, func() error {
		version, rows, objects, err := seen(c, w)
		if err != nil || version != want {
			return fmt.Errorf("it is at %q, %v; %+v", version, err, r.mirror.Status())
		}
		if was, _ := w.at(version); rows != was || objects != strings.Count(was, "@") {
			return fmt.Errorf("rows at %s: %d, %s\nwant %s", version, objects, rows, was)
		}
		return nil
	})
	r.compare(c, w)
}

// compare compares each object with its row, as JSON.
func (r *rig) compare(c *pgx.Conn, w *world) {
	r.t.Helper()
	rows, err := c.Query(context.Background(), `SELECT namespace, name, uid, kind, version, object::text, labels::text, created_at FROM mirror_objects
		WHERE cluster = $1 AND "group" = $2 AND resource = $3`, w.spec.Cluster, w.spec.GVR.Group, w.spec.GVR.Resource)
	if err != nil {
		r.t.Fatal(err)
	}
	got := map[string]any{}
	for rows.Next() {
		var namespace, name, uid, kind, version, object, labels string
		var created *time.Time
		if err := rows.Scan(&namespace, &name, &uid, &kind, &version, &object, &labels, &created); err != nil {
			r.t.Fatal(err)
		}
		if kind != w.spec.Kind || version != w.spec.GVR.Version || created == nil || created.UTC().Format(time.RFC3339) != "2026-01-02T03:04:05Z" {
			r.t.Errorf("%s/%s: %s %s of %v", namespace, name, kind, version, created)
		}
		got[namespace+"/"+name+" "+uid] = []any{parse(r.t, object), parse(r.t, labels)}
	}
	if rows.Err() != nil {
		r.t.Fatal(rows.Err())
	}
	want := map[string]any{}
	all, err := w.view().Reader(cache.WholeScope()).Select(context.Background(), cache.Query{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, o := range all.Objects {
		text, err := o.JSON()
		if err != nil {
			r.t.Fatal(err)
		}
		object := asMirrored(parse(r.t, string(text)))
		labels := object.(map[string]any)["metadata"].(map[string]any)["labels"]
		name := strings.ReplaceAll(o.Namespace()+"/"+o.Name()+" "+o.UID(), "\x00", "\uFFFD")
		want[name] = []any{object, labels}
	}
	if !reflect.DeepEqual(want, got) { // which is a hundred times faster than to find out how
		r.t.Errorf("rows (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// asMirrored is a value of JSON without zero bytes.
func asMirrored(v any) any {
	text := func(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		for i := range v {
			v[i] = asMirrored(v[i])
		}
	case map[string]any:
		next := map[string]any{}
		for key, value := range v {
			next[text(key)] = asMirrored(value)
		}
		return next
	}
	return v
}

func parse(t testing.TB, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, is func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err = is(); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s: %v", what, err)
		}
	}
}

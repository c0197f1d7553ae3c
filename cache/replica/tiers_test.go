package replica

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/internal/inside"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/kubeapi"
)

// tiers are two factories: the API server of the second is what the first serves. They
// run in a bubble, the first on a liar.
type tiers struct {
	t       *testing.T
	l       *liar
	options Options // of the first
	specs   []cache.Spec
	first   *deceived
	second  *Factory
	records *records // of the second

	mu    sync.Mutex // guards all below
	api   *kubeapi.API
	stop  context.CancelFunc
	conns map[net.Conn]struct{}
	dials chan net.Conn
	ended chan struct{}
}

// twoTiers has both live.
func twoTiers(t *testing.T, l *liar, options Options) *tiers {
	t.Helper()
	namespaces := specOf("namespaces")
	namespaces.Namespaced = false
	tt := &tiers{
		t: t, l: l, options: options, specs: []cache.Spec{specOf("pods"), specOf("r1"), namespaces},
		records: &records{}, conns: map[net.Conn]struct{}{}, dials: make(chan net.Conn), ended: make(chan struct{}),
	}
	l.putIn("namespaces", "/kube-system", "1", func(o *fakeObject) { o.uid, o.version = l.uid, 1 })
	tt.start()
	serving := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(tt.serve), ReadHeaderTimeout: time.Hour}
	go func() { defer close(serving); _ = server.Serve(tt) }()
	t.Cleanup(func() {
		tt.kill()
		_ = server.Close()
		<-serving
	})
	tt.first.becomes(time.Minute, cache.Live)
	tt.second = NewFactory(Options{Log: slog.New(slog.NewTextHandler(tt.records, &slog.HandlerOptions{Level: slog.LevelInfo}))})
	if err := tt.second.Apply("c", tt.specs); err != nil {
		t.Fatal(err)
	}
	if err := tt.second.Connect("c", ClusterConfig{REST: &rest.Config{Host: "http://first", Dial: tt.dial}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tt.second.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	tt.live(time.Minute)
	return tt
}

// start starts the first.
func (tt *tiers) start() {
	tt.first = deceive(tt.t, tt.l, tt.options, tt.specs...)
	stopping, stop := context.WithCancel(context.Background())
	api := kubeapi.New(kubeapi.Options{
		Caches:   tierCaches{tt.first.Factory},
		Upstream: func(string) kubeapi.Upstream { return tierUpstream{tt, stopping} },
		Admit:    func(context.Context, kubeapi.Class) (func(), error) { return func() {}, nil },
		Freshness: func(h http.Header, view *cache.View, version string) {
			h.Set(cache.StateHeader, string(view.Aged().State))
			if age, known := view.Age(); known {
				h.Set(cache.AgeHeader, strconv.FormatFloat(age.Seconds(), 'f', 3, 64))
			}
		},
		Stopping: stopping,
	})
	tt.mu.Lock()
	tt.api, tt.stop = api, stop
	tt.mu.Unlock()
}

// kill ends the first and its connections.
func (tt *tiers) kill() {
	tt.mu.Lock()
	if tt.api != nil {
		tt.stop()
	}
	tt.api = nil
	for c := range tt.conns {
		_ = c.Close()
	}
	clear(tt.conns)
	tt.mu.Unlock()
	tt.first.stop()
}

func (tt *tiers) dial(context.Context, string, string) (net.Conn, error) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if tt.api == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	client, server := net.Pipe()
	tt.conns[server] = struct{}{}
	go func() {
		select {
		case tt.dials <- server:
		case <-tt.ended:
			_ = server.Close()
		}
	}()
	return client, nil
}

// Accept, Close and Addr make a listener of it.
func (tt *tiers) Accept() (net.Conn, error) {
	select {
	case c := <-tt.dials:
		return c, nil
	case <-tt.ended:
		return nil, net.ErrClosed
	}
}

func (tt *tiers) Close() error {
	select {
	case <-tt.ended:
	default:
		close(tt.ended)
	}
	return nil
}

func (tt *tiers) Addr() net.Addr { return &net.UnixAddr{Name: "first"} }

// serve renders errors as the server does.
func (tt *tiers) serve(w http.ResponseWriter, r *http.Request) {
	tt.mu.Lock()
	api := tt.api
	tt.mu.Unlock()
	if api == nil {
		panic(http.ErrAbortHandler)
	}
	err := api.Serve(w, r.WithContext(access.With(r.Context(), access.Everyone())))
	status := apierrors.NewServiceUnavailable("the first is stopping")
	switch {
	case err == nil:
	case errors.As(err, new(*kubeapi.CutError)):
		panic(http.ErrAbortHandler)
	default:
		errors.As(err, &status)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.ErrStatus.Code))
		status.ErrStatus.Kind, status.ErrStatus.APIVersion = "Status", "v1"
		_ = json.NewEncoder(w).Encode(status.ErrStatus)
	}
}

// live waits until all of the second is.
func (tt *tiers) live(limit time.Duration) {
	tt.t.Helper()
	within(tt.t, limit, "the second tier live", func() bool { return tt.worst() == "" })
}

// worst names a resource of the second that is not live.
func (tt *tiers) worst() string {
	for _, i := range tt.second.Informers() {
		if v := i.View(); v.State != cache.Live {
			return i.Spec().Name() + " " + string(v.State) + ": " + v.Reason
		}
	}
	return ""
}

// unmoved fails if the second has listed anything again, or put a store in the place of
// another, since the given.
func (tt *tiers) unmoved(before map[cache.Resource]*cache.Store, relists uint64) {
	tt.t.Helper()
	stores, now := tt.stores()
	for r, store := range before {
		if stores[r] != store {
			tt.t.Errorf("the copy of %s was replaced: %s", r, tt.records.lines)
		}
	}
	if now != relists {
		tt.t.Errorf("the second tier listed %d times", now-relists)
	}
}

func (tt *tiers) stores() (stores map[cache.Resource]*cache.Store, relists uint64) {
	stores = map[cache.Resource]*cache.Store{}
	for _, i := range tt.second.Informers() {
		stores[i.Spec().Resource] = i.View().Store(inside.Cache)
		relists += i.Status().Relists
	}
	return stores, relists
}

// tierCaches are a factory as a server sees it.
type tierCaches struct{ *Factory }

func (c tierCaches) Resource(r cache.Resource) (kubeapi.Resource, bool) {
	i, err := c.Informer(r)
	return i, err == nil
}

func (c tierCaches) Resources() (all []kubeapi.Resource) {
	for _, i := range c.Informers() {
		all = append(all, i)
	}
	return all
}

// tierUpstream is the liar as the first's server asks it.
type tierUpstream struct {
	*tiers
	stopping context.Context
}

// dial reaches the liar until the first stops.
func (u tierUpstream) dial(ctx context.Context, network, address string) (net.Conn, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopping.Err() != nil {
		return nil, u.stopping.Err()
	}
	return u.l.dial(ctx, network, address)
}

func (u tierUpstream) Get(ctx context.Context, uri string, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://liar"+uri, nil)
	if err != nil {
		return nil, err
	}
	r.Header = header
	return (&http.Transport{DialContext: u.dial, DisableKeepAlives: true}).RoundTrip(r)
}

func (u tierUpstream) Passthrough() (*url.URL, http.RoundTripper) { return nil, nil }

// TestSecondTierStaysLive: whenever the bookmarks of the two tiers come, a second tier
// is as current as the first, also where nothing at all is written.
func TestSecondTierStaysLive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		l.put("p0", "1")
		tt := twoTiers(t, l, Options{Snapshots: newMemory()})
		stores, relists := tt.stores()
		for _, down := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, 2 * time.Minute} {
			tt.kill()
			time.Sleep(down)
			l.each(func(m *member) { m.mute = true })
			tt.start()
			time.Sleep(10 * time.Second) // the second is told of what the snapshot proves
			l.each(func(m *member) { m.mute = false })
			tt.first.becomes(10*time.Second, cache.Live)
			tt.live(5 * time.Second)
			for range 300 {
				time.Sleep(time.Second)
				if worst := tt.worst(); worst != "" {
					t.Fatalf("after %v without the first: %s", down, worst)
				}
			}
		}
		tt.unmoved(stores, relists)
	})
}

// TestSecondTierWaitsForTheFirst: killed and started again, the first is behind what it
// told before, for as long as its API server does not answer, or is slow. It is waited
// for: nothing is listed for that, and no copy or watch of the second tier ends.
func TestSecondTierWaitsForTheFirst(t *testing.T) {
	for name, hold := range map[string]func(l *liar, on bool){
		"the API server is away": func(l *liar, on bool) {
			l.do(func() { l.refusing = on })
			l.hangUp()
		},
		"its watches are slow": func(l *liar, on bool) {
			l.each(func(m *member) { m.slow = 0 })
			if on {
				l.each(func(m *member) { m.slow = 20 * time.Second })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l, db := newLiar(1), newMemory()
				for _, name := range numbered("p", 12) {
					l.put(name, "1")
				}
				tt := twoTiers(t, l, Options{Snapshots: db})
				time.Sleep(5 * time.Second)
				db.failing(errors.New("disk full")) // what is saved is from before the kill
				l.put("p0", "2")
				l.put("new", "1")
				l.delete("p1")
				l.putIn("namespaces", "/another", "1")
				tt.equal(10 * time.Second)
				time.Sleep(70 * time.Second) // all is told by bookmarks
				stores, relists := tt.stores()
				hold(l, true)
				tt.kill()
				db.failing(nil)
				tt.start()
				time.Sleep(30 * time.Second)
				tt.unmoved(stores, relists)
				hold(l, false)
				tt.first.becomes(time.Minute, cache.Live)
				tt.live(15 * time.Second)
				tt.equal(0)
				tt.unmoved(stores, relists)
			})
		})
	}
}

// TestSecondTierFindsTheRestore: etcd is restored from a backup while the first is down,
// and the first has no snapshot of before: the second finds out by itself.
func TestSecondTierFindsTheRestore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		for _, name := range numbered("p", 12) {
			l.put(name, "1")
		}
		tt := twoTiers(t, l, Options{})
		backup := l.backup()
		l.put("p0", "lost")
		l.put("new", "lost")
		l.delete("p1")
		tt.equal(10 * time.Second)
		stores, _ := tt.stores()
		tt.kill()
		l.restore(backup)
		l.restart()
		tt.start()
		tt.first.becomes(time.Minute, cache.Live)
		tt.equal(time.Minute)
		tt.live(30 * time.Second)
		if now, _ := tt.stores(); now[specOf("pods").Resource] == stores[specOf("pods").Resource] {
			t.Error("the copy of another history was not replaced")
		}
	})
}

// TestBehindLeavesNoWatch: a streaming list of a first tier that is behind is given up
// with its watch, each time that it is tried.
func TestBehindLeavesNoWatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, db := newLiar(1), newMemory()
		l.each(func(m *member) { m.gitVersion = "v1.31.0" }) // which is listed by streaming
		l.put("p0", "1")
		tt := twoTiers(t, l, Options{Snapshots: db})
		time.Sleep(5 * time.Second)
		tt.kill()
		l.do(func() { l.refusing = true })
		l.hangUp()
		tt.start()
		time.Sleep(5 * time.Second)
		second := tt.cluster()
		second.rewritten(second.presentHistory(), errRewritten)
		time.Sleep(2 * time.Minute)
		if n := tt.first.pods().Status().Subscribers; n > 2 {
			t.Errorf("%d watches at the first tier", n)
		}
		l.do(func() { l.refusing = false })
		tt.equal(time.Minute)
		tt.live(30 * time.Second)
	})
}

// cluster is that of the second.
func (tt *tiers) cluster() *cluster {
	tt.t.Helper()
	c, err := tt.second.cluster("c")
	if err != nil {
		tt.t.Fatal(err)
	}
	return c
}

// equal waits until the pods of the second are those of etcd.
func (tt *tiers) equal(limit time.Duration) {
	tt.t.Helper()
	within(tt.t, limit, "the second tier equal", func() bool {
		i, err := tt.second.Informer(specOf("pods").Resource)
		return err == nil && i.View().Readable() && maps.Equal(tt.l.truth("pods"), held(i.View().Store(inside.Cache)))
	})
}

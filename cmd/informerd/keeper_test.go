package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/discovery"
)

// fakeCaches records what a keeper tells its factory.
type fakeCaches struct {
	applied     chan []cache.Spec
	saved       chan []cache.Spec // applied of a snapshot
	connected   chan string
	unreachable chan string
	reachable   bool
	uid         string
}

func newFakeCaches() *fakeCaches {
	return &fakeCaches{
		applied: make(chan []cache.Spec, 100), saved: make(chan []cache.Spec, 100), connected: make(chan string, 100), unreachable: make(chan string, 100),
		reachable: true,
	}
}

func (f *fakeCaches) Apply(_ string, specs []cache.Spec) error { f.applied <- specs; return nil }
func (f *fakeCaches) ApplySaved(_ string, specs []cache.Spec) error {
	f.saved <- specs
	return nil
}

func (f *fakeCaches) Unreachable(_ string, err error) { f.unreachable <- err.Error() }
func (f *fakeCaches) Clusters() []cache.ClusterStatus {
	return []cache.ClusterStatus{{Name: "c", Reachable: f.reachable, UID: f.uid}}
}

func (f *fakeCaches) Connect(_ string, c replica.ClusterConfig) error {
	f.connected <- c.REST.Host
	return nil
}

func receive[T any](t *testing.T, from chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing happens")
		panic("unreachable")
	}
}

// names are the specs in short: "pods.v1" or "-pods.v1" if unwatched.
func names(specs []cache.Spec) string {
	var all []string
	for _, s := range specs {
		name := strings.TrimSuffix(s.GVR.Resource+"."+s.GVR.Version+"."+s.GVR.Group, ".")
		if !s.Watch {
			name = "-" + name
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

func startKeeper(t *testing.T, f caches, kubeconfig, rules string, saved ...cache.Saved) (*keeper, *lines) {
	t.Helper()
	r, log := warmKeeper(t, f, kubeconfig, rules, saved...)
	runKeeper(t, r)
	return r, log
}

// warmKeeper knows a snapshot and does not run.
func warmKeeper(t *testing.T, f caches, kubeconfig, rules string, saved ...cache.Saved) (*keeper, *lines) {
	t.Helper()
	log := newLines()
	c := config.Cluster{Name: "c", Kubeconfig: kubeconfig}
	r := newKeeper(c, rulesOf(t, rules), f, slog.New(slog.NewTextHandler(log, nil)))
	r.poll = 10 * time.Millisecond
	if err := r.warm(saved); err != nil {
		t.Fatal(err)
	}
	return r, log
}

func runKeeper(t *testing.T, r *keeper) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
}

func rulesOf(t *testing.T, rules string) []config.Rule {
	t.Helper()
	c, err := config.Parse("rules", []byte("resources: "+rules))
	if err != nil {
		t.Fatal(err)
	}
	return c.Resources
}

func savedOf(cluster, resource, version string) cache.Saved {
	gvr := schema.GroupVersionResource{Version: version, Resource: resource}
	return cache.Saved{Spec: cache.Spec{Resource: cache.Resource{Cluster: cluster, GVR: gvr}}}
}

const everything = `[{match: [leases.coordination.k8s.io], watch: false}, {match: ["*"]}]`

// What the snapshot knows is served before the cluster is reached, and goes when
// discovery succeeds without it.
func TestReplicaStartsWarm(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1", "coordination.k8s.io Lease leases v1")
	f := newFakeCaches()
	r, _ := warmKeeper(t, f, kubeconfigFor(t, t.TempDir()+"/k", api.URL), everything,
		savedOf("c", "pods", "v1"), savedOf("c", "zebras", "v1"), savedOf("other", "nodes", "v1"))
	if got := names(receive(t, f.saved)); got != "pods.v1 zebras.v1" {
		t.Errorf("applied from the snapshot: %s", got)
	}
	if r.isDiscovered() {
		t.Error("discovered before the cluster answered")
	}
	runKeeper(t, r)
	if got := names(receive(t, f.applied)); got != "pods.v1 -leases.v1.coordination.k8s.io" {
		t.Errorf("applied from discovery: %s", got)
	}
	receive(t, r.discovered)
}

// Without a snapshot nothing is applied before discovery: an empty set would say
// that everything is gone.
func TestReplicaStartsCold(t *testing.T) {
	f := newFakeCaches()
	startKeeper(t, f, t.TempDir()+"/none", everything)
	receive(t, f.unreachable)
	select {
	case specs := <-f.applied:
		t.Errorf("applied %s", names(specs))
	case specs := <-f.saved:
		t.Errorf("applied %s of a snapshot that is not there", names(specs))
	default:
	}
}

// Rules that change before discovery concern what a snapshot knows, if anything.
func TestReplicaFollowsRulesBeforeDiscovery(t *testing.T) {
	f := newFakeCaches()
	r := newKeeper(config.Cluster{Name: "c"}, rulesOf(t, everything), f, slog.New(slog.DiscardHandler))
	r.setRules(rulesOf(t, `[{match: [pods]}]`))
	r.plan()
	if len(f.applied)+len(f.saved) > 0 {
		t.Error("a set was applied while nothing is known")
	}
	if err := r.warm([]cache.Saved{savedOf("c", "pods", "v1"), savedOf("c", "zebras", "v1")}); err != nil {
		t.Fatal(err)
	}
	receive(t, f.saved)
	r.plan()
	if got := names(receive(t, f.saved)); got != "pods.v1 -zebras.v1" || len(f.applied) > 0 {
		t.Errorf("applied of the snapshot: %s, and %d sets as if they were all", got, len(f.applied))
	}
}

func TestReplicaFollowsRules(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1", "apps Deployment deployments v2,v1")
	f := newFakeCaches()
	r, _ := startKeeper(t, f, kubeconfigFor(t, t.TempDir()+"/k", api.URL), everything)
	if got := names(receive(t, f.applied)); got != "pods.v1 deployments.v2.apps" {
		t.Errorf("applied: %s", got)
	}
	r.setRules(rulesOf(t, `[{match: [pods]}]`))
	if got := names(receive(t, f.applied)); got != "pods.v1 -deployments.v2.apps" {
		t.Errorf("applied after a change of rules: %s", got)
	}
	// A pin takes effect with the next set.
	r.setRules(rulesOf(t, `[{match: ["*.v1.apps"]}]`))
	for got := ""; got != "-pods.v1 deployments.v1.apps"; {
		got = names(receive(t, f.applied))
	}
}

// The preferred version of what a glob pins is never synced.
func TestReplicaPinsBeforeItApplies(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1", "apps Deployment deployments v2,v1")
	f := newFakeCaches()
	startKeeper(t, f, kubeconfigFor(t, t.TempDir()+"/k", api.URL), `[{match: ["*.v1.apps"]}]`)
	if got := names(receive(t, f.applied)); got != "-pods.v1 deployments.v1.apps" {
		t.Errorf("applied first: %s", got)
	}
}

// A kubeconfig that is missing or wrong is tried until it works, each trouble
// said once.
func TestReplicaAwaitsKubeconfig(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1")
	f := newFakeCaches()
	path := t.TempDir() + "/k"
	_, log := startKeeper(t, f, path, everything)
	for range 3 {
		if got := receive(t, f.unreachable); !strings.Contains(got, "no such file") {
			t.Errorf("unreachable: %s", got)
		}
	}
	writeFile(t, path, "clusters: 3")
	log.await(t, "cannot unmarshal")
	kubeconfigFor(t, path+"~", api.URL)
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, f.connected); got != api.URL {
		t.Errorf("connected to %s", got)
	}
	if got := names(receive(t, f.applied)); got != "pods.v1" {
		t.Errorf("applied: %s", got)
	}
	if n := strings.Count(log.String(), "no such file"); n != 1 {
		t.Errorf("said %d times that the kubeconfig is missing:\n%s", n, log)
	}
}

// A kubeconfig that is mended while its cluster does not answer is used.
func TestReplicaFollowsKubeconfig(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1")
	f := newFakeCaches()
	f.reachable = false
	path := kubeconfigFor(t, t.TempDir()+"/k", "http://127.0.0.1:1")
	startKeeper(t, f, path, everything)
	if got := receive(t, f.connected); got != "http://127.0.0.1:1" {
		t.Errorf("connected to %s", got)
	}
	kubeconfigFor(t, path, api.URL)
	if got := receive(t, f.connected); got != api.URL {
		t.Errorf("connected to %s", got)
	}
	if got := names(receive(t, f.applied)); got != "pods.v1" {
		t.Errorf("applied: %s", got)
	}
}

// While the cluster answers, its kubeconfig may change without effect.
func TestReplicaKeepsItsCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disco, err := discovery.New(discovery.Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}})
		if err != nil {
			t.Fatal(err)
		}
		f := newFakeCaches()
		r := newKeeper(config.Cluster{Name: "c"}, nil, f, slog.New(slog.DiscardHandler))
		r.load = func(config.Cluster) (*access, error) { return &access{content: "new"}, nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := r.watchAccess(ctx, &access{content: "old"}, disco); err != nil {
			t.Errorf("watchAccess() = %v while the cluster answers", err)
		}
		f.reachable = false
		if _, err := r.watchAccess(t.Context(), &access{content: "old"}, disco); err != errAccessChanged {
			t.Errorf("watchAccess() = %v when it does not", err)
		}
	})
}

// What a group that does not answer served before is not gone.
func TestReplicaKeepsUnknown(t *testing.T) {
	f := newFakeCaches()
	r := newKeeper(config.Cluster{Name: "c"}, rulesOf(t, everything), f, slog.New(slog.DiscardHandler))
	if err := r.warm([]cache.Saved{savedOf("c", "pods", "v1")}); err != nil {
		t.Fatal(err)
	}
	receive(t, f.saved)
	r.setDiscovered(discovery.Set{Failed: map[schema.GroupVersion]error{{Version: "v1"}: errors.New("503")}})
	r.plan()
	if got := names(receive(t, f.applied)); got != "pods.v1" {
		t.Errorf("applied while unknown: %s", got)
	}
	r.setDiscovered(discovery.Set{})
	r.plan()
	if got := receive(t, f.applied); len(got) != 0 {
		t.Errorf("applied when gone: %s", names(got))
	}
}

// TestKeeperKeepsWhatRuns: a kubeconfig that parses and cannot be used, or is only half
// there a moment later, ends nothing that runs.
func TestKeeperKeepsWhatRuns(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1")
	for name, change := range map[string]func(path string, r *keeper){
		"its authority is no certificate": func(path string, _ *keeper) {
			write(t, path, `apiVersion: v1
kind: Config
current-context: ctx
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", certificate-authority-data: Z2FyYmFnZQ==}}]
contexts: [{name: ctx, context: {cluster: c}}]
`)
		},
		"it leads to nobody": func(path string, _ *keeper) { kubeconfigFor(t, path, "http://127.0.0.1:1") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeCaches()
			f.uid = "1"
			path := kubeconfigFor(t, t.TempDir()+"/k", api.URL)
			log := newLines()
			r := newKeeper(config.Cluster{Name: "c", Kubeconfig: path, Follows: true}, rulesOf(t, everything), f, slog.New(slog.NewTextHandler(log, nil)))
			r.poll = 10 * time.Millisecond
			r.identify = func(ctx context.Context, c replica.ClusterConfig) (string, error) {
				if strings.HasPrefix(c.REST.Host, api.URL) {
					return "1", nil
				}
				return replica.Identify(ctx, c)
			}
			runKeeper(t, r)
			receive(t, f.connected)
			receive(t, f.applied)
			change(path, r)
			log.await(t, "going on with the one before")
			kubeconfigFor(t, path, api.URL+"/")
			if got := receive(t, f.connected); got != api.URL+"/" && got != api.URL {
				t.Errorf("connected to %s", got)
			}
			select {
			case err := <-f.unreachable:
				t.Errorf("told unreachable: %s", err)
			default:
			}
		})
	}
}

// TestKeeperMovesOnce: a keeper that is told to look how its cluster is reached connects anew
// when that is another way, and once, however often it is told.
func TestKeeperMovesOnce(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1")
	f := newFakeCaches()
	path := kubeconfigFor(t, t.TempDir()+"/k", api.URL)
	r, _ := warmKeeper(t, f, path, everything)
	var looked atomic.Int64
	r.load = func(c config.Cluster) (*access, error) {
		looked.Add(1)
		return loadAccess(c)
	}
	look := func() {
		t.Helper()
		before := looked.Load()
		r.move()
		for deadline := time.Now().Add(patience); looked.Load() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it does not look")
			}
		}
	}
	r.move() // as it is by those who find out who leads while it begins
	runKeeper(t, r)
	receive(t, f.connected)
	receive(t, f.applied)
	look()
	look()
	c := r.reached()
	c.Namespaces = []string{"shop"}
	r.setCluster(c)
	receive(t, f.connected)
	for range 3 { // it has acted on what it found when it looks for the next time
		look()
	}
	select {
	case <-f.connected:
		t.Error("it connected again the same way")
	default:
	}
}

// TestKeeperReadsOnce: a kubeconfig is read again when something of its file has changed, and
// not before.
func TestKeeperReadsOnce(t *testing.T) {
	api := newFakeAPI(t, "- Pod pods v1")
	f := newFakeCaches()
	path := kubeconfigFor(t, t.TempDir()+"/k", api.URL)
	r := newKeeper(config.Cluster{Name: "c", Kubeconfig: path, Follows: true}, rulesOf(t, everything), f, slog.New(slog.DiscardHandler))
	r.poll = 5 * time.Millisecond
	var read atomic.Int64
	r.load = func(c config.Cluster) (*access, error) {
		read.Add(1)
		return loadAccess(c)
	}
	runKeeper(t, r)
	receive(t, f.connected)
	receive(t, f.applied)
	time.Sleep(50 * r.poll)
	if n := read.Load(); n != 1 {
		t.Errorf("it was read %d times", n)
	}
	kubeconfigFor(t, path, api.URL+"/")
	receive(t, f.connected)
	if n := read.Load(); n < 2 {
		t.Errorf("it was read %d times, and has changed", n)
	}
	n := read.Load()
	if time.Sleep(50 * r.poll); read.Load() != n {
		t.Errorf("it was read %d times again, and has not changed since", read.Load()-n)
	}
}

// TestKeeperJudges: what proves that a kubeconfig leads to another cluster.
func TestKeeperJudges(t *testing.T) {
	here, there := access{}, access{}
	here.REST, there.REST = &rest.Config{Host: "https://a"}, &rest.Config{Host: "https://b"}
	sni := access{}
	sni.REST = &rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{ServerName: "b"}}
	failed := errors.New("403")
	for _, c := range []struct {
		held, found string
		failure     error
		to          *access
		want        error
	}{
		{"", "2", nil, &there, nil}, // nothing is held
		{"1", "1", nil, &there, nil},
		{"1", "2", nil, &here, errOtherCluster},
		{"1", "address:a", nil, &here, nil}, // a right that comes later
		{"1", "address:b", nil, &there, errOtherCluster},
		{"address:a", "1", nil, &here, nil},
		{"address:a", "1", nil, &there, errOtherCluster},
		{"address:a", "address:a", nil, &here, nil},
		{"address:a", "address:a", nil, &sni, errOtherCluster},
		{"1", "", failed, &here, failed},
	} {
		f := newFakeCaches()
		f.uid = c.held
		r := newKeeper(config.Cluster{Name: "c"}, nil, f, slog.New(slog.DiscardHandler))
		r.identify = func(context.Context, replica.ClusterConfig) (string, error) { return c.found, c.failure }
		if err := r.check(t.Context(), &here, c.to); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("held %q, found %q at %s: %v, want %v", c.held, c.found, c.to.REST.Host, err, c.want)
		}
	}
}

// TestRejectedIsLeftAlone: a kubeconfig that does not work is tried ever more seldom, with
// the same plugin.
func TestRejectedIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disco, err := discovery.New(discovery.Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}})
		if err != nil {
			t.Fatal(err)
		}
		f := newFakeCaches()
		f.uid = "1"
		r := newKeeper(config.Cluster{Name: "c", Follows: true}, nil, f, slog.New(slog.DiscardHandler))
		began, n := time.Now(), 0
		r.load = func(config.Cluster) (*access, error) {
			return &access{content: fmt.Sprint("changed ", time.Since(began) > 30*time.Minute)}, nil
		}
		r.identify = func(context.Context, replica.ClusterConfig) (string, error) { n++; return "", errors.New("no") }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := r.watchAccess(ctx, &access{content: "old"}, disco); err != nil {
			t.Error(err)
		}
		if n < 50 || n > 80 { // 1, 2, 4, ... 60 s, twice
			t.Errorf("tried %d times in an hour", n)
		}
	})
}

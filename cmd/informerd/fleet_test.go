package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
)

// told notes in order what a fleet does with clusters.
type told struct {
	mu  sync.Mutex // guards all
	all []string
}

func (o *told) add(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, what)
}

func (o *told) await(t *testing.T, want ...string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		o.mu.Lock()
		got := slices.Clone(o.all)
		if slices.Equal(got, want) {
			o.all = nil
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("the fleet did %q, want %q", got, want)
		}
	}
}

// fleetFakes records clusters that come and go.
type fleetFakes struct {
	*fakeCaches
	*told
}

func (f fleetFakes) Expect(cluster string) error { f.add("expect " + cluster); return nil }
func (f fleetFakes) Remove(cluster string) error { f.add("remove " + cluster); return nil }
func (f fleetFakes) Connect(cluster string, c replica.ClusterConfig) error {
	f.add("connect " + cluster + " " + c.REST.Host)
	return nil
}
func (f fleetFakes) Unreachable(cluster string, _ error) {}

const kubeconfigText = `apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x}}]
clusters: [{name: x, cluster: {server: "http://HOST"}}]
`

func kubeconfigTo(host string) string { return strings.Replace(kubeconfigText, "HOST", host, 1) }

func startFleet(t *testing.T, cfg *config.Config) (*fleet, *told, *lines) {
	t.Helper()
	o, log := &told{}, newLines()
	return startFleetOn(t, cfg, fleetFakes{newFakeCaches(), o}, o, log), o, log
}

func startFleetOn(t *testing.T, cfg *config.Config, caches fleetCaches, o *told, log *lines) *fleet {
	t.Helper()
	f := newFleet(cfg, caches, func() []cache.Saved { return nil }, slog.New(slog.NewTextHandler(log, nil)))
	f.poll = 5 * time.Millisecond
	f.folders.absentFor, f.folders.emptyFor, f.settleAfter = 20*time.Millisecond, 40*time.Millisecond, 0
	f.added = append(f.added, func(cluster string) func(context.Context) error {
		o.add("open " + cluster)
		return func(ctx context.Context) error {
			<-ctx.Done()
			o.add("stop " + cluster)
			return nil
		}
	})
	f.removed = append(f.removed, func(cluster string) { o.add("close " + cluster) })
	f.settled = func([]config.Rule, []config.Cluster) { o.add("settled") }
	f.start()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
	return f
}

// TestFleet: clusters come, change and go with the files of a folder, each without the
// others; what serves one is there before its copy, and goes after it.
func TestFleet(t *testing.T) {
	dir := t.TempDir()
	east := filepath.Join(dir, "east")
	write(t, east, kubeconfigTo("127.0.0.1:1"))
	f, o, log := startFleet(t, &config.Config{Clusters: []config.Cluster{}, Folders: []config.Folder{{Path: dir}}})
	o.await(t, "open east", "expect east", "settled", "connect east http://127.0.0.1:1")
	if !f.knows("east") || f.knows("west") {
		t.Error("it does not know which clusters there are")
	}

	write(t, filepath.Join(dir, "west"), kubeconfigTo("127.0.0.1:9"))
	o.await(t, "open west", "expect west", "connect west http://127.0.0.1:9")
	log.await(t, "cluster added")

	// Half a file changes nothing; a whole one is taken over, and nothing else is.
	write(t, east, kubeconfigTo("127.0.0.1:2")[:100])
	log.await(t, "the kubeconfig cannot be used, going on with the one before")
	write(t, east, kubeconfigTo("127.0.0.1:2"))
	o.await(t, "connect east http://127.0.0.1:2")

	if err := os.Remove(east); err != nil {
		t.Fatal(err)
	}
	o.await(t, "stop east", "remove east", "close east")
	write(t, east, kubeconfigTo("127.0.0.1:3"))
	o.await(t, "open east", "expect east", "connect east http://127.0.0.1:3")

	// A cluster that the configuration names has its own way.
	next := &config.Config{Clusters: []config.Cluster{{Name: "west", Kubeconfig: east}}}
	f.configure(next)
	o.await(t, "stop east", "remove east", "close east", "connect west http://127.0.0.1:3")
	again := *next
	again.Clusters = []config.Cluster{{Name: "west", Kubeconfig: filepath.Join(dir, "west")}}
	f.configure(&again)
	o.await(t, "connect west http://127.0.0.1:9")
}

// TestFleetWithoutFolder: as long as a folder cannot be read, nobody knows which clusters
// there are not, and nothing is forgotten.
func TestFleetWithoutFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	f, o, log := startFleet(t, &config.Config{Clusters: []config.Cluster{}, Folders: []config.Folder{{Path: dir}}})
	log.await(t, "read the folder of clusters")
	if !f.knows("east") || f.discovered() {
		t.Error("it knows what is in a folder that it cannot read")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o.await(t, "settled")
	if f.knows("east") {
		t.Error("east is not in the folder")
	}
}

// TestFleetNamedGoes: what the configuration names goes when it does not name it any more,
// whether a folder can be read or not.
func TestFleetNamedGoes(t *testing.T) {
	folders := []config.Folder{{Path: filepath.Join(t.TempDir(), "none")}}
	f, o, _ := startFleet(t, &config.Config{Clusters: []config.Cluster{{Name: "east", Kubeconfig: "none"}}, Folders: folders})
	o.await(t, "open east", "expect east")
	f.configure(&config.Config{Clusters: []config.Cluster{}, Folders: folders})
	o.await(t, "stop east", "remove east", "close east")
}

// TestFleetEndsWithAMember: what cannot go on is not left out in silence.
func TestFleetEndsWithAMember(t *testing.T) {
	f := newFleet(&config.Config{Clusters: []config.Cluster{{Name: "c", Kubeconfig: "none"}}}, fleetFakes{newFakeCaches(), &told{}},
		func() []cache.Saved { return nil }, slog.New(slog.DiscardHandler))
	broken := errors.New("broken")
	f.added = append(f.added, func(string) func(context.Context) error {
		return func(context.Context) error { return broken }
	})
	f.start()
	if err := f.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run() = %v", err)
	}
}

// identified are caches whose clusters say who they are.
type identified struct {
	fleetFakes
	mu  sync.Mutex // guards uid
	uid string
}

func (f *identified) Clusters() []cache.ClusterStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []cache.ClusterStatus{{Name: "east", UID: f.uid, Reachable: true}}
}

// is says who answers as east from now on.
func (f *identified) is(uid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uid = uid
}

// serveIdentity serves a cluster that says who it is, and nothing else.
func serveIdentity(t *testing.T, uid string) (host string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/version":
			_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
		case "/api/v1/namespaces/kube-system":
			_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":"`+uid+`"}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestFleetOtherCluster: where another cluster answers than did, all there is of the first
// is forgotten, the door included, whether the configuration leads there or the first one
// has gone from where it leads.
func TestFleetOtherCluster(t *testing.T) {
	first, second := serveIdentity(t, "1"), serveIdentity(t, "2")
	dir := t.TempDir()
	east := filepath.Join(dir, "east")
	write(t, east, kubeconfigTo(first))
	o, log := &told{}, newLines()
	caches := &identified{fleetFakes: fleetFakes{newFakeCaches(), o}}
	f := startFleetOn(t, &config.Config{Clusters: []config.Cluster{}, Folders: []config.Folder{{Path: dir}}}, caches, o, log)
	o.await(t, "open east", "expect east", "settled", "connect east http://"+first)
	caches.is("1")

	// What leads to the same one is taken over.
	write(t, east, strings.Replace(kubeconfigTo(first), "cluster: x}", "cluster: x, namespace: other}", 1))
	o.await(t, "connect east http://"+first)
	// What leads to nobody is not.
	write(t, east, kubeconfigTo("127.0.0.1:1"))
	log.await(t, "which cluster it leads to cannot be told")
	write(t, east, kubeconfigTo(second))
	log.await(t, "the kubeconfig leads to another cluster")
	caches.is("")
	o.await(t, "stop east", "remove east", "close east", "open east", "expect east", "connect east http://"+second)
	f.other("east") // the factory has found that out
	log.await(t, "another cluster answers")
	f.other("none") // it has gone meanwhile
	o.await(t, "stop east", "remove east", "close east", "open east", "expect east", "connect east http://"+second)
}

// TestFleetPlugin: a credential plugin that waits holds up neither the removal of its
// cluster, nor another one, nor the end.
func TestFleetPlugin(t *testing.T) {
	dir, pid := t.TempDir(), filepath.Join(t.TempDir(), "pid")
	t.Cleanup(func() { // the plugin's goroutine ends with it
		text, err := os.ReadFile(pid)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	east := filepath.Join(dir, "east")
	write(t, east, `apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: x, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: ["-c", "echo $$ > `+pid+`; exec sleep 600"], interactiveMode: Never}}}]
`)
	factory := replica.NewFactory(replica.Options{})
	log := newLines()
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- factory.Run(running) }()
	f := newFleet(&config.Config{Clusters: []config.Cluster{}, Folders: []config.Folder{{Path: dir}}}, factory,
		func() []cache.Saved { return nil }, slog.New(slog.NewTextHandler(log, nil)))
	f.poll, f.folders.absentFor, f.folders.emptyFor = 5*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	f.start()
	go func() { ended <- f.Run(running) }()
	log.await(t, "connecting to the cluster")
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(pid); err == nil && len(text) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the plugin was not run")
		}
	}
	if err := os.Remove(east); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "west"), kubeconfigTo("127.0.0.1:9"))
	deadline := time.Now().Add(patience)
	for {
		names := []string{}
		for _, c := range factory.Clusters() {
			names = append(names, c.Name)
		}
		if slices.Equal(names, []string{"west"}) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the clusters are %v", names)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := factory.Apply("west", nil); err != nil {
		t.Error(err)
	}
	stop()
	for range 2 {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("it does not end")
		}
	}
}

// TestFleetReload: rules that change while a cluster is added are its rules.
func TestFleetReload(t *testing.T) {
	dir := t.TempDir()
	f, _, _ := startFleet(t, &config.Config{Clusters: []config.Cluster{}, Folders: []config.Folder{{Path: dir}}})
	for n := range 5 {
		write(t, filepath.Join(dir, "c"+strconv.Itoa(n)), kubeconfigTo("127.0.0.1:9"))
		for range 20 {
			next := *f.config()
			f.configure(&next)
			time.Sleep(time.Millisecond)
		}
	}
}

func TestTwins(t *testing.T) {
	got := twins([]cache.ClusterStatus{{Name: "a", UID: "1"}, {Name: "b"}, {Name: "c", UID: "2"}, {Name: "d", UID: "1"}, {Name: "e"}})
	if len(got) != 1 || !slices.Equal(got[0], []string{"a", "d"}) {
		t.Errorf("twins() = %v", got)
	}
}

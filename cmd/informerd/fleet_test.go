package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	f := newFleet(cfg, fleetFakes{newFakeCaches(), o}, func() []cache.Saved { return nil }, slog.New(slog.NewTextHandler(log, nil)))
	f.poll = 5 * time.Millisecond
	f.folders.absentFor = 20 * time.Millisecond
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
	return f, o, log
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

func TestTwins(t *testing.T) {
	got := twins([]cache.ClusterStatus{{Name: "a", UID: "1"}, {Name: "b"}, {Name: "c", UID: "2"}, {Name: "d", UID: "1"}, {Name: "e"}})
	if len(got) != 1 || !slices.Equal(got[0], []string{"a", "d"}) {
		t.Errorf("twins() = %v", got)
	}
}

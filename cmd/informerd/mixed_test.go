package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/discovery"
)

// TestIncompleteHeader: the server says what discovery listens to; neither may import
// the other.
func TestIncompleteHeader(t *testing.T) {
	if cache.DiscoveryHeader != discovery.IncompleteHeader {
		t.Errorf("%s is sent, %s is read", cache.DiscoveryHeader, discovery.IncompleteHeader)
	}
}

// jobs is a list of them.
const jobs = `{"kind":"JobList","apiVersion":"batch/v1","metadata":{"resourceVersion":"7"},"items":[
{"metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"7"}}]}`

// twoServers are two API servers behind a balancer of connections, of which only the
// first one serves jobs. Requests that keep their connection all meet the same one.
func twoServers(t *testing.T) (url string, keep *atomic.Int64) {
	servers := []*httptest.Server{
		newFakeAPI(t, "- Pod pods v1", "apps Deployment deployments v1", "batch Job jobs v1"),
		newFakeAPI(t, "- Pod pods v1", "apps Deployment deployments v1"),
	}
	keep = &atomic.Int64{}
	var next atomic.Int64
	ended := make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server := keep.Load()
		if r.Close {
			server = next.Add(1) % 2
		}
		switch {
		case r.URL.Path != "/apis/batch/v1/jobs":
			servers[server].Config.Handler.ServeHTTP(w, r)
		case server == 1:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Query().Get("watch") == "" {
				_, _ = io.WriteString(w, jobs)
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		}
	}))
	t.Cleanup(func() {
		close(ended)
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL, keep
}

// TestKeepsWhatOneServerLacks: discovery by a server that lacks a resource stops no
// informer and deletes no object, while another server has it.
func TestKeepsWhatOneServerLacks(t *testing.T) {
	url, keep := twoServers(t)
	f := replica.NewFactory(replica.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
	r, log := startKeeper(t, f, kubeconfigFor(t, t.TempDir()+"/k", url), `[{match: [jobs.batch]}, {match: ["*"], watch: false}]`)
	receive(t, r.discovered)
	resource := cache.Resource{Cluster: "c", GVR: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}}
	i, err := f.Informer(resource)
	if err != nil {
		t.Fatal(err)
	}
	synced, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := i.WaitForSync(synced); err != nil {
		t.Fatal(err)
	}
	reader := i.View().Reader(cache.WholeScope())
	events, err := reader.Watch(reader.Version())
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	for n, server := range []int64{1, 0, 1} {
		keep.Store(server)
		looks := r.disco.Stats().Looks
		r.disco.Trigger()
		if n == 0 {
			log.await(t, "API servers that answer differ")
		}
		for deadline := time.Now().Add(patience); r.disco.Stats().Looks < looks+1 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if now, err := f.Informer(resource); now != i || err != nil {
			t.Fatalf("Informer() is another one than before, or none: %v", err)
		}
		if _, ok := reader.Get(cache.Key{Namespace: "shop", Name: "a"}); !ok {
			t.Error("its object is gone")
		}
	}
	if batch, err := events.Poll(); len(batch) > 0 || err != nil {
		t.Errorf("subscribers were told %v, %v", batch, err)
	}
	if n := strings.Count(log.String(), "API servers that answer"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/websocket"
)

// socketHolder keeps a resource as pages in browsers do, such as Headlamp's: it lists, follows the
// changes over a WebSocket, and begins anew when that ends.
type socketHolder struct {
	gvr  schema.GroupVersionResource
	list metadata.Interface
	url  string // of a watch, without its version

	mu   sync.Mutex // guards all below
	held versions
	told int   // changes that came over WebSockets
	err  error // what nobody may be told, the first
}

// startSockets starts those of pods and ConfigMaps against a server until the test ends.
func startSockets(t *testing.T, url string) (all informed, told func() int) {
	t.Helper()
	client, err := metadata.NewForConfig(&rest.Config{Host: url, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	var holders []*socketHolder
	for _, gvr := range []schema.GroupVersionResource{allPods, configMaps} {
		h := &socketHolder{gvr: gvr, list: client, url: url + "/api/v1/" + gvr.Resource + "?watch=1&allowWatchBookmarks=1&resourceVersion="}
		running.Go(func() { h.run(ctx) })
		holders = append(holders, h)
		all = append(all, holder{"WebSocket: " + gvr.Resource, gvr, h.now})
	}
	return all, func() (n int) {
		for _, h := range holders {
			h.mu.Lock()
			n += h.told
			h.mu.Unlock()
		}
		return n
	}
}

func (h *socketHolder) now() (versions, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.held), h.err
}

// run lists and follows until ctx ends. A server that is away is asked again.
func (h *socketHolder) run(ctx context.Context) {
	for ctx.Err() == nil {
		version, err := h.begin(ctx)
		if err == nil {
			err = h.follow(ctx, version)
		}
		if err != nil {
			h.mu.Lock()
			h.err = err
			h.mu.Unlock()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// begin lists. It returns no version if that fails.
func (h *socketHolder) begin(ctx context.Context) (version string, err error) {
	list, err := h.list.Resource(h.gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", nil
	}
	held := versions{}
	for i := range list.Items {
		if err := held.add(&list.Items[i]); err != nil {
			return "", err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = held
	return list.ResourceVersion, nil
}

// socketEvent is a message of a watch.
type socketEvent struct {
	Type   string
	Object struct {
		Metadata struct {
			Namespace, Name, ResourceVersion string
			UID                              types.UID
		}
		Code int32
	}
}

// follow enters what comes over a WebSocket until that ends. Its error is of a message that no
// server may send.
func (h *socketHolder) follow(ctx context.Context, version string) error {
	if version == "" {
		return nil
	}
	c, _, err := websocket.Dial(ctx, h.url+version, nil, nil)
	if err != nil {
		return nil
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	for {
		_, message, err := c.ReadMessage()
		if err != nil {
			return nil
		}
		var e socketEvent
		if err := json.Unmarshal(message, &e); err != nil {
			return fmt.Errorf("the message %.300q: %w", message, err)
		}
		if e.Type == "ERROR" && e.Object.Code == http.StatusGone {
			return nil
		}
		if err := h.enter(&e); err != nil {
			return fmt.Errorf("%w: %.300q", err, message)
		}
	}
}

// enter holds every event against what is held: none may come twice, or of what is not there.
func (h *socketHolder) enter(e *socketEvent) error {
	m := e.Object.Metadata
	key, is := m.Namespace+"/"+m.Name, string(m.UID)+" "+m.ResourceVersion
	h.mu.Lock()
	defer h.mu.Unlock()
	was, there := h.held[key]
	switch e.Type {
	case "ADDED", "MODIFIED", "DELETED":
		if there != (e.Type != "ADDED") || was == is {
			return fmt.Errorf("of %s is held %q", key, was)
		}
		h.told++
		if h.held[key] = is; e.Type == "DELETED" {
			delete(h.held, key)
		}
	case "BOOKMARK":
	default:
		return fmt.Errorf("an event of type %q", e.Type)
	}
	return nil
}

// TestSocketsFollow: who follows over WebSockets holds what the API server holds while pods and
// ConfigMaps change, whatever happens to informerd.
func TestSocketsFollow(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster, Snapshot: t.TempDir() + "/informerd.db"})
	i.WaitLive(t, syncTime)
	all, told := startSockets(t, i.URL)
	all.checkEqual(t, c, "at first")
	before := told()
	c.Churn(t, "shop", 100, 3*time.Second)
	churnMaps(t, c, "sockets-churn")
	all.checkEqual(t, c, "after churn")
	if n := told() - before; n < 300 {
		t.Errorf("%d changes came over WebSockets", n)
	}
	i.Stop()
	c.Churn(t, "shop", 100, time.Second)
	i.Start()
	all.checkEqual(t, c, "after a restart")

	i.Kill()
	churnMaps(t, c, "sockets-expired")
	i.ForgetSnapshot(t)
	i.Start()
	all.checkEqual(t, c, "after a 410")
}

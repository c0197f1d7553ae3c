package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/e2e/harness"
)

// transitions is a webhook that notes what becomes of objects.
type transitions struct {
	mu  sync.Mutex // guards got
	got []string
}

func (n *transitions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e struct{ Data item }
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.got = append(n.got, e.Data.Transition+" "+e.Data.Name)
}

// take are those since the last call, in order of their text.
func (n *transitions) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	got := n.got
	n.got = nil
	slices.Sort(got)
	return got
}

func (n *transitions) has(line string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.got, line) {
		return fmt.Errorf("%q was not delivered", line)
	}
	return nil
}

// TestHandlersRestarted: of 1,000 objects a restart delivers none if nothing has changed, and
// exactly those that were changed, deleted and made while informerd was down. Another number
// is that of INFORMERD_OBJECTS.
func TestHandlersRestarted(t *testing.T) {
	const ns = "handlers-restarted"
	objects := number(t, "INFORMERD_OBJECTS", 1000)
	few, patience := objects/300, syncTime+time.Duration(objects)*10*time.Millisecond
	inTurn(t, &smallLane)
	c := smallCluster(t)
	createNamespace(t, c, ns)
	name := func(n int) string { return fmt.Sprintf("restarted-%06d", n) }
	createMany(t, c, ns, objects, name)
	told := &transitions{}
	hook := httptest.NewServer(told)
	t.Cleanup(hook.Close)
	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db"), Rules: "\n- match: [configmaps]\n", Plain: true,
		Handlers: fmt.Sprintf("- {name: all, resources: [configmaps], namespaces: [%s], labelSelector: many=yes, as: informerd, from: beginning, concurrency: 32, webhook: {url: %q, allowPrivate: [127.0.0.1]}}\n", ns, hook.URL),
	})
	want := map[string]string{}
	for n := range objects {
		want[name(n)] = "enters"
	}
	sentinels := 0
	check := func(when string, want map[string]string) {
		t.Helper()
		sentinels++
		last := fmt.Sprint("sentinel-", sentinels) // with it, all from before is considered
		createConfigMap(t, c, ns, last, map[string]string{"many": "yes"}, nil)
		harness.Eventually(t, patience, when+": the newest is delivered, and nothing pending", func() error {
			return errors.Join(told.has("enters "+last), handlerIdle(i, "all"))
		})
		time.Sleep(500 * time.Millisecond) // for what should not come
		lines := []string{"enters " + last}
		for name, transition := range want {
			lines = append(lines, transition+" "+name)
		}
		slices.Sort(lines)
		t.Logf("%s: %d deliveries, that of an object that was made to see the end included", when, len(lines))
		if got := told.take(); !slices.Equal(got, lines) {
			t.Errorf("%s: %d deliveries, want %d; the first:\n%s\nwant:\n%s", when, len(got), len(lines),
				strings.Join(got[:min(len(got), 10)], "\n"), strings.Join(lines[:min(len(lines), 10)], "\n"))
		}
	}
	check("at first", want)
	i.Stop()
	i.Start()
	check("nothing changed", nil)

	i.Stop()
	want = map[string]string{}
	for n := range few {
		changed, gone, made := name(3*n), name(3*n+1), fmt.Sprint("restarted-new-", n)
		patchConfigMap(t, c, ns, changed, `{"data":{"a":"changed"}}`)
		deleteConfigMap(t, c, ns, gone)
		createConfigMap(t, c, ns, made, map[string]string{"many": "yes"}, map[string]any{"a": "1"})
		maps.Copy(want, map[string]string{changed: "changes", gone: "leaves", made: "enters"})
	}
	i.Start()
	check("1 % changed", want)
}

// createMany makes ConfigMaps, which are deleted when the test is over.
func createMany(t *testing.T, c *harness.Cluster, namespace string, count int, name func(int) string) {
	t.Helper()
	maps := c.Client.CoreV1().ConfigMaps(namespace)
	t.Cleanup(func() {
		_ = maps.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "many=yes"})
	})
	var g errgroup.Group
	g.SetLimit(8)
	for n := range count {
		g.Go(func() error {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(n), Labels: map[string]string{"many": "yes"}}, Data: map[string]string{"a": "1"}}
			_, err := maps.Create(t.Context(), m, metav1.CreateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// handlerIdle says what a handler still has to deliver.
func handlerIdle(i *harness.Informerd, name string) error {
	var s struct {
		State   string
		Pending int
		Lines   []struct{ State string }
	}
	err := i.Read("/v1/handlers/"+name, &s)
	if err == nil && (s.State != "active" || s.Pending > 0 || len(s.Lines) != 1 || s.Lines[0].State != "following") {
		err = fmt.Errorf("handler %s: %+v", name, s)
	}
	return err
}

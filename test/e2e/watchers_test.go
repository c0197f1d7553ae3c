package e2e

import (
	"bufio"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestThousandWatchers: all get every event in order, and the API server has one
// watch. What it costs and how fast it goes is reported; informerd runs with the
// race detector here, make bench has the figures of the real program.
func TestThousandWatchers(t *testing.T) {
	const watchers, changes, rate = 1000, 200, 200
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: "\n- match: [pods]\n"})
	i.WaitLive(t, syncTime, "pods")
	mark := c.AuditMark(t)
	url := i.URL + "/api/v1/namespaces/shop/pods?watch=true&resourceVersion=" + i.Resource(t, "pods").ResourceVersion
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: watchers}}
	defer client.CloseIdleConnections()
	got := make([][]uint64, watchers)
	var wg sync.WaitGroup
	for n := range watchers {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("watcher %d: %v %v", n, resp, err)
		}
		wg.Go(func() { got[n] = readEvents(resp.Body, changes) })
	}
	used, began := i.CPU(t), time.Now()
	patchPods(t, c, changes, rate)
	wrote := time.Since(began)
	wg.Wait()
	took := time.Since(began)
	used = i.CPU(t) - used
	t.Logf("%d changes, %.0f of the %d a second that were asked for; %d watchers had them %v after the last one", changes,
		changes/wrote.Seconds(), rate, watchers, (took - wrote).Round(time.Millisecond))
	t.Logf("%.0f events a second, %v of informerd's CPU for each", watchers*changes/took.Seconds(), used/(watchers*changes))
	for n, events := range got {
		if len(events) != changes || !slices.Equal(events, got[0]) {
			t.Fatalf("watcher %d got %d events, or in another order than watcher 0, which got %d", n, len(events), len(got[0]))
		}
	}
	// informerd's own watch ends, and goes on, every few minutes.
	renewals := int(took / (4 * time.Minute))
	for _, r := range c.Audit(t, mark, harness.Agent) {
		if r.Resource != "pods" {
			continue
		}
		if renewals--; renewals < 0 || r.Verb != "watch" {
			t.Errorf("the watchers cost the API server a request: %s", r)
		}
	}
}

// readEvents returns a hash of each of the first n events.
func readEvents(body io.ReadCloser, n int) []uint64 {
	defer body.Close()
	lines := bufio.NewReaderSize(body, 64<<10)
	var all []uint64
	for len(all) < n {
		h := fnv.New64a()
		for {
			part, err := lines.ReadSlice('\n')
			_, _ = h.Write(part)
			if err == bufio.ErrBufferFull {
				continue
			}
			if err != nil {
				return all
			}
			break
		}
		all = append(all, h.Sum64())
	}
	return all
}

// patchPods changes running pods of the demo at a rate a second.
func patchPods(t *testing.T, c *harness.Cluster, changes, rate int) {
	t.Helper()
	pods := c.Client.CoreV1().Pods("shop")
	list, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running"})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(list.Items))
	for _, p := range list.Items {
		if !strings.HasPrefix(p.Name, "recommendations") {
			names = append(names, p.Name)
		}
	}
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var wg sync.WaitGroup
	for n := range changes {
		<-tick.C
		wg.Go(func() {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"changed":"%d"}}}`, n)
			if _, err := pods.Patch(t.Context(), names[n%len(names)], "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

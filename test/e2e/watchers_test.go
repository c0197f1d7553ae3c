package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestThousandWatchers: all get every event in order while 200 pods a second
// change, and the API server has one watch. What it costs and how fast it goes is
// reported. The program is the real one; with the race detector, which would be
// most of the cost, there are fewer of both.
func TestThousandWatchers(t *testing.T) {
	inTurn(t, &demoLane)
	t.Run("real", func(t *testing.T) {
		testWatchers(t, harness.Options{Plain: true}, 1000, 200, 5*time.Second)
	})
	t.Run("race detector", func(t *testing.T) {
		testWatchers(t, harness.Options{}, 200, 50, 2*time.Second)
	})
}

func testWatchers(t *testing.T, opts harness.Options, watchers, rate int, duration time.Duration) {
	c := demoCluster(t)
	opts.Kubeconfig, opts.Rules = c.Kubeconfig("admin"), "\n- match: [pods]\n"
	started := c.AuditMark(t)
	i := harness.StartInformerd(t, opts)
	i.WaitLive(t, syncTime, "pods")
	waitWatching(t, c, started, "pods")
	mark := c.AuditMark(t)
	changes := int(duration.Seconds() * float64(rate))
	from, err := strconv.ParseUint(i.Resource(t, "pods").ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	_, before := podWatches(t, c)
	readers := openWatches(t, i, watchers)
	used, began := i.CPU(t), time.Now()
	var wg sync.WaitGroup
	got := make([][]shown, watchers)
	for n, r := range readers {
		wg.Go(func() { got[n] = r.until(changes) })
	}
	wrote := c.Churn(t, "shop", rate, duration)
	churned := time.Since(began)
	wg.Wait()
	took := time.Since(began)
	used = i.CPU(t) - used
	t.Logf("%d changes, %.0f of the %d a second that were asked for; %d watchers had them %v after the last one", changes,
		float64(changes)/wrote, rate, watchers, (took - churned).Round(time.Millisecond))
	events := watchers * changes
	t.Logf("%.0f events a second, %v of informerd's CPU for each", float64(events)/took.Seconds(), used/time.Duration(events))
	checkShown(t, got, changes)
	if now, _ := podWatches(t, c); now > before {
		t.Errorf("the API server has %d watches of pods with %d watchers, and had %d without", now, watchers, before)
	}
	// informerd's own watch ends, and goes on: after some minutes, and whenever the API
	// server of a busy machine finds it slow. It goes on from where it came to, one
	// after the other, after a look at the newest objects that it holds: what each is,
	// and was at the version it came to; and after another one if the watch was opened
	// late.
	last, watches, looks := from, 0, 0
	for _, r := range c.Audit(t, mark, harness.Agent) {
		if r.Resource != "pods" {
			continue
		}
		uri, err := url.Parse(r.URI)
		if err != nil {
			t.Fatal(err)
		}
		exact := uri.Query().Get("resourceVersionMatch") == "Exact" && strings.HasPrefix(uri.Query().Get("fieldSelector"), "metadata.name=")
		if r.Verb == "get" || exact {
			looks++
			continue
		}
		watches++
		version, _ := strconv.ParseUint(uri.Query().Get("resourceVersion"), 10, 64)
		if r.Verb != "watch" || r.IsList() || version < last {
			t.Errorf("the watchers cost the API server a request: %s", r)
		}
		last = version
	}
	if most := 2 * 2 * 5 * (watches + 1); looks > most {
		t.Errorf("%d looks at the newest objects for %d watches, want %d at most", looks, watches, most)
	}
	if watches > watchers/4 {
		t.Errorf("%d watches, one after the other, for %d watchers", watches, watchers)
	}
}

// podWatches is how many watches of pods the API server has within a second, whoever's they
// are: somebody who watches all the time may have none at a moment, or two, of which one is
// about to end.
func podWatches(t *testing.T, c *harness.Cluster) (fewest, most int) {
	t.Helper()
	fewest = math.MaxInt
	for range 5 {
		answer, err := c.Raw(t.Context(), http.MethodGet, "/metrics", "text/plain")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(answer.Body)) {
			if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `group=""`) &&
				strings.Contains(line, `resource="pods"`) && strings.Contains(line, `subresource=""`) && strings.Contains(line, `verb="WATCH"`) {
				value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
				if err != nil {
					t.Fatal(err)
				}
				n += int(value)
			}
		}
		fewest, most = min(fewest, n), max(most, n)
		time.Sleep(200 * time.Millisecond)
	}
	if most == 0 {
		t.Fatal("the API server says that nobody watches pods")
	}
	return fewest, most
}

// waitWatching waits until an informerd that was started at mark has opened the
// watch of a resource that it stays with for minutes. A list makes a copy live
// before there is any watch, and the first one may be short, to prove that the copy
// is current: what informerd opens after this it opens because that watch ended, or
// because it was asked.
func waitWatching(t *testing.T, c *harness.Cluster, mark harness.Mark, resource string) {
	t.Helper()
	harness.Eventually(t, syncTime, "lasting watch of "+resource, func() error {
		var own []harness.Request
		for _, r := range c.Audit(t, mark, harness.Agent) {
			if r.Resource == resource {
				own = append(own, r)
			}
		}
		for _, r := range own {
			uri, err := url.Parse(r.URI)
			if err != nil {
				return err
			}
			if seconds, _ := strconv.Atoi(uri.Query().Get("timeoutSeconds")); r.Verb == "watch" && r.Code == http.StatusOK && seconds >= 60 {
				return nil
			}
		}
		return fmt.Errorf("its requests are %v", own)
	})
}

// openWatches opens watches of the pods of a namespace, all from one version on.
func openWatches(t *testing.T, i *harness.Informerd, n int) []*watchReader {
	t.Helper()
	url := i.URL + "/api/v1/namespaces/shop/pods?watch=true&resourceVersion=" + i.Resource(t, "pods").ResourceVersion
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	t.Cleanup(func() {
		cancel()
		client.CloseIdleConnections()
	})
	var all []*watchReader
	for range n {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("watcher %d: %v %v", len(all), resp, err)
		}
		all = append(all, &watchReader{body: resp.Body})
	}
	return all
}

// watchReader reads one watch, and decodes nothing: a thousand of them share the
// machine with what they test.
type watchReader struct{ body io.ReadCloser }

// shown is one event: all its bytes, and the number of the change it shows.
type shown struct {
	hash   uint64
	change int // 0 if the pod has seen none
}

// until returns the events up to the one that shows change last.
func (r *watchReader) until(last int) []shown {
	defer r.body.Close()
	lines := bufio.NewReaderSize(r.body, 64<<10)
	var all []shown
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return all
		}
		event := shown{maphash.Bytes(hashSeed, line), changeOf(line)}
		if all = append(all, event); event.change == last {
			return all
		}
	}
}

var hashSeed = maphash.MakeSeed()

func changeOf(event []byte) int {
	_, rest, _ := bytes.Cut(event, []byte(`"devcluster.informerd.io/change":"`))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	n, _ := strconv.Atoi(string(text))
	return n
}

// checkShown: everybody got the same, and the changes are 1 to last in order.
func checkShown(t *testing.T, got [][]shown, last int) {
	t.Helper()
	for n, events := range got {
		if !slices.Equal(events, got[0]) {
			t.Fatalf("watcher %d got %d events, others than watcher 0, which got %d", n, len(events), len(got[0]))
		}
	}
	// A pod that changes otherwise shows an old number again.
	next := 1
	for _, e := range got[0] {
		if e.change == next {
			next++
		}
	}
	if next != last+1 {
		t.Fatalf("the watchers got only the changes up to %d of %d in order", next-1, last)
	}
}

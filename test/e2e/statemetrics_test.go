package e2e

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/test/child"
	"github.com/informerd/informerd/test/e2e/harness"
)

// metricsOf are the kinds of which kube-state-metrics tells.
const metricsOf = "configmaps,cronjobs,daemonsets,deployments,endpointslices,ingresses,jobs,namespaces,nodes,persistentvolumeclaims,pods,poddisruptionbudgets,replicasets,resourcequotas,secrets,services,statefulsets"

// TestStateMetricsShards: of three kube-state-metrics that each ask informerd for one shard
// (KEP-5866), every line of one that asks the API server for everything is told by exactly one,
// and nothing else is. kube-state-metrics has no flag for a shardSelector yet, so a proxy adds it
// to what each asks for. No module proxy serves that program, so it is run only where it is
// installed; TestShards compares informers of shards everywhere.
func TestStateMetricsShards(t *testing.T) {
	program, err := exec.LookPath("kube-state-metrics")
	if err != nil {
		t.Skip("this machine has no kube-state-metrics")
	}
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: "  - match: ['*']\n    redact: []\n"})
	i.WaitLive(t, syncTime)
	whole := startStateMetrics(t, program, "--kubeconfig", c.Kubeconfig("admin"))
	var shards []string
	for _, selector := range shardSelectors("object.metadata.uid", 3) {
		proxy := httptest.NewServer(askForShard(t, i.URL, selector))
		t.Cleanup(proxy.Close)
		shards = append(shards, startStateMetrics(t, program, "--apiserver", proxy.URL))
	}
	var most, fewest int
	equal := func() error {
		want, err := samplesAt(whole)
		if err != nil {
			return err
		}
		all, sizes := map[string]int{}, []int{}
		for _, s := range shards {
			got, err := samplesAt(s)
			if err != nil {
				return err
			}
			sizes = append(sizes, len(got))
			for line, n := range got {
				all[line] += n
			}
		}
		if most, fewest = len(want), slices.Min(sizes); len(want) == 0 {
			return errors.New("there are no metrics")
		}
		if !maps.Equal(all, want) {
			return fmt.Errorf("-API server's +shards of informerd\n%s", cmp.Diff(want, all))
		}
		return nil
	}
	harness.Eventually(t, time.Minute, "the shards' metrics to be the whole's", equal)
	t.Logf("%d metrics, at least %d in each of %d shards", most, fewest, len(shards))
	if fewest < most/10 {
		t.Error("a shard has too few of them to be one of three")
	}
	churnMaps(t, c, "state-metrics")
	harness.Eventually(t, time.Minute, "the shards' metrics to be the whole's after churn", equal)
}

// askForShard passes on all requests to informerd, with a selector in those of lists and watches.
func askForShard(t *testing.T, to, selector string) http.Handler {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		FlushInterval: -1, // a watch is to be told at once
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if parts := strings.Split(strings.Trim(r.Out.URL.Path, "/"), "/"); parts[0] == "api" && len(parts) == 3 || parts[0] == "apis" && len(parts) == 4 {
				q := r.Out.URL.Query()
				q.Set("shardSelector", selector)
				r.Out.URL.RawQuery = q.Encode()
			}
		},
	}
}

// startStateMetrics starts a kube-state-metrics and returns the URL of its metrics.
func startStateMetrics(t *testing.T, program string, args ...string) string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	port, other := freePort(t), freePort(t)
	cmd := exec.Command(program, append(args, "--host", "127.0.0.1", "--port", port, "--telemetry-host", "127.0.0.1", "--telemetry-port", other, "--resources", metricsOf)...)
	p, err := child.Start("kube-state-metrics", cmd, log, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return "http://127.0.0.1:" + port + "/metrics"
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// samplesAt are the lines of metrics at a URL, with how often each is there.
func samplesAt(url string) (map[string]int, error) {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s, %w", url, resp.Status, err)
	}
	all := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			all[line]++
		}
	}
	return all, nil
}

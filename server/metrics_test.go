package server

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/informerd/informerd/cache"
)

// scrape reads /metrics as Prometheus does: values by name and labels.
func scrape(t *testing.T, w *world) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.get(t, "/metrics").Body)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			values[name+labelsOf(m)] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

func labelsOf(m *dto.Metric) string {
	var parts []string
	for _, l := range m.Label {
		if l.GetValue() != "" && l.GetName() != "version" {
			parts = append(parts, l.GetName()+"="+l.GetValue())
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.pods.status.Relists, w.pods.status.Expired, w.pods.status.SnapshotDrops = 3, 2, 1
	w.pods.status.Dictionaries, w.pods.status.Trainings, w.pods.status.Repacked = 2, 3, 500
	w.pods.status.Compared, w.pods.status.Fetched = 4, 17
	w.pods.status.SnapshotAt = then
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n1", 130))
	w.caches.snapshot = cache.SnapshotStatus{Enabled: true, Bytes: 4096, Commits: 7, Failures: 1, CommitSeconds: 0.5, LastCommit: then}
	w.get(t, "/v1/resources/pods")
	w.get(t, "/v1/resources/pots")
	w.do(t, "BREW", "/v1/resources")
	w.get(t, "/no/such/thing")
	got := scrape(t, w)
	for name, want := range map[string]float64{
		`informerd_resource_state{resource=pods,state=live}`:                                 1,
		`informerd_resource_state{resource=pods,state=stale}`:                                0,
		`informerd_resource_state{resource=secrets,state=forbidden}`:                         1,
		`informerd_resource_state{resource=events,state=unwatched}`:                          1,
		`informerd_objects{resource=pods}`:                                                   3,
		`informerd_relists_total{resource=pods}`:                                             3,
		`informerd_dictionaries{resource=pods}`:                                              2,
		`informerd_dictionary_trainings_total{resource=pods}`:                                3,
		`informerd_repacked_total{resource=pods}`:                                            500,
		`informerd_comparisons_total{resource=pods}`:                                         4,
		`informerd_comparison_fetches_total{resource=pods}`:                                  17,
		`informerd_expired_total{resource=pods}`:                                             2,
		`informerd_resource_version{resource=pods}`:                                          130,
		`informerd_resource_version_lag{resource=pods}`:                                      0,
		`informerd_resource_version_lag{resource=nodes}`:                                     30,
		`informerd_snapshot_timestamp_seconds{resource=pods}`:                                float64(then.Unix()),
		`informerd_snapshot_drops_total{resource=pods}`:                                      1,
		`informerd_snapshot_bytes{}`:                                                         4096,
		`informerd_snapshot_commits_total{}`:                                                 7,
		`informerd_snapshot_failures_total{}`:                                                1,
		`informerd_snapshot_commit_seconds_total{}`:                                          0.5,
		`informerd_snapshot_enabled{}`:                                                       1,
		`informerd_cluster_reachable{}`:                                                      1,
		`informerd_http_requests_total{code=200,method=GET,route=/v1/resources/{resource}}`:  1,
		`informerd_http_requests_total{code=404,method=GET,route=/v1/resources/{resource}}`:  1,
		`informerd_http_requests_total{code=405,method=other,route=none}`:                    1,
		`informerd_http_requests_total{code=404,method=GET,route=/*}`:                        1,
		`informerd_http_request_duration_seconds{method=GET,route=/v1/resources/{resource}}`: 2,
		`informerd_http_requests_in_flight{}`:                                                1,
		`informerd_http_watchers{}`:                                                          0,
		`informerd_build_info{goversion=` + runtime.Version() + `}`:                          1,
	} {
		if v, ok := got[name]; !ok || math.Abs(v-want) > 1e-9 {
			t.Errorf("%s = %v (there: %v), want %v", name, v, ok, want)
		}
	}
	for name := range got {
		if strings.Contains(name, "resource=events") && !strings.HasPrefix(name, "informerd_resource_state") {
			t.Errorf("an unwatched resource has %s", name)
		}
	}
	if got["go_goroutines{}"] == 0 || got["process_open_fds{}"] == 0 {
		t.Error("no metrics of Go and of the process")
	}
	if age := float64(time.Now().Unix()) - got["informerd_last_contact_timestamp_seconds{resource=pods}"]; age < -1 || age > 60 {
		t.Errorf("last contact was %v seconds ago", age)
	}
}

func TestMetricsLint(t *testing.T) {
	w := newWorld(t)
	problems, err := testutil.GatherAndLint(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "informerd_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestMetricsAreDocumented(t *testing.T) {
	w := newWorld(t)
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	w.get(t, "/livez")
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "informerd_") && !strings.Contains(string(text), "`"+name) {
			t.Errorf("docs/api.md does not know %s", name)
		}
	}
}

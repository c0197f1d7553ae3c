package server

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/server/handlers"
)

const chart = "../deploy/helm/informerd/"

// TestChartAlerts: the chart has the alerts that docs/operations.md proposes, which
// TestDocumentedAlerts tries.
func TestChartAlerts(t *testing.T) {
	text, err := os.ReadFile(chart + "files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var shipped []alert
	if err := yaml.Unmarshal(text, &shipped); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(documentedAlerts(t), shipped); diff != "" {
		t.Errorf("alerts (-documented +chart):\n%s", diff)
	}
}

var (
	fullName   = regexp.MustCompile(`fqName: "([^"]+)"`)
	metricName = regexp.MustCompile(`\b(?:informerd|process|go|workqueue)_[a-z0-9_]+`)
	labelName  = regexp.MustCompile(`(?:[{,]|by \()\s*\\?"?([a-z_]+)(?:\s*[=!~]|, |\))`)
)

// TestChartMetrics: what the chart's alerts and its dashboard ask for is there.
func TestChartMetrics(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Metrics = handlers.NewManager(handlers.Options{}) })
	known := map[string]bool{}
	descs := make(chan *prometheus.Desc)
	go func() { w.registry.Describe(descs); close(descs) }()
	for d := range descs {
		name := fullName.FindStringSubmatch(d.String())[1]
		known[name], known[name+"_bucket"] = true, true
	}
	for _, file := range []string{"files/alerts.yaml", "files/dashboard.json"} {
		text, err := os.ReadFile(chart + file)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string]bool{}
		for _, name := range metricName.FindAllString(string(text), -1) {
			asked[name] = true
		}
		for name := range asked {
			if !known[name] {
				t.Errorf("%s asks for %s, which is no metric", file, name)
			}
		}
		if len(asked) < 6 {
			t.Errorf("%s: the test finds %v only", file, slices.Sorted(maps.Keys(asked)))
		}
		for _, m := range labelName.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(" alert cluster group resource state code le job instance version route method name namespace service ", " "+m[1]+" ") {
				t.Errorf("%s asks for the label %s, which no metric has", file, m[1])
			}
		}
	}
}

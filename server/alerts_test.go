package server

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/cache"
)

// alert is one of those that docs/operations.md proposes.
type alert struct{ Alert, Expr, For string }

func documentedAlerts(t *testing.T) (alerts []alert) {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(text), "```") {
		if i%2 == 0 || !strings.Contains(block, "- alert:") {
			continue
		}
		var some []alert
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(block, "yaml\n")), &some); err != nil {
			t.Fatal(err)
		}
		alerts = append(alerts, some...)
	}
	return alerts
}

// samples are all values of a scrape, by the name of the metric.
type samples map[string][]sample

type sample struct {
	labels map[string]string
	value  float64
}

func scraped(t *testing.T, w *world) samples {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.get(t, "/metrics").Body)
	if err != nil {
		t.Fatal(err)
	}
	all := samples{}
	for name, family := range families {
		for _, m := range family.Metric {
			all[name] = append(all[name], sample{labelMap(m), m.GetGauge().GetValue() + m.GetCounter().GetValue()})
		}
	}
	return all
}

func labelMap(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.Label {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// part is what alerts are made of, joined by "or": the values of a metric, or
// their increase, maybe put together, compared with a number.
var part = regexp.MustCompile(`^(?:(max|sum) by \(([\w, ]+)\) )?\(?(increase\()?(\w+)(?:\{(\w+)(=~?)"([^"]*)"\})?(?:\[\w+\])?\)* (==|!=|>) (\d+)$`)

// fires evaluates an expression. before is the scrape that an increase begins
// with.
func fires(t *testing.T, expr string, before, now samples) bool {
	t.Helper()
	fired := false
	for one := range strings.SplitSeq(expr, " or ") {
		m := part.FindStringSubmatch(one)
		if m == nil {
			t.Fatalf("this test cannot read %q: write an alert so that it can, or teach it", one)
		}
		bound, _ := strconv.ParseFloat(m[9], 64)
		for _, v := range aggregated(m[1], strings.Split(m[2], ", "), selected(t, m, before, now)) {
			fired = fired || m[8] == "==" && v == bound || m[8] == "!=" && v != bound || m[8] == ">" && v > bound
		}
	}
	return fired
}

func selected(t *testing.T, m []string, before, now samples) (out []sample) {
	t.Helper()
	name, label := m[4], m[5]
	matcher := regexp.QuoteMeta(m[7])
	if m[6] == "=~" {
		matcher = m[7]
	}
	match := regexp.MustCompile("^(?:" + matcher + ")$")
	for i, s := range now[name] {
		if label != "" && !match.MatchString(s.labels[label]) {
			continue
		}
		if m[3] != "" {
			s.value -= before[name][i].value
		}
		out = append(out, s)
	}
	return out
}

func aggregated(how string, by []string, in []sample) map[string]float64 {
	out := map[string]float64{}
	for i, s := range in {
		key := strconv.Itoa(i)
		if how != "" {
			key = ""
			for _, label := range by {
				key += s.labels[label] + "/"
			}
		}
		if _, there := out[key]; how == "max" && there {
			out[key] = max(out[key], s.value)
			continue
		}
		out[key] += s.value
	}
	return out
}

// handlerGauges are the metrics of one handler as alerts see them.
type handlerGauges struct {
	state        *prometheus.GaugeVec
	oldest, dead prometheus.Gauge
}

func newHandlerGauges() *handlerGauges {
	of := func(name string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Name: "informerd_handler_" + name, ConstLabels: prometheus.Labels{"name": "shop"}}
	}
	g := &handlerGauges{
		prometheus.NewGaugeVec(of("state"), []string{"state"}), prometheus.NewGauge(of("oldest_pending_seconds")), prometheus.NewGauge(of("dead_letters")),
	}
	g.set("active", 3, 0)
	return g
}

func handlerMetrics(w *world) *handlerGauges { return w.Metrics.(*handlerGauges) }

func (g *handlerGauges) set(state string, oldest, dead float64) {
	for _, s := range []string{"active", "waiting", "paused", "down"} {
		g.state.WithLabelValues(s).Set(0)
	}
	g.state.WithLabelValues(state).Set(1)
	g.oldest.Set(oldest)
	g.dead.Set(dead)
}

func (g *handlerGauges) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, ch) }

func (g *handlerGauges) Collect(ch chan<- prometheus.Metric) {
	g.state.Collect(ch)
	g.oldest.Collect(ch)
	g.dead.Collect(ch)
}

// TestDocumentedAlerts: each proposed alert names metrics that there are, is quiet
// while all is well, and fires when it should.
func TestDocumentedAlerts(t *testing.T) {
	dead := func(w *world) {
		for _, r := range []*fakeResource{w.pods, w.nodes} {
			r.set(cache.Stale, "nothing was proven")
			r.status.Proof = time.Now().Add(-10 * time.Minute)
		}
	}
	alerts := documentedAlerts(t)
	fired := map[string]bool{}
	for name, c := range map[string]struct {
		change  func(*world)
		want    []string
		follows bool
	}{
		"all is well":             {func(*world) {}, nil, false},
		"nobody leads":            {func(*world) {}, []string{"InformerdLeaders"}, true},
		"the API server hangs":    {dead, []string{"InformerdClusterSilent", "InformerdNotLive", "InformerdStale"}, false},
		"the API server is away":  {func(w *world) { dead(w); w.caches.clusters[0].Reachable = false }, []string{"InformerdClusterSilent", "InformerdClusterUnreachable", "InformerdNotLive", "InformerdStale"}, false},
		"the age is not known":    {func(w *world) { dead(w); w.pods.status.Proof, w.nodes.status.Proof = time.Time{}, time.Time{} }, []string{"InformerdClusterSilent", "InformerdNotLive"}, false},
		"one resource is stale":   {func(w *world) { w.pods.set(cache.Stale, "down") }, []string{"InformerdNotLive"}, false},
		"one resource has failed": {func(w *world) { w.pods.set(cache.Failed, "webhook") }, []string{"InformerdNotLive"}, false},
		"differences were mended": {func(w *world) { w.pods.status.Mended++ }, []string{"InformerdMended"}, false},
		"one is not decoded":      {func(w *world) { w.pods.status.Undecoded++ }, []string{"InformerdUndecoded"}, false},
		"there is no snapshot":    {func(w *world) { w.caches.snapshot.Enabled = false }, []string{"InformerdNoSnapshot"}, false},
		"the snapshot fails":      {func(w *world) { w.caches.snapshot.Failures++ }, []string{"InformerdNoSnapshot"}, false},
		"the audit log has holes": {func(w *world) { w.Audit = lossy{} }, []string{"InformerdAuditIncomplete"}, false},
		"a sink is away":          {func(w *world) { handlerMetrics(w).set("down", 60, 0) }, []string{"InformerdHandlerDown"}, false},
		"deliveries are given up": {func(w *world) { handlerMetrics(w).set("active", 0, 3) }, []string{"InformerdDeadLetters"}, false},
		"nobody claims":           {func(w *world) { handlerMetrics(w).set("active", 3600, 0) }, []string{"InformerdHandlerBehind"}, false},
	} {
		leads := true
		w := newWorld(t, func(o *Options) {
			o.Metrics = newHandlerGauges()
			o.Leads = func() bool { return leads }
		})
		before := scraped(t, w)
		leads = !c.follows
		c.change(w)
		now := scraped(t, w)
		var got []string
		for _, a := range alerts {
			for _, metric := range regexp.MustCompile(`informerd_\w+`).FindAllString(a.Expr, -1) {
				if len(before[metric]) == 0 {
					t.Errorf("%s: there is no metric %s", a.Alert, metric)
				}
			}
			if fires(t, a.Expr, before, now) {
				got = append(got, a.Alert)
				fired[a.Alert] = true
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v fire, want %v", name, got, c.want)
		}
	}
	for _, a := range alerts {
		if !fired[a.Alert] {
			t.Errorf("%s never fires", a.Alert)
		}
	}
}

// TestAgeMetrics: how old a copy is does not depend on its state, and is absent
// where it is not known.
func TestAgeMetrics(t *testing.T) {
	w := newWorld(t)
	proof := time.Now().Add(-90 * time.Second)
	w.pods.status.Proof, w.nodes.status.Proof = proof, time.Time{}
	got := scrape(t, w)
	if age := got["informerd_age_seconds{resource=pods}"]; age < 90 || age > 120 {
		t.Errorf("the age is %v", age)
	}
	want := float64(proof.UnixMilli()) / 1000
	for _, name := range []string{"informerd_last_proof_timestamp_seconds", "informerd_last_contact_timestamp_seconds"} {
		if got[name+"{resource=pods}"] != want {
			t.Errorf("%s = %v, want %v", name, got[name+"{resource=pods}"], want)
		}
	}
	for _, name := range []string{"informerd_age_seconds", "informerd_last_proof_timestamp_seconds"} {
		if v, there := got[name+"{resource=nodes}"]; there {
			t.Errorf("%s of what has no proof is %v", name, v)
		}
	}
	if got["informerd_lease_seconds{}"] != 75 {
		t.Errorf("the lease is %v", got["informerd_lease_seconds{}"])
	}
}

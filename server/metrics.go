package server

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// httpMetrics are counted while requests are served; everything about resources
// is read at the scrape, see collector.
type httpMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// newRegistry makes a registry of the server's own, so that two servers in one
// process do not meet.
func newRegistry(s *Server) (*prometheus.Registry, *httpMetrics) {
	m := &httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "informerd_http_requests_total",
			Help: "Requests answered, by route, method and status code; 499 is a client that left before its answer.",
		}, []string{"route", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "informerd_http_request_duration_seconds",
			Help:    "Time from request to the end of the answer; watches and claims, which wait, are not counted.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "informerd_http_requests_in_flight",
			Help: "Requests being answered, watches included.",
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "informerd_build_info",
		Help:        "Always 1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": s.Version, "goversion": runtime.Version()},
	})
	build.Set(1)
	watchers := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "informerd_http_watchers",
		Help: "Event streams open, each counted by the resources it follows.",
	}, func() float64 { return float64(s.watches.Taken()) })

	r := prometheus.NewRegistry()
	r.MustRegister(m.requests, m.duration, m.inFlight, watchers, build, &collector{s.Caches, s.Lease, s.Leads}, s.relations,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(auditMetrics(s)...)
	if s.Metrics != nil {
		r.MustRegister(s.Metrics)
	}
	return r, m
}

func (m *httpMetrics) observe(route string, r *http.Request, code string, took time.Duration) {
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // clients must not invent label values
	}
	m.requests.WithLabelValues(route, method, code).Inc()
	if !isWatch(r) && route != claimRoute {
		m.duration.WithLabelValues(route, method).Observe(took.Seconds())
	}
}

// maxScrapes is how many answers are made of the metrics at once: each takes a
// megabyte and more.
const maxScrapes = 4

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	release, err := take(r.Context(), s.scrapes, 1, "scrapes")
	if err != nil {
		return err
	}
	defer release()
	answer := s.scraped.get(r, promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorHandling:      promhttp.ContinueOnError,
		DisableCompression: true, // the middleware compresses
	}))
	for name, values := range answer.header {
		w.Header()[name] = append(w.Header()[name], values...) // it may vary for others, too
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(answer.code)
	_, err = w.Write(answer.body.Bytes())
	return err
}

package handlers

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of handlers. Those of their queues are called as client-go's are
// (k8s.io/component-base/metrics/prometheus/workqueue), so that existing dashboards fit.
type metrics struct {
	m *Manager

	adds, retries  *prometheus.CounterVec
	waited, worked *prometheus.HistogramVec
	depth          *prometheus.Desc
	unfinished     *prometheus.Desc
	longest        *prometheus.Desc
	pending        *prometheus.Desc
	oldest         *prometheus.Desc
	dead           *prometheus.Desc
	known          *prometheus.Desc
	up             *prometheus.Desc
	delivered      *prometheus.Desc
	failed         *prometheus.Desc
	filterErrors   *prometheus.Desc
}

func newMetrics(m *Manager) *metrics {
	buckets := prometheus.ExponentialBuckets(10e-9, 10, 12) // client-go's: 10 ns to 1,000 s
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"name"}, labels...), nil)
	}
	return &metrics{
		m: m,
		adds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_adds_total",
			Help: "Keys that a handler's queue was given."}, []string{"name"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_retries_total",
			Help: "Deliveries of a handler that failed."}, []string{"name"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_queue_duration_seconds", Buckets: buckets,
			Help: "How long a key was pending before a delivery of it began."}, []string{"name"}),
		worked: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_work_duration_seconds", Buckets: buckets,
			Help: "How long a delivery took, or a claim was held."}, []string{"name"}),
		depth:        of("workqueue_depth", "Keys of a handler that wait for a delivery."),
		unfinished:   of("workqueue_unfinished_work_seconds", "For how long the deliveries under way have been, together."),
		longest:      of("workqueue_longest_running_processor_seconds", "For how long the longest of them has been."),
		pending:      of("informerd_handler_pending", "Keys of a handler to be delivered, those in flight and tried again included."),
		oldest:       of("informerd_handler_oldest_pending_seconds", "For how long the oldest pending key has been."),
		dead:         of("informerd_handler_dead_letters", "Keys whose delivery was given up."),
		known:        of("informerd_handler_known", "Keys that were delivered, or noted as known."),
		up:           of("informerd_handler_state", "1 for the state that a handler is in.", "state"),
		delivered:    of("informerd_handler_delivered_total", "Deliveries that were taken."),
		failed:       of("informerd_handler_failed_total", "Deliveries that were not."),
		filterErrors: of("informerd_handler_filter_errors_total", "Objects that the filter of a handler had no value for."),
	}
}

// Describe implements prometheus.Collector.
func (m *Manager) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range m.metrics.vecs() {
		v.Describe(ch)
	}
	c := m.metrics
	for _, d := range []*prometheus.Desc{c.depth, c.unfinished, c.longest, c.pending, c.oldest, c.dead, c.known, c.up, c.delivered, c.failed, c.filterErrors} {
		ch <- d
	}
}

func (c *metrics) vecs() []prometheus.Collector {
	return []prometheus.Collector{c.adds, c.retries, c.waited, c.worked}
}

// Collect implements prometheus.Collector.
func (m *Manager) Collect(ch chan<- prometheus.Metric) {
	c := m.metrics
	for _, v := range c.vecs() {
		v.Collect(ch)
	}
	for _, h := range m.all() {
		c.collect(ch, h)
	}
}

func (c *metrics) collect(ch chan<- prometheus.Metric, h *running) {
	s := h.status()
	depth, unfinished, longest := h.work(time.Now())
	for _, of := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{c.depth, prometheus.GaugeValue, float64(depth)},
		{c.unfinished, prometheus.GaugeValue, unfinished.Seconds()},
		{c.longest, prometheus.GaugeValue, longest.Seconds()},
		{c.pending, prometheus.GaugeValue, float64(s.Pending)},
		{c.oldest, prometheus.GaugeValue, s.OldestSeconds},
		{c.dead, prometheus.GaugeValue, float64(s.Dead)},
		{c.known, prometheus.GaugeValue, float64(s.Known)},
		{c.delivered, prometheus.CounterValue, float64(s.Delivered)},
		{c.failed, prometheus.CounterValue, float64(s.Failed)},
		{c.filterErrors, prometheus.CounterValue, float64(s.FilterErrors)},
	} {
		ch <- prometheus.MustNewConstMetric(of.desc, of.kind, of.value, h.name)
	}
	for _, state := range []string{stateActive, stateWaiting, statePaused, stateDown} {
		value := 0.0
		if s.State == state {
			value = 1
		}
		ch <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, value, h.name, state)
	}
}

// work is how many keys wait, and for how long the deliveries under way have been: together,
// and the longest.
func (h *running) work(now time.Time) (depth int, together, longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, began := range h.began {
		together += now.Sub(began)
		longest = max(longest, now.Sub(began))
	}
	return h.queue.Len(), together, longest
}

// observed gives the times of one handler to metrics.
type observed struct {
	waits, works prometheus.Observer
	adds, retry  prometheus.Counter
}

func (c *metrics) of(name string) *observed {
	return &observed{c.waited.WithLabelValues(name), c.worked.WithLabelValues(name),
		c.adds.WithLabelValues(name), c.retries.WithLabelValues(name)}
}

func (c *metrics) forget(name string) {
	c.waited.DeleteLabelValues(name)
	c.worked.DeleteLabelValues(name)
	c.adds.DeleteLabelValues(name)
	c.retries.DeleteLabelValues(name)
}

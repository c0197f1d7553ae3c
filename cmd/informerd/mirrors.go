package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/plan"
	"github.com/informerd/informerd/persist/mirror"
)

// mirrors are the mirror for SQL of what the rules have mirrored, which is in the database of
// the snapshot. Where a file, or nothing, is in its place there is none.
type mirrors struct {
	mirror *mirror.Mirror // nil: none
}

// newMirrors makes the mirror. It runs where nothing is to be mirrored, too: rows of what a
// rule had mirrored before are to go.
func newMirrors(all *fleet, factory *replica.Factory, db store, absent *absences, interval time.Duration, log *slog.Logger) mirrors {
	tables, ok := db.(cache.Mirrors)
	if !ok {
		return mirrors{}
	}
	caches := handlerCaches{factory, all.knows, absent}
	rests := func() bool { return false }
	if shared, ok := db.(interface{ IsStandby() bool }); ok {
		rests = shared.IsStandby
	}
	return mirrors{mirror.New(mirror.Options{
		Rests:  rests,
		Tables: tables, Interval: interval, Log: log,
		Views: func() (views []*cache.View) {
			rules := all.config().Resources
			for _, i := range factory.Informers() {
				if v := i.View(); v.Spec.Watch && plan.Mirrored(rules, v.Spec.GVR) {
					views = append(views, v)
				}
			}
			return views
		},
		Gone: func(r cache.Resource) bool {
			return !plan.Mirrored(all.config().Resources, r.GVR) || !all.knows(r.Cluster) || caches.Lacks(r.Cluster, r.GVR.GroupResource())
		},
	})}
}

// Run mirrors until ctx ends.
func (m mirrors) Run(ctx context.Context) error {
	if m.mirror == nil {
		return nil
	}
	return m.mirror.Run(ctx)
}

// forget has the rows of a cluster deleted that was removed.
func (m mirrors) forget(cluster string) {
	if m.mirror != nil {
		m.mirror.Forget(cluster)
	}
}

// health is what a server shows of it.
func (m mirrors) health() (on bool, trouble string) {
	if m.mirror == nil {
		return false, ""
	}
	s := m.mirror.Status()
	return s.Resources > 0, s.Err
}

func mirrorDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("informerd_mirror_"+name, help, nil, nil)
}

var (
	mirrorResources = mirrorDesc("resources", "Resources that are mirrored for SQL.")
	mirrorPending   = mirrorDesc("pending_objects", "Objects whose rows are to be written.")
	mirrorCommits   = mirrorDesc("commits_total", "Transactions of the mirror that were committed.")
	mirrorFailures  = mirrorDesc("failures_total", "Transactions of the mirror that failed.")
	mirrorSeconds   = mirrorDesc("commit_seconds_total", "Time spent in transactions of the mirror.")
	mirrorWritten   = mirrorDesc("rows_written_total", "Rows that were written.")
	mirrorDeleted   = mirrorDesc("rows_deleted_total", "Rows that were deleted.")
	mirrorAltered   = mirrorDesc("rows_altered_total", "Written rows that SQL cannot hold as they are.")
	mirrorTime      = mirrorDesc("last_commit_timestamp_seconds", "When the mirror was written last.")
)

// Describe implements prometheus.Collector.
func (m mirrors) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{mirrorResources, mirrorPending, mirrorCommits, mirrorFailures, mirrorSeconds, mirrorWritten, mirrorDeleted, mirrorAltered, mirrorTime} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. There is nothing to show of a mirror that never
// had anything to do.
func (m mirrors) Collect(ch chan<- prometheus.Metric) {
	if m.mirror == nil {
		return
	}
	s := m.mirror.Status()
	if s.Resources == 0 && s.Commits == 0 && s.Failures == 0 {
		return
	}
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	gauge(mirrorResources, float64(s.Resources))
	gauge(mirrorPending, float64(s.Pending))
	counter(mirrorCommits, float64(s.Commits))
	counter(mirrorFailures, float64(s.Failures))
	counter(mirrorSeconds, s.CommitSeconds)
	counter(mirrorWritten, float64(s.Written))
	counter(mirrorDeleted, float64(s.Deleted))
	counter(mirrorAltered, float64(s.Altered))
	if !s.LastCommit.IsZero() {
		gauge(mirrorTime, float64(s.LastCommit.UnixMilli())/1000)
	}
}

// collectors are several in one.
type collectors []prometheus.Collector

// allMetrics are those there are of all; nil is none.
func allMetrics(all ...prometheus.Collector) prometheus.Collector {
	var some collectors
	for _, one := range all {
		if one != nil {
			some = append(some, one)
		}
	}
	return some
}

// Describe implements prometheus.Collector.
func (c collectors) Describe(ch chan<- *prometheus.Desc) {
	for _, one := range c {
		one.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (c collectors) Collect(ch chan<- prometheus.Metric) {
	for _, one := range c {
		one.Collect(ch)
	}
}

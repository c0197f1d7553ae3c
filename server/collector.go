package server

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/informerd/informerd/cache"
)

var states = []cache.State{
	cache.Unwatched, cache.Syncing, cache.Warm, cache.Live, cache.Stale, cache.Forbidden, cache.Failed,
}

// metric is one number of a resource.
type metric struct {
	desc  *prometheus.Desc
	typ   prometheus.ValueType
	value func(cache.Status) (float64, bool) // false: not known, left out
}

var resourceLabels = []string{"cluster", "group", "version", "resource"}

func resourceMetric(typ prometheus.ValueType, name, help string, value func(cache.Status) (float64, bool)) metric {
	return metric{prometheus.NewDesc("informerd_"+name, help, resourceLabels, nil), typ, value}
}

func gauge(name, help string, value func(cache.Status) (float64, bool)) metric {
	return resourceMetric(prometheus.GaugeValue, name, help, value)
}

func counter(name, help string, value func(cache.Status) uint64) metric {
	return resourceMetric(prometheus.CounterValue, name, help, func(s cache.Status) (float64, bool) {
		return float64(value(s)), true
	})
}

var resourceMetrics = []metric{
	gauge("objects", "Objects held.", func(s cache.Status) (float64, bool) { return float64(s.Objects), true }),
	gauge("bytes", "Bytes held: JSON and indexed values, compressed.", func(s cache.Status) (float64, bool) { return float64(s.Bytes), true }),
	gauge("raw_bytes", "Bytes of JSON held, before compression.", func(s cache.Status) (float64, bool) { return float64(s.RawBytes), true }),
	gauge("excerpt_bytes", "Bytes of excerpts of objects, kept for questions that are asked again and again.", func(s cache.Status) (float64, bool) { return float64(s.ColumnBytes), true }),
	gauge("dictionaries", "Dictionaries that objects are compressed with; more than one while they are compressed anew.", func(s cache.Status) (float64, bool) { return float64(s.Dictionaries), true }),
	gauge("templates", "Objects as they were once, of which their siblings are held as what is different.", func(s cache.Status) (float64, bool) { return float64(s.Templates), true }),
	counter("dictionary_trainings_total", "Dictionaries trained, but for that of the first list.", func(s cache.Status) uint64 { return s.Trainings }),
	counter("repacked_total", "Objects compressed anew with another dictionary.", func(s cache.Status) uint64 { return s.Repacked }),
	gauge("resource_version", "The resourceVersion everything up to which is held, where it is a number.", versionOf),
	gauge("last_event_timestamp_seconds", "When the last change was applied.", func(s cache.Status) (float64, bool) { return seconds(s.LastEvent) }),
	gauge("age_seconds", "Seconds since the API server last proved the copy current; absent while that is not known.", ageOf),
	gauge("last_proof_timestamp_seconds", "When the API server last proved the copy current.", func(s cache.Status) (float64, bool) { return seconds(s.Proof) }),
	gauge("last_contact_timestamp_seconds", "The former name of last_proof_timestamp_seconds.", func(s cache.Status) (float64, bool) { return seconds(s.Proof) }),
	gauge("last_verified_timestamp_seconds", "When the copy was last compared with the API server and found equal.", func(s cache.Status) (float64, bool) { return seconds(s.Verified) }),
	gauge("snapshot_timestamp_seconds", "When the snapshot of the resource was last committed.", func(s cache.Status) (float64, bool) { return seconds(s.SnapshotAt) }),
	gauge("subscribers", "Readers following the changes.", func(s cache.Status) (float64, bool) { return float64(s.Subscribers), true }),
	counter("events_total", "Changes applied.", func(s cache.Status) uint64 { return s.Events }),
	counter("relists_total", "Full synchronizations, the first one included.", func(s cache.Status) uint64 { return s.Relists }),
	counter("comparisons_total", "Relists of metadata only, after which the objects that changed were got.", func(s cache.Status) uint64 { return s.Compared }),
	counter("comparison_fetches_total", "Objects that those found changed.", func(s cache.Status) uint64 { return s.Fetched }),
	counter("expired_total", "Watches the API server answered with 410.", func(s cache.Status) uint64 { return s.Expired }),
	counter("restarts_total", "Watches reopened without a full synchronization.", func(s cache.Status) uint64 { return s.Restarts }),
	counter("unextracted_total", "Values that could not be indexed.", func(s cache.Status) uint64 { return s.Unextracted }),
	counter("undecoded_total", "Objects refused by the decoder.", func(s cache.Status) uint64 { return s.Undecoded }),
	counter("mended_total", "Differences to the API server found by verification and mended.", func(s cache.Status) uint64 { return s.Mended }),
	counter("snapshot_drops_total", "Snapshots of the resource thrown away.", func(s cache.Status) uint64 { return s.SnapshotDrops }),
}

var (
	stateDesc = prometheus.NewDesc("informerd_resource_state",
		"1 for the state the resource is in, 0 for the others.", append(resourceLabels[:4:4], "state"), nil)
	lagDesc = prometheus.NewDesc("informerd_resource_version_lag",
		"How far resource_version is behind the highest one of the cluster; it grows while a resource does not change and falls with the next bookmark.",
		resourceLabels, nil)
	clusterDesc = prometheus.NewDesc("informerd_cluster_reachable",
		"1 while the last request to the API server was answered.", []string{"cluster"}, nil)

	leaseDesc = prometheus.NewDesc("informerd_lease_seconds",
		"For how long a proof that a copy is current lasts: a resource is live no longer than that after it.", nil, nil)

	leadsDesc = prometheus.NewDesc("informerd_leads", "1 while this is the replica that others follow.", nil, nil)

	snapshotEnabled  = snapshotDesc("enabled", "1 while snapshots are written.")
	snapshotBytes    = snapshotDesc("bytes", "Size of the snapshot file.")
	snapshotCommits  = snapshotDesc("commits_total", "Transactions committed.")
	snapshotFailures = snapshotDesc("failures_total", "Transactions that failed.")
	snapshotSeconds  = snapshotDesc("commit_seconds_total", "Time spent in transactions.")
	snapshotTime     = snapshotDesc("last_commit_timestamp_seconds", "When the last transaction was committed.")
)

func snapshotDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("informerd_snapshot_"+name, help, nil, nil)
}

// collector reads the statuses at each scrape, so that there is nothing to keep
// in step and a resource that is gone is gone here, too.
type collector struct {
	caches Caches
	lease  time.Duration
	leads  func() bool // nil: there are no other replicas
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range resourceMetrics {
		ch <- m.desc
	}
	for _, d := range []*prometheus.Desc{stateDesc, lagDesc, clusterDesc, leaseDesc, leadsDesc, snapshotEnabled, snapshotBytes,
		snapshotCommits, snapshotFailures, snapshotSeconds, snapshotTime} {
		ch <- d
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	resources := c.caches.Resources()
	statuses := make([]cache.Status, len(resources))
	for n, r := range resources {
		statuses[n] = r.Status()
	}
	highest := highestVersions(statuses)
	for _, s := range statuses {
		collectResource(ch, s, highest[s.Spec.Cluster])
	}
	for _, cluster := range c.caches.Clusters() {
		ch <- constant(clusterDesc, prometheus.GaugeValue, bit(cluster.Reachable), cluster.Name)
	}
	ch <- constant(leaseDesc, prometheus.GaugeValue, c.lease.Seconds())
	if c.leads != nil {
		ch <- constant(leadsDesc, prometheus.GaugeValue, bit(c.leads()))
	}
	c.collectSnapshot(ch)
}

func collectResource(ch chan<- prometheus.Metric, s cache.Status, highest float64) {
	gvr := s.Spec.GVR
	labels := []string{s.Spec.Cluster, gvr.Group, gvr.Version, gvr.Resource}
	for _, state := range states {
		ch <- constant(stateDesc, prometheus.GaugeValue, bit(s.State == state), append(labels[:4:4], string(state))...)
	}
	if s.State == cache.Unwatched {
		return
	}
	for _, m := range resourceMetrics {
		if v, known := m.value(s); known {
			ch <- constant(m.desc, m.typ, v, labels...)
		}
	}
	if v, known := versionOf(s); known && !s.Spec.Aggregated {
		ch <- constant(lagDesc, prometheus.GaugeValue, max(0, highest-v), labels...)
	}
}

func (c *collector) collectSnapshot(ch chan<- prometheus.Metric) {
	s := c.caches.SnapshotStatus()
	ch <- constant(snapshotEnabled, prometheus.GaugeValue, bit(s.Enabled))
	ch <- constant(snapshotBytes, prometheus.GaugeValue, float64(s.Bytes))
	ch <- constant(snapshotCommits, prometheus.CounterValue, float64(s.Commits))
	ch <- constant(snapshotFailures, prometheus.CounterValue, float64(s.Failures))
	ch <- constant(snapshotSeconds, prometheus.CounterValue, s.CommitSeconds)
	if v, known := seconds(s.LastCommit); known {
		ch <- constant(snapshotTime, prometheus.GaugeValue, v)
	}
}

// highestVersions is the highest version seen in each cluster. Aggregated API
// servers count by themselves.
func highestVersions(statuses []cache.Status) map[string]float64 {
	highest := map[string]float64{}
	for _, s := range statuses {
		if v, known := versionOf(s); known && !s.Spec.Aggregated {
			highest[s.Spec.Cluster] = max(highest[s.Spec.Cluster], v)
		}
	}
	return highest
}

// versionOf reads the version as a number, for lag and graphs only; nothing is
// decided by it.
func versionOf(s cache.Status) (float64, bool) {
	n, err := strconv.ParseUint(s.ResourceVersion, 10, 64)
	return float64(n), err == nil
}

// ageOf is of what is answered only.
func ageOf(s cache.Status) (float64, bool) {
	age, known := s.Age()
	return age.Seconds(), known && s.State.Readable()
}

func constant(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, t, v, labels...)
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) (float64, bool) {
	return float64(t.UnixMilli()) / 1000, !t.IsZero()
}

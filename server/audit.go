package server

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/audit"
)

// Audit is where it goes who asked for what, and how much they were given. *audit.Log is
// one. It never makes a request wait.
type Audit interface {
	// Begin makes the record of a request; nil if none is to be made.
	Begin(r *http.Request) *audit.Record
	// Counts are how many records were written and dropped since the start.
	Counts() (written, dropped uint64)
}

// record begins the record of a request that out answers, if there is to be one. It is in
// the context of the request: whoever finds out who asks, what they ask about, or how
// much that is, notes it there.
func (s *Server) record(out *responseWriter, r *http.Request) *http.Request {
	if s.Audit == nil {
		return r
	}
	if out.record = s.Audit.Begin(r); out.record == nil {
		return r
	}
	out.Header().Set(audit.Header, out.record.ID())
	return r.WithContext(audit.With(r.Context(), out.record))
}

// recordResource notes that a request of the query API is about one resource, or one
// object of it.
func recordResource(r *http.Request, spec cache.Spec) {
	record := audit.From(r.Context())
	if record == nil {
		return
	}
	o := objectOf(spec)
	o.Namespace, o.Name = namedIn(r)
	record.About(verbOf(r, o.Name), spec.Cluster, o)
}

// namedIn is the object that a path names, or the one namespace that a question is about.
func namedIn(r *http.Request) (namespace, name string) {
	name, err := pathValue(r, "name")
	if err == nil && name != "" {
		if namespace, err = pathValue(r, "namespace"); err != nil || namespace == "-" {
			namespace = ""
		}
		return namespace, name
	}
	query, _ := url.ParseQuery(r.URL.RawQuery)
	if all := query["namespace"]; len(all) == 1 && !cache.IsGlob(all[0]) {
		namespace = all[0]
	}
	return namespace, ""
}

func verbOf(r *http.Request, name string) string {
	switch {
	case isWatch(r):
		return string(cache.Watch)
	case name != "":
		return string(cache.Get)
	}
	return string(cache.List)
}

func objectOf(spec cache.Spec) audit.Object {
	return audit.Object{Resource: spec.GVR.Resource, APIGroup: spec.GVR.Group, APIVersion: spec.GVR.Version}
}

// recordKinds notes that a request is about many resources.
func recordKinds(r *audit.Record, kinds []*viewed, verb cache.Verb) {
	if r == nil || len(kinds) == 0 {
		return
	}
	cluster := kinds[0].view.Spec.Cluster
	several := slices.ContainsFunc(kinds, func(k *viewed) bool { return k.view.Spec.Cluster != cluster })
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if names[i] = k.view.Spec.Name(); several {
			names[i] = k.view.Spec.Cluster + "/" + names[i]
		}
	}
	if several {
		cluster = ""
	}
	r.AboutMany(string(verb), cluster, names)
}

// everything stands for all resources that somebody may see something of.
var everything = []string{"*"}

// auditMetrics are those of the audit log, which are there without one, too.
func auditMetrics(s *Server) []prometheus.Collector {
	count := func(name, help string, of func(written, dropped uint64) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "informerd_audit_" + name, Help: help}, func() float64 {
			if s.Audit == nil {
				return 0
			}
			return float64(of(s.Audit.Counts()))
		})
	}
	return []prometheus.Collector{
		count("records_total", "Lines written to the audit log.", func(written, _ uint64) uint64 { return written }),
		count("dropped_total", "Lines missing from the audit log: it could not be written, or not fast enough.", func(_, dropped uint64) uint64 { return dropped }),
	}
}

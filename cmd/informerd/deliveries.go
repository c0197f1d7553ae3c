package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/server/handlers"
)

// deliveries are the handlers of a configuration, as they run. Without a snapshot file there
// are none, since nothing would be known after a restart.
type deliveries struct {
	manager  *handlers.Manager // nil: no handler runs
	doors    *doors
	absences *absences
}

func newDeliveries(all *fleet, factory *replica.Factory, db store, doors *doors, log *slog.Logger) *deliveries {
	if db == nil {
		return &deliveries{}
	}
	absent := &absences{}
	m := handlers.NewManager(handlers.Options{Caches: handlerCaches{factory, all.knows, absent}, Ledgers: db, SaveNow: factory.SaveNow, Log: log})
	factory.SaveBeside(m)
	return &deliveries{m, doors, absent}
}

// handlersTrouble is why handlers that are configured do not run; "" if they do.
func handlersTrouble(cfg *config.Config, snapshots string) string {
	if len(cfg.Handlers) == 0 || snapshots == "" {
		return ""
	}
	return "the snapshot file, in which it is saved what was delivered, cannot be used: " + snapshots
}

// Run delivers until ctx ends.
func (d *deliveries) Run(ctx context.Context) error {
	if d.manager == nil {
		<-ctx.Done()
		return nil
	}
	return d.manager.Run(ctx)
}

// rest has all handlers wait until it is this process that delivers.
func (d *deliveries) rest(why error) {
	if d.manager != nil {
		d.manager.Rest(why)
	}
}

// surface is what a server shows; a nil *Manager would not be a nil Surface.
func (d *deliveries) surface() handlers.Surface {
	if d.manager == nil {
		return nil
	}
	return d.manager
}

func (d *deliveries) metrics() prometheus.Collector {
	if d.manager == nil {
		return nil
	}
	return d.manager
}

// apply makes the running handlers those of a configuration. If one cannot be made, all stay
// as they were.
func (d *deliveries) apply(configured []config.Handler) error {
	if d.manager == nil {
		return nil
	}
	all := make([]handlers.Handler, 0, len(configured))
	for _, c := range configured {
		h := c.Handler
		var err error
		if h.As, err = d.doors.as(c.Identity); err == nil {
			h.Sink, err = newSink(c)
		}
		if err != nil {
			for _, made := range all {
				if made.Sink != nil {
					_ = made.Sink.Close()
				}
			}
			return fmt.Errorf("handlers (line %d): %s: %w", c.Line, c.Name, err)
		}
		all = append(all, h)
	}
	return d.manager.Apply(all)
}

// handlerCaches shows the informers of a factory to handlers.
type handlerCaches struct {
	*replica.Factory
	knows    func(cluster string) bool // whether it is, or may be, one of the configuration
	absences *absences
}

var _ handlers.Caches = handlerCaches{}

func patternsOf(names []string) (all []config.Pattern) {
	for _, name := range names {
		if p, err := config.ParsePattern(name); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// Match reads names as the configuration has them.
func (f handlerCaches) Match(clusters, names []string) (all []cache.Resource) {
	patterns := patternsOf(names)
	for _, i := range f.Informers() {
		r := i.Spec().Resource
		if !i.Spec().Watch || len(clusters) > 0 && !slices.Contains(clusters, r.Cluster) {
			continue
		}
		if slices.ContainsFunc(patterns, func(p config.Pattern) bool { return p.Matches(r.GVR.GroupResource()) }) {
			all = append(all, r)
		}
	}
	return all
}

// Names reads names as Match does.
func (f handlerCaches) Names(clusters, names []string, cluster string, r schema.GroupResource) bool {
	if !f.knows(cluster) || len(clusters) > 0 && !slices.Contains(clusters, cluster) {
		return false
	}
	return slices.ContainsFunc(patternsOf(names), func(p config.Pattern) bool { return p.Matches(r) })
}

// Resource finds one that is left out by the rules, too: its objects have not gone.
func (f handlerCaches) Resource(cluster string, r schema.GroupResource) (handlers.Resource, bool) {
	for _, i := range f.Informers() {
		if of := i.Spec(); of.Cluster == cluster && of.GVR.GroupResource() == r {
			return i, true
		}
	}
	return nil, false
}

// Lacks is sure once the informers are those of what the cluster has told.
func (f handlerCaches) Lacks(cluster string, r schema.GroupResource) bool {
	return f.absences.lacks(cluster, r) && slices.ContainsFunc(f.Clusters(), func(c cache.ClusterStatus) bool { return c.Name == cluster && c.Discovered })
}

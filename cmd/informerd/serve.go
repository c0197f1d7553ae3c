package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/health"
	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/collect"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/persist"
	"github.com/informerd/informerd/server"
	"github.com/informerd/informerd/server/kubeapi"
	"github.com/informerd/informerd/web"
)

func newServeCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Replicate clusters and answer queries",
		Long: `Watches the clusters of the configuration and serves their copy over HTTP until
SIGTERM or SIGINT; a second signal ends it at once. SIGHUP reads the
configuration again, as does a change of the file.

Without a configuration file everything is watched but leases and events, and
the values of Secrets are left out.`,
		Example: `  informerd serve
  informerd serve --config config.yaml
  informerd serve --kubeconfig dev.kubeconfig --context admin --listen 127.0.0.1:0
  informerd serve --snapshot ""         # in memory only`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer collect.Bound()()
			return serve(cmd.Context(), &s, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.configFlag(cmd)
	s.clusterFlags(cmd)
	s.serveFlags(cmd)
	return cmd
}

// serve runs the replica until ctx ends. Everything is started here and stops in
// the order that the end of this function shows.
func serve(ctx context.Context, s *settings, stdout, stderr io.Writer) (err error) {
	start := time.Now()
	cfg, err := s.load()
	if err != nil {
		return err
	}
	if err := cfg.CheckReplicas(); err != nil {
		return usagef("%w", err)
	}
	out := newConsole(stderr)
	level := &slog.LevelVar{}
	level.Set(logLevel(cfg.Log))
	log := newLogger(out, cfg.Log.Format, level)
	routeKlog(log)
	log.Info("starting", "version", buildVersion(), "configuration", s.name())
	limitMemory(memlimit.FromCgroup, log)
	addProcessors()

	// The Lease is given back when nothing is written any more.
	team, err := newTeam(cfg, log)
	if err != nil {
		return err
	}
	defer team.stop()
	db, reason := openSnapshot(ctx, cfg, log)
	if db != nil {
		defer func() { err = errors.Join(err, closeSnapshot(db)) }()
	}
	var clusters *fleet // made before any cluster is
	options := factoryOptions(cfg, db, reason, log)
	var forgotten *forgetter // made before any cluster is
	options.NotForgotten = func() { forgotten.again() }
	options.Other = func(cluster string) { clusters.other(cluster) }
	factory := replica.NewFactory(options)
	ups := &upstreams{}
	doors := newDoors(cfg, newRoleBooks(cfg, factory), log)
	if err := doors.check(); err != nil {
		return err
	}
	clusters = newFleet(cfg, factory, func() []cache.Saved { return savedCopies(db, log) }, log)
	clusters.route = team.route()
	records, err := openAudit(cfg.Audit, stdout, log)
	if err != nil {
		return err
	}
	deliveries := newDeliveries(clusters, factory, db, doors, log)
	if err := deliveries.apply(cfg.Handlers); err != nil {
		return err
	}
	mirrored := newMirrors(clusters, factory, db, deliveries.absences, cfg.Snapshot.Interval, log)
	var modes atomic.Value // kubeapi.Modes
	modes.Store(cfg.Kubernetes)
	srv, err := server.New(server.Options{
		Addr: cfg.Listen, TLS: cfg.TLS, Caches: &factoryCaches{Factory: factory}, Upstream: ups.get,
		Documents: documents(db),
		Modes:     func() kubeapi.Modes { return modes.Load().(kubeapi.Modes) },
		Log:       log, Web: web.FS(), Version: buildVersion(), Lease: replica.Lease,
		References: cfg.References, SearchTexts: cfg.Search.Texts, Prepare: cfg.Prepare,
		Access: doors.access(), AccessTrouble: doors.trouble, PlainHTTP: cfg.PlainHTTP, Leads: team.leads(),
		Audit:    recorder(records),
		Handlers: deliveries.surface(), HandlersTrouble: handlersTrouble(cfg, reason), Mirror: mirrored.health, Metrics: allMetrics(deliveries.metrics(), mirrored), MetricsAge: time.Second,
	})
	if err != nil {
		return err
	}
	if err := srv.Listen(); err != nil {
		return err
	}
	profiles, err := listenProfiles(cfg.Pprof, log)
	if err != nil {
		return err
	}
	clusters.added = append(clusters.added, doors.add)
	clusters.connected = append(clusters.connected, ups.connect, doors.connect)
	clusters.heard = deliveries.hear
	clusters.removed = append(clusters.removed, ups.remove, srv.Forget, doors.remove, deliveries.remove, mirrored.forget)
	forgotten = newForgetter(db, clusters.present, log)
	clusters.removed = append(clusters.removed, func(string) { forgotten.again() })
	clusters.settled = func(rules []config.Rule, all []config.Cluster) {
		forgotten.forget(rules, all)
		var names []string
		for _, c := range all {
			names = append(names, c.Name)
		}
		srv.KeepOnly(names)
	}
	var redelivering sync.Mutex // who comes last has the last configuration
	redeliver := func() {
		redelivering.Lock()
		defer redelivering.Unlock()
		if err := deliveries.apply(clusters.config().Handlers); err != nil {
			log.Error("not all handlers are as the configuration has them", "err", err)
		}
	}
	clusters.changed = redeliver
	team.start(db, deliveries, clusters)
	clusters.start()
	reloads := &reloader{settings: s, log: log, running: cfg}
	reloads.apply = func(next *config.Config) {
		level.Set(logLevel(next.Log))
		modes.Store(next.Kubernetes)
		if err := srv.Declare(next.References, next.Search.Texts); err != nil {
			log.Error("references and texts stay as they were", "err", err)
		}
		clusters.configure(next)
		redeliver()
		forgotten.again()
	}
	shown := newProgress(out, log, start, srv.URL(), factory, clusters)

	// Deliveries end first, so that the last save holds what came of them. Then the informers stop, and what they brought is saved; then the event
	// streams tell the rest of it and end. So a client has seen all that the
	// snapshot holds, and resumes after a restart without a gap. What was asked until
	// then is recorded last. No writer is left when the snapshot is closed.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecording()
	g, ctx := errgroup.WithContext(ctx)
	copying, stopCopying := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCopying()
	g.Go(func() error {
		defer stopCopying()
		return deliveries.Run(ctx)
	})
	g.Go(func() error {
		defer stopServing()
		return factory.Run(copying)
	})
	g.Go(func() error {
		defer stopRecording()
		return srv.Run(serving)
	})
	g.Go(func() error { return mirrored.Run(copying) })
	if records != nil {
		g.Go(func() error { return records.Run(recording) })
	}
	if profiles != nil {
		g.Go(func() error { return profiles.Run(ctx) })
	}
	g.Go(func() error { return clusters.Run(ctx) })
	g.Go(func() error { return reloads.Run(ctx) })
	g.Go(func() error { return shown.Run(ctx) })
	g.Go(func() error { return forgotten.Run(ctx) })
	err = g.Wait()
	log.Info("stopped", "duration", time.Since(start).Round(time.Millisecond))
	return err
}

func factoryOptions(cfg *config.Config, db store, reason string, log *slog.Logger) replica.Options {
	options := replica.Options{
		SnapshotsDisabled: reason,
		SaveInterval:      cfg.Snapshot.Interval,
		Concurrency:       cfg.Syncs,
		VerifyInterval:    cfg.Verify.Interval,
		Sound:             health.SoundOf,
		Tighten:           collect.Tighten,
		Log:               log,
	}
	if db != nil { // no store is no Snapshots
		options.Snapshots = db
	}
	return options
}

// documents is where the server keeps documents; no store is no kubeapi.Documents.
func documents(db store) kubeapi.Documents {
	if db == nil {
		return nil
	}
	return db
}

// store is what outlives the process: a file, or tables of a database.
type store interface {
	cache.Snapshots
	cache.Ledgers
	kubeapi.Documents
	Close() error
}

var (
	_ store = (*persist.DB)(nil)
	_ store = (*persist.Postgres)(nil)
)

// openSnapshot opens the snapshot. Whatever is wrong with it, informerd serves on from
// memory: of a file that cannot be used db is nil, and reason says why; a database is asked
// again and again. A first save rests for three times as long as it works, until ctx ends:
// graph and search are prepared at the same time, and events come first.
func openSnapshot(ctx context.Context, c *config.Config, log *slog.Logger) (db store, reason string) {
	cfg := c.Snapshot
	if !cfg.Kept() {
		return nil, "left out by the configuration"
	}
	if p := cfg.Postgres; p != nil {
		db, err := persist.OpenPostgres(persist.PostgresOptions{URL: p.URL, PasswordFile: p.PasswordFile, Schema: p.Schema, Standby: c.Replicas != nil, Log: log})
		if err != nil {
			log.Error("cannot use the database of the snapshot, serving from memory only", "err", err)
			return nil, err.Error()
		}
		return db, ""
	}
	keys, err := keyFile(cfg.KeyFile).read()
	if err == nil { // without its keys nothing may be written
		file, ferr := persist.Open(persist.Options{Path: cfg.Path, Keys: keys, Log: log, Pause: func(took time.Duration) { sleepFor(ctx, 3*took) }})
		if ferr == nil {
			held := file.Stats()
			collect.Expect(uint64(max(0, held.FileBytes-held.FreeBytes)))
			return file, ""
		}
		err = ferr
	}
	log.Error("cannot use the snapshot, serving from memory only", "path", cfg.Path, "err", err)
	return nil, err.Error()
}

func closeSnapshot(db store) error {
	if err := db.Close(); err != nil {
		return fmt.Errorf("close snapshot: %w", err)
	}
	return nil
}

// savedCopies are those of the snapshot. Nothing about a snapshot is a reason not to start.
func savedCopies(db store, log *slog.Logger) []cache.Saved {
	if db == nil {
		return nil
	}
	saved, err := db.Saved()
	if err != nil {
		log.Warn("cannot read what the snapshot holds, starting cold", "err", err)
	}
	return saved
}

func newProgress(out *console, log *slog.Logger, start time.Time, url string, factory *replica.Factory, clusters *fleet) *progress {
	return &progress{
		console: out, log: log, start: start, url: url,
		clusters: factory.Clusters,
		statuses: func() []cache.Status {
			var all []cache.Status
			for _, i := range factory.Informers() {
				all = append(all, i.Status())
			}
			return all
		},
		discovered: clusters.discovered,
	}
}

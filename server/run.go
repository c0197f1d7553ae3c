package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/fair"
	"github.com/informerd/informerd/server/kubeapi"
)

const (
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
)

// Server is one HTTP server over the caches. New makes it, Run serves until its
// context ends. It may be asked through Handler without ever running.
type Server struct {
	Options
	log        *slog.Logger
	hosts      []string
	parameters map[string][]string // of each route
	posts      map[string]bool     // the routes that are for POST
	handler    http.Handler
	compress   func(http.Handler) http.Handler
	registry   *prometheus.Registry
	metrics    *httpMetrics
	requests   *fair.Places
	short      *fair.Places // requests that are answered with one object or document
	watches    *fair.Places // by the number of resources that each follows
	passed     *fair.Places // requests of the Kubernetes API that its API server answers
	scrapes    *fair.Places // of the metrics
	scraped    *scrapeCache
	turns      *fair.Turns
	memory     *memory
	pager      *cache.Pager[*kindsAnswer] // of lists over many resources
	relations  *relations
	kube       *kubeapi.API
	schemas    kindSchemas
	pageFiles  sync.Map       // *pageFile by name
	cert       *certificate   // nil: plain HTTP
	taken      sync.WaitGroup // requests whose connection is a WebSocket
	began      time.Time      // when it was made
	wasReady   atomic.Bool    // see readiness

	// stopping ends when the event streams must.
	stopping context.Context
	stop     context.CancelFunc

	mu       sync.Mutex // guards listener
	listener net.Listener
}

// New makes a server. It refuses an address that it is not safe to listen on, with
// the reason, and a certificate that is none.
func New(opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Options:    opts,
		log:        opts.Log,
		began:      time.Now(),
		parameters: map[string][]string{},
		posts:      map[string]bool{},
		requests:   fair.NewPlaces(opts.MaxConcurrent),
		short:      fair.NewPlaces(opts.MaxConcurrent),
		watches:    fair.NewPlaces(opts.MaxWatches),
		passed:     fair.NewPlaces(opts.MaxPassed),
		scrapes:    fair.NewPlaces(maxScrapes),
		scraped:    newScrapeCache(opts.MetricsAge),
		turns:      fair.NewTurns(cache.Workers(), fair.Overdue),
		pager:      cache.NewPager[*kindsAnswer]("query", rand.Text(), cache.StoreOptions{}),
	}
	s.memory = newMemory(s.forgetColumns)
	if s.relations, err = newRelations(opts); err != nil {
		return nil, err
	}
	if opts.TLS != (TLS{}) {
		if s.cert, err = loadCertificate(opts.TLS, s.log); err != nil {
			return nil, err
		}
	}
	for _, h := range opts.Hosts {
		s.hosts = append(s.hosts, hostName(h))
	}
	if s.compress, err = compressor(); err != nil {
		return nil, err
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.registry, s.metrics = newRegistry(s)
	s.kube = s.newKube()
	s.schemas.api = s.kube
	s.handler = s.routes()
	return s, nil
}

// Handler serves the whole API, without the limits of a listening server.
func (s *Server) Handler() http.Handler { return s.handler }

// Listen opens the address, so that Addr is known and a taken port is an error
// before anything else starts. Run does it if it was not done.
func (s *Server) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.Options.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	// "localhost" is whatever the resolver says.
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		if err := CheckAddr(a.String(), s.exposure()); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	s.listener = l
	return nil
}

// Addr is the address listened on, with the real port; the configured one
// before Listen.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return s.Options.Addr
	}
	return s.listener.Addr().String()
}

// URL is where the server is reached.
func (s *Server) URL() string {
	if s.cert != nil {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

// Run serves until ctx ends, then ends the event streams, waits for the other
// requests and returns nil. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	defer s.stop()
	if err := s.Listen(); err != nil {
		return err
	}
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ConnContext:       withConn,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.log.Info("serving", "address", s.Addr(), "url", s.URL())
	keeping, cancel := context.WithCancel(ctx)
	var kept sync.WaitGroup
	kept.Go(func() { s.keepAll(keeping) })
	defer kept.Wait()
	defer cancel()

	served := make(chan error, 1)
	if s.cert == nil {
		go func() { served <- srv.Serve(s.listener) }()
	} else {
		srv.TLSConfig = s.tlsConfig()
		go func() { served <- srv.ServeTLS(s.listener, "", "") }()
		defer s.cert.follow(ctx)()
	}
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	err := s.shutdown(srv)
	<-served
	return err
}

// tlsConfig asks clients for a certificate where that may say who they are. Which one
// counts is decided for each request: authorities change while connections last.
func (s *Server) tlsConfig() *tls.Config {
	c := &tls.Config{GetCertificate: s.cert.get, MinVersion: tls.VersionTLS12}
	if s.Access != nil {
		c.ClientAuth = tls.RequestClientCert
	}
	return c
}

// streamGrace is how long event streams may go on at the end. Those of closed
// stores tell what is left and end by themselves, within milliseconds.
const streamGrace = 500 * time.Millisecond

// shutdown ends the streams: Shutdown alone would wait for them, less those that are
// WebSockets, which it does not know.
func (s *Server) shutdown(srv *http.Server) error {
	grace := time.AfterFunc(streamGrace, s.stop)
	defer grace.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), s.ShutdownTimeout)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("requests cut off at shutdown", "duration", s.ShutdownTimeout)
		return srv.Close()
	}
	s.awaitTaken(ctx)
	return err
}

// Forget forgets what was said of a cluster that is there no more.
func (s *Server) Forget(cluster string) { s.kube.Forget(cluster) }

// KeepOnly forgets every cluster but these, as those that were there before a restart.
func (s *Server) KeepOnly(clusters []string) { s.kube.KeepOnly(clusters) }

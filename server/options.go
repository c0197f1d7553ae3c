package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/informerd/informerd/cache/graph"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/kubeapi"
)

// Options configures a Server. The zero value of every field but Caches is
// useful.
type Options struct {
	// Addr is the host:port to listen on, default 127.0.0.1:8080; port 0 takes
	// a free one. See CheckAddr.
	Addr string
	// TLS is what is served with, if it is given.
	TLS TLS
	// PlainHTTP lets an address beyond loopback be served without TLS.
	PlainHTTP bool
	// AccessTrouble is why who asks, or what they may, cannot be told of a cluster
	// now; "" if it can. Nil: it always can.
	AccessTrouble func(cluster string) string
	// Caches is what is served. Required.
	Caches Caches
	// Log gets server errors at Error, requests refused and failed at Debug.
	// Default: discarded.
	Log *slog.Logger
	// Web holds the browser page, index.html at its root. Its files must not change.
	// Nil: no page.
	Web fs.FS
	// Version is what /metrics says of the build.
	Version string
	// Hosts are further names, without port, accepted in the Host header, for
	// a proxy on this machine that passes on the name it was asked for. Names
	// and addresses of loopback are always accepted.
	Hosts []string

	// References are edges of the graph beside the built-in ones.
	References []graph.Rule
	// SearchTexts are paths whose values can be searched, by resource as
	// kubectl names it.
	SearchTexts map[string][]string
	// Prepare is what is computed of all objects before anybody asks.
	Prepare Prepared

	// Access finds out who makes a request; its error is the answer, 401 unless it is
	// an *apierrors.StatusError. Nil: everyone may see everything.
	Access func(*http.Request) (access.Asker, error)

	// Audit gets who asked for what; nil: it is not recorded.
	Audit Audit

	// Handlers are those that deliver changes. Nil: there are none.
	Handlers handlers.Surface
	// HandlersTrouble is why Handlers is nil although some are configured.
	HandlersTrouble string

	// Mirror says whether anything is mirrored for SQL, and why that cannot be done now. Nil:
	// nothing is.
	Mirror func() (on bool, trouble string)

	// Metrics are shown on /metrics beside the server's own. Nil: none.
	Metrics prometheus.Collector
	// MetricsAge is for how long an answer made of the metrics is given again: it is some
	// thousand lines, made in one go, and the same for all who may read it. 0: never.
	MetricsAge time.Duration

	// Leads reports whether this is the replica that others follow. Nil: there are no others,
	// and whoever follows this one is another cluster's second tier.
	Leads func() bool

	// Upstream finds the API server of a cluster, for what the Kubernetes API
	// cannot answer from a copy. Nil: it answers from copies only.
	Upstream func(cluster string) kubeapi.Upstream
	// Documents keeps what API servers say about themselves beyond the process.
	// Nil: it is forgotten.
	Documents kubeapi.Documents
	// Modes says how the Kubernetes API reads and what it passes on; it is asked
	// for each request. Nil: cached reads, nothing is passed on.
	Modes func() kubeapi.Modes

	// MaxWatches bounds the event streams open at once, default 10000.
	MaxWatches int
	// MaxConcurrent bounds the other requests at once, default 100.
	MaxConcurrent int
	// MaxPassed bounds those that are passed on to an API server, beside the
	// others, default 100.
	MaxPassed int
	// Lease is for how long a proof that a copy is current lasts, as the Caches
	// have it, default 75 s. A cluster that proves nothing for longer is told by
	// /readyz.
	Lease time.Duration
	// RequestTimeout bounds a request that is not a watch, its answer
	// included, default 60 s.
	RequestTimeout time.Duration
	// WriteTimeout bounds each write to a client, default 30 s: one that does
	// not read for so long is dropped, watches included.
	WriteTimeout time.Duration
	// ShutdownTimeout bounds the wait for running requests at the end of Run,
	// default 10 s.
	ShutdownTimeout time.Duration
	// Heartbeat is the longest silence of an event stream, default 15 s.
	Heartbeat time.Duration
	// Bookmarks is the interval at which an event stream says how far it is
	// when nothing else says so, default 30 s.
	Bookmarks time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if o.Caches == nil {
		return o, errors.New("server: Options.Caches is required")
	}
	o.Addr = cmp.Or(o.Addr, "127.0.0.1:8080")
	if err := CheckAddr(o.Addr, o.exposure()); err != nil {
		return o, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Version = cmp.Or(o.Version, "unknown")
	o.MaxWatches = cmp.Or(o.MaxWatches, 10000)
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, 100)
	o.MaxPassed = cmp.Or(o.MaxPassed, 100)
	o.Lease = cmp.Or(o.Lease, 75*time.Second)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, time.Minute)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, 10*time.Second)
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	o.Bookmarks = cmp.Or(o.Bookmarks, 30*time.Second)
	return o, nil
}

// Exposure is what makes it safe to be reached from beyond this machine.
type Exposure struct {
	// Authenticated: who asks is known, and sees what they may.
	Authenticated bool
	// TLS: nobody on the way reads tokens or answers.
	TLS bool
	// PlainHTTP: whoever configured it says in words that TLS is not needed.
	PlainHTTP bool
}

func (o Options) exposure() Exposure {
	return Exposure{Authenticated: o.Access != nil, TLS: o.TLS != (TLS{}), PlainHTTP: o.PlainHTTP}
}

// CheckAddr says what is wrong with an address to listen on. One beyond loopback needs
// authentication, and TLS unless it is said in words that it does without.
func CheckAddr(addr string, e Exposure) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address %q: want host:port: %w", addr, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("listen address %q: port %q is not a number from 0 to 65535", addr, port)
	} else if n == 0 && port != "0" {
		return fmt.Errorf("listen address %q: write port 0 as 0", addr)
	}
	if isLoopback(host) || e.Authenticated && (e.TLS || e.PlainHTTP) {
		return nil
	}
	what := "is not a loopback address"
	if host == "" {
		what = "means every address of this machine"
	}
	if e.Authenticated {
		return fmt.Errorf("listen address %q %s, and without TLS whoever is on the way could read tokens and "+
			"answers: give tls.certFile and tls.keyFile, or say tls.plainHTTP: true where something else "+
			"encrypts", addr, what)
	}
	return fmt.Errorf("listen address %q %s, and informerd has no authentication configured: "+
		"whoever reaches it could read everything it holds; configure authentication, or listen on 127.0.0.1:%s "+
		"and put an authenticating proxy in front of it on the same machine", addr, what, port)
}

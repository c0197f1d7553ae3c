package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"
)

// maxProfile bounds how long a profile is taken. pprof itself would go on for as long as it
// is asked to.
const maxProfile = 5 * time.Minute

// Profiles serves the profiles of Go's runtime at an address of this machine that nothing
// else is served at. Whoever reaches it is not asked who they are: a profile names
// functions, and a trace and the command line tell of what is done, but none holds objects.
type Profiles struct {
	listener net.Listener
	server   *http.Server
	log      *slog.Logger
}

// CheckProfilesAddr says what is wrong with an address to serve profiles on: it has to be
// one of loopback.
func CheckProfilesAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address of profiles %q: want host:port: %w", addr, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 && port != "0" {
		return fmt.Errorf("address of profiles %q: port %q is not a number from 0 to 65535", addr, port)
	}
	if !isLoopback(host) {
		return fmt.Errorf("address of profiles %q is not a loopback address: profiles are for who is on this machine, "+
			"and nobody is asked who they are; write 127.0.0.1:%s, and reach it from elsewhere through "+
			"ssh -L or kubectl port-forward", addr, port)
	}
	return nil
}

// ListenProfiles opens the address. Run serves.
func ListenProfiles(addr string, log *slog.Logger) (*Profiles, error) {
	if err := CheckProfilesAddr(addr); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for profiles: %w", err)
	}
	// "localhost" is whatever the resolver says.
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		return nil, errors.Join(CheckProfilesAddr(a.String()), l.Close())
	}
	return &Profiles{listener: l, log: log, server: &http.Server{
		Handler:           profiles(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readHeaderTimeout,
		WriteTimeout:      maxProfile + time.Minute,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

// Addr is the address listened on.
func (p *Profiles) Addr() string { return p.listener.Addr().String() }

// Run serves until ctx ends. A profile that is being taken is not waited for.
func (p *Profiles) Run(ctx context.Context) error {
	p.log.Info("serving profiles", "address", p.Addr(), "url", "http://"+p.Addr()+"/debug/pprof/")
	served := make(chan error, 1)
	go func() { served <- p.server.Serve(p.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve profiles: %w", err)
	case <-ctx.Done():
	}
	err := p.server.Close()
	<-served
	return err
}

func profiles() http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("GET /debug/pprof/"+path, h)
	}
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol) // as go tool pprof asks
	return secureHeaders(ofThisMachine(boundProfile(mux)))
}

// boundProfile refuses to take a profile for longer than maxProfile.
func boundProfile(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.ParseFloat(r.URL.Query().Get("seconds"), 64)
		if err == nil && !(seconds <= maxProfile.Seconds()) { // NaN is no bound
			http.Error(w, fmt.Sprintf("a profile takes at most %.0f seconds", maxProfile.Seconds()), http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ofThisMachine refuses what a page of another site has a browser ask, be it by a name of
// its own that it points here, or by a link: a profile costs time, too.
func ofThisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostName(r.Host); host != "" && !isLoopback(host) {
			http.Error(w, fmt.Sprintf("the Host header names %q: profiles are for localhost and loopback addresses only", r.Host), http.StatusForbidden)
			return
		}
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "none", "same-origin":
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "a page of another site may not ask for profiles through your browser", http.StatusForbidden)
		}
	})
}

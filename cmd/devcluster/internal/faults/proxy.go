// Package faults is a proxy between clients and the API server that can be told
// to lie: to cut, withhold, garble, delay and drop what it passes on, and to
// answer itself. Without rules it is as good as no proxy. It speaks HTTP/1.1 on
// both sides, without pings: a server that is silent is silent to the client too.
package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// The verbs of Match.
const (
	list  = "list"
	watch = "watch"
	get   = "get"
	other = "other"
)

// State is a snapshot of a Proxy.
type State struct {
	Requests int         `json:"requests"` // since the start
	Watches  int         `json:"watches"`  // open now
	Rules    []RuleState `json:"rules"`
}

// RuleState says how many requests a rule was applied to.
type RuleState struct {
	Name    string `json:"name"`
	Applied int    `json:"applied"`
}

// Proxy is one proxy. Its methods may be called concurrently.
type Proxy struct {
	upstream  *url.URL
	transport http.RoundTripper
	running   sync.WaitGroup // requests

	mu       sync.Mutex // guards all below
	set      *ruleSet
	changed  chan struct{} // closed and replaced with the rules
	requests int
	watches  map[int]*stream // by the number of their request
}

// request is what rules match.
type request struct{ verb, path, query string }

// New returns a proxy before the API server at upstream. The transport must
// neither compress nor follow anything by itself.
func New(upstream *url.URL, transport http.RoundTripper) *Proxy {
	set, _ := compile(&Rules{})
	return &Proxy{upstream: upstream, transport: transport, set: set, changed: make(chan struct{}), watches: map[int]*stream{}}
}

// Serve answers requests until ctx ends, and returns after the last of them.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: p, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(listener)
	_ = server.Close()
	p.running.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the proxy: %w", err)
}

// SetRules replaces all rules. When it returns they are in force, also for the
// watches that are open.
func (p *Proxy) SetRules(rules *Rules) (State, error) {
	set, err := compile(rules)
	if err != nil {
		return State{}, err
	}
	p.mu.Lock()
	p.set = set
	// In the order in which they began, so that the seed decides.
	for _, id := range slices.Sorted(maps.Keys(p.watches)) {
		s := p.watches[id]
		s.fault = set.choose(s.request, true)
	}
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	return p.State(), nil
}

// State returns what the proxy did so far.
func (p *Proxy) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := State{Requests: p.requests, Watches: len(p.watches), Rules: []RuleState{}}
	for _, r := range p.set.rules {
		s.Rules = append(s.Rules, RuleState{r.Name, r.applied})
	}
	return s
}

var requestInfo = &apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

func describe(r *http.Request) request {
	d := request{other, r.URL.Path, r.URL.RawQuery}
	if info, err := requestInfo.NewRequestInfo(r); err == nil && info.IsResourceRequest && r.Method == http.MethodGet {
		switch info.Verb {
		case list, watch, get:
			d.verb = info.Verb
		}
	}
	return d
}

// ServeHTTP passes on one request, rightly or wrongly.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.running.Add(1)
	defer p.running.Done()
	what := describe(r)
	p.mu.Lock()
	p.requests++
	id := p.requests
	s := &stream{proxy: p, request: what, fault: p.set.choose(what, false), changed: p.changed}
	if what.verb == watch {
		p.watches[id] = s
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.watches, id)
		p.mu.Unlock()
	}()
	if f := s.current(); f != nil && s.answerWrongly(w, r, f) {
		return
	}
	resp, err := p.ask(r)
	if err != nil {
		resetClient(w)
		return
	}
	defer resp.Body.Close()
	copyHeader(w.Header(), resp.Header)
	if what.verb == watch && resp.StatusCode == http.StatusOK {
		w.WriteHeader(resp.StatusCode)
		flush(w)
		s.run(r.Context(), w, resp)
		return
	}
	s.body(r.Context(), w, resp)
}

// answerWrongly carries out faults that come before the API server is asked, and
// says whether the request is answered.
func (s *stream) answerWrongly(w http.ResponseWriter, r *http.Request, f *fault) bool {
	watches := s.request.verb == watch
	switch {
	case f.Error != nil:
		f.Error.answer(w, r, watches)
	case f.Empty != nil:
		contentType, _ := negotiate(r, watches)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(http.StatusOK)
	case f.Reset != nil && f.Reset.AfterBytes == 0 && f.Reset.AfterEvents == 0:
		resetClient(w)
	case f.Bookmark != nil && f.Bookmark.Once:
		s.proxy.bookmarkOnce(w, r)
	case f.Delay != nil && (f.Delay.Before == "response" || f.Delay.Before == "" && !watches):
		await(r.Context(), milliseconds(f.Delay.Milliseconds), s.changed)
		return false
	default:
		return false
	}
	return true
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// ask sends r on to the API server.
func (p *Proxy) ask(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host, out.Host = p.upstream.Scheme, p.upstream.Host, p.upstream.Host
	if r.ContentLength == 0 {
		out.Body = nil
	}
	// Byte counts mean what is read, and everybody is the admin.
	for _, name := range []string{"Accept-Encoding", "Authorization", "Connection"} {
		out.Header.Del(name)
	}
	return p.transport.RoundTrip(out)
}

// fetch reads a document of the API server for the proxy itself.
func (p *Proxy) fetch(ctx context.Context, uri string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.upstream.Scheme+"://"+p.upstream.Host+uri, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "devcluster-proxy")
	resp, err := p.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", uri, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// await returns after d (0: never), when ctx ends or when changed is closed; true
// in the first case.
func await(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-ctx.Done():
	case <-changed:
	}
	return false
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		switch name {
		case "Connection", "Content-Length", "Transfer-Encoding":
		default:
			to[name] = slices.Clone(values)
		}
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// resetClient ends the client's connection with a RST.
func resetClient(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// negotiate is the type of an answer that the proxy makes up.
func negotiate(r *http.Request, stream bool) (contentType string, protobuf bool) {
	if strings.HasPrefix(r.Header.Get("Accept"), protobufType) {
		if stream {
			return protobufType + ";stream=watch", true
		}
		return protobufType, true
	}
	return "application/json", false
}

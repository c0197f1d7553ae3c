package main

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cache/replica"
)

const (
	// pluginPause is how long a credential plugin is left alone that has failed; it
	// doubles up to maxPluginPause as long as it fails.
	pluginPause    = time.Second
	maxPluginPause = time.Minute
)

// execPlugin keeps the credential plugin of a kubeconfig from being run for each request
// after it has failed, which is what client-go does: hundreds of watches are opened again
// by themselves, and a plugin may ask a person, or a service that counts. While it is left
// alone requests fail with the error of its last run. One of all clients tries it again.
//
// It has two ends, since client-go runs the plugin between them: requests enter at wrap,
// and reach the other end with credentials.
type execPlugin struct {
	command string
	log     *slog.Logger
	now     func() time.Time

	trying chan struct{} // holds one: whoever runs a plugin that is not known to work

	mu    sync.Mutex // guards all below
	works bool
	err   error // of the last run, nil if there was none, or it worked
	pause time.Duration
	until time.Time // err counts until then
}

// newExecPlugin takes care of the plugin of rc, nil if it has none.
func newExecPlugin(rc *rest.Config) *execPlugin {
	if rc.ExecProvider == nil {
		return nil
	}
	p := &execPlugin{
		command: rc.ExecProvider.Command, log: slog.New(slog.DiscardHandler), now: time.Now, trying: make(chan struct{}, 1),
	}
	rc.Wrap(func(base http.RoundTripper) http.RoundTripper { return reached{p, base} })
	return p
}

// wrap is put around a transport made of the configuration.
func (p *execPlugin) wrap(base http.RoundTripper) http.RoundTripper { return entering{p, base} }

// attempt is one request that may run the plugin.
type attempt struct {
	credentials atomic.Bool // it has got them
	leave       func()
}

type attemptKey struct{}

// entering is the outer end.
type entering struct {
	*execPlugin
	base http.RoundTripper
}

// WrappedRoundTripper is for those who look for the transport below.
func (e entering) WrappedRoundTripper() http.RoundTripper { return e.base }

func (e entering) RoundTrip(r *http.Request) (*http.Response, error) {
	leave, err := e.enter(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	a := &attempt{leave: sync.OnceFunc(leave)}
	r = r.WithContext(context.WithValue(r.Context(), attemptKey{}, a))
	// client-go runs a plugin without a context. One that waits, for a person for instance,
	// must not keep those waiting who have given up.
	type answered struct {
		resp *http.Response
		err  error
	}
	answer := make(chan answered, 1)
	go func() {
		defer a.leave()
		resp, err := e.base.RoundTrip(r)
		if err != nil && !a.credentials.Load() {
			e.failed(err)
		}
		answer <- answered{resp, err}
	}()
	select {
	case got := <-answer:
		return got.resp, got.err
	case <-r.Context().Done():
	}
	go func() {
		if late := <-answer; late.resp != nil {
			_ = late.resp.Body.Close()
		}
	}()
	return nil, r.Context().Err()
}

// reached is the inner end, of requests that have credentials.
type reached struct {
	*execPlugin
	base http.RoundTripper
}

// WrappedRoundTripper is for those who look for the transport below.
func (e reached) WrappedRoundTripper() http.RoundTripper { return e.base }

func (e reached) RoundTrip(r *http.Request) (*http.Response, error) {
	e.worked()
	if a, ok := r.Context().Value(attemptKey{}).(*attempt); ok {
		a.credentials.Store(true)
		a.leave() // nobody has to wait for the answer
	}
	return e.base.RoundTrip(r)
}

// enter waits for the turn to run the plugin, unless it is known to work. The error is
// that of its last run, while it is left alone.
func (p *execPlugin) enter(ctx context.Context) (leave func(), err error) {
	if works, err := p.state(); works || err != nil {
		return func() {}, err
	}
	select {
	case p.trying <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave = func() { <-p.trying }
	if works, err := p.state(); works || err != nil { // by now
		leave()
		return func() {}, err
	}
	return leave, nil
}

// state is what is known of the plugin. Nothing is, if it may be tried.
func (p *execPlugin) state() (works bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil && p.now().Before(p.until) {
		return false, p.err
	}
	return p.works, nil
}

func (p *execPlugin) failed(err error) {
	p.mu.Lock()
	now, first := p.now(), p.err == nil
	if first || !now.Before(p.until) { // else others began before it was known to fail
		p.works, p.err = false, err
		p.pause = min(max(2*p.pause, pluginPause), maxPluginPause)
		p.until = now.Add(p.pause)
	}
	p.mu.Unlock()
	if first {
		p.log.Warn("credential plugin fails, trying on", "command", p.command, "err", err)
	}
}

func (p *execPlugin) worked() {
	p.mu.Lock()
	again := p.err != nil
	p.works, p.err, p.pause = true, nil, 0
	p.mu.Unlock()
	if again {
		p.log.Info("credential plugin works again", "command", p.command)
	}
}

// httpClientOf is a client of one's own with the credentials of a cluster's
// configuration.
func httpClientOf(c replica.ClusterConfig) (*http.Client, error) {
	made, err := rest.HTTPClientFor(c.REST)
	if err != nil {
		return nil, err
	}
	client := *made // it may be http.DefaultClient
	client.Transport = c.Wrapped(client.Transport)
	return &client, nil
}

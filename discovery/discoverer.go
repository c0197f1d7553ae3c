package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const (
	defaultPollInterval = 10 * time.Second
	defaultDebounce     = 200 * time.Millisecond
	// legacyPollFactor makes polls rarer where each is a request per group version.
	legacyPollFactor = 6
	// lagFirst is the first pause before looking again where discovery lags
	// behind the watches; it doubles up to PollInterval.
	lagFirst = 200 * time.Millisecond
	// tablesWait bounds how long the first Set waits for the CRDs and
	// APIServices, without which it knows less.
	tablesWait = 5 * time.Second
	// versionInterval is how often the server's version is asked for when
	// nothing else makes it likely to have changed.
	versionInterval = 5 * time.Minute
)

// Options configures a Discoverer. Only Config is required.
type Options struct {
	// Config is the cluster to ask. Its user agent is sent as it is; its
	// Timeout and rate limits are ignored.
	Config *rest.Config
	// HTTPClient is used instead of one made from Config. It must
	// authenticate, and must not have a Timeout, which would cut the watches.
	HTTPClient *http.Client
	// Wrap is put around every transport made from Config, so that it gets requests
	// before they have credentials. Nil leaves them as they are.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Pins are the versions to report instead of the server's preferred ones.
	// A pinned version that is not served falls back to the preferred one; one
	// that does not answer leaves its resource as it was.
	Pins map[schema.GroupResource]string
	// PollInterval is the time between two looks that nothing triggered.
	// Default 10s; six times that where discovery is not aggregated.
	PollInterval time.Duration
	// Debounce is how long triggers are collected before one look. Default 200ms.
	Debounce time.Duration
	// Log gets state changes. Default: nothing is logged.
	Log *slog.Logger
	// OnChange is called with the first Set and with every one that differs
	// from the last. All calls come from one goroutine of Run, which waits for
	// them. Default: nobody is told.
	OnChange func(Set)
}

// ErrRan is returned by a second Run.
var ErrRan = errors.New("discoverer has run already")

// Discoverer keeps the Set of one cluster current while Run runs. Its other
// methods may be called at any time from any goroutine.
type Discoverer struct {
	opts     Options
	client   *client
	lone     *client // for surveys of the servers
	crds     *watcher[crdSpec]
	services *watcher[serviceSpec]
	trigger  chan struct{} // holds one
	ran      atomic.Bool
	counters counters

	mu     sync.Mutex // guards all below
	set    Set
	hasSet bool
	err    error
	pins   map[schema.GroupResource]string // never modified
}

// New makes a Discoverer. It sends nothing.
func New(opts Options) (*Discoverer, error) {
	if opts.Config == nil {
		return nil, errors.New("make discoverer: no Config")
	}
	if opts.PollInterval <= 0 {
		opts.PollInterval = defaultPollInterval
	}
	if opts.Debounce <= 0 {
		opts.Debounce = defaultDebounce
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.OnChange == nil {
		opts.OnChange = func(Set) {}
	}
	c, err := newClient(opts.Config, opts)
	if err != nil {
		return nil, fmt.Errorf("make discoverer: %w", err)
	}
	lone, err := newLoneClient(opts)
	if err != nil {
		return nil, fmt.Errorf("make discoverer: %w", err)
	}
	d := &Discoverer{opts: opts, client: c, lone: lone, trigger: make(chan struct{}, 1), pins: maps.Clone(opts.Pins)}
	d.crds = newWatcher[crdSpec](c, crdsPath, "Established", d.Trigger, opts.Log)
	d.services = newWatcher[serviceSpec](c, servicesPath, "Available", d.Trigger, opts.Log)
	return d, nil
}

// Run discovers until ctx ends. It returns after all its goroutines have; nil
// if ctx ended it. It may be called once.
func (d *Discoverer) Run(ctx context.Context) error {
	if d.ran.Swap(true) {
		return ErrRan
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { d.crds.run(ctx) })
	wg.Go(func() { d.services.run(ctx) })
	(&looker{Discoverer: d, fetcher: newFetcher(d.client), members: newMembers(d.lone, d.opts.Log)}).run(ctx)
	return nil
}

// Current is the last Set reported, false if there was none yet. It stays what
// it was while the server does not answer: see Err.
func (d *Discoverer) Current() (Set, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set, d.hasSet
}

// Trigger asks for a look soon. It does not wait.
func (d *Discoverer) Trigger() {
	select {
	case d.trigger <- struct{}{}:
		d.counters.triggers.Add(1)
	default: // one is waiting already
	}
}

// SetPins replaces Options.Pins. The Set follows soon.
func (d *Discoverer) SetPins(pins map[schema.GroupResource]string) {
	d.mu.Lock()
	d.pins = maps.Clone(pins)
	d.mu.Unlock()
	d.Trigger()
}

func (d *Discoverer) currentPins() map[schema.GroupResource]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pins
}

// Err is why the last look failed, nil if it succeeded or none was made yet.
// Failed group versions are no error: see Set.Failed.
func (d *Discoverer) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// setErr returns the error it replaces.
func (d *Discoverer) setErr(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.err
	d.err = err
	return old
}

func (d *Discoverer) setSet(s Set) {
	d.mu.Lock()
	d.set, d.hasSet = s, true
	d.mu.Unlock()
	d.counters.changes.Add(1)
}

// versionNeeded tells whether a failure to learn the version is worth waiting
// for: a server that refuses to tell it will go on refusing.
func versionNeeded(err error) bool {
	return err != nil && !refused(err) && !apierrors.IsUnauthorized(err)
}

package discovery

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Options configures a Discoverer. Only Config is required.
type Options struct {
	// Config is the cluster to ask. Its user agent is sent as it is.
	Config *rest.Config
	// HTTPClient is used instead of one made from Config. It must
	// authenticate, and must not have a Timeout, which would cut the watches.
	HTTPClient *http.Client
	// Pins are the versions to report instead of the server's preferred ones.
	// A pinned version that is not served falls back to the preferred one.
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

// Discoverer keeps the Set of one cluster current while Run runs. Its other
// methods may be called at any time from any goroutine.
type Discoverer struct{}

// New makes a Discoverer. It sends nothing.
func New(Options) (*Discoverer, error) { return &Discoverer{}, nil }

// Run discovers until ctx ends. It returns after all its goroutines have; nil
// if ctx ended it. It may be called once.
func (d *Discoverer) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Current is the last Set reported, false if there was none yet.
func (d *Discoverer) Current() (Set, bool) { return Set{}, false }

// Trigger asks for a look soon. It does not wait.
func (d *Discoverer) Trigger() {}

// SetPins replaces Options.Pins. The Set follows soon.
func (d *Discoverer) SetPins(map[schema.GroupResource]string) {}

// Err is why the last look failed, nil if it succeeded or none was made yet.
// Failed group versions are no error: see Set.Failed.
func (d *Discoverer) Err() error { return nil }

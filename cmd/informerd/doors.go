package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
	askers "github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/authn"
	"github.com/informerd/informerd/server/access/gate"
	"github.com/informerd/informerd/server/access/review"
)

const (
	// authorityPoll is how often the files of authorities are read.
	authorityPoll = 2 * time.Second
	// publishedPoll is how often a cluster is asked for the authorities it publishes.
	publishedPoll = time.Minute
	// publishedRetry is the same while it does not tell.
	publishedRetry = 5 * time.Second
)

// doors are how people are let in to each cluster's copy, if there is authentication.
// Clusters come and go: one without a door is one in which nobody is anybody.
type doors struct {
	config *config.Config
	roles  *roleBooks
	log    *slog.Logger
	gate   *gate.Gate

	mu     sync.RWMutex // guards all below
	names  []string
	byName map[string]*door
}

// newDoors makes no door yet; nil if everybody may see everything.
func newDoors(cfg *config.Config, roles *roleBooks, log *slog.Logger) *doors {
	if cfg.Authentication == nil {
		return nil
	}
	d := &doors{config: cfg, roles: roles, log: log, byName: map[string]*door{}}
	d.gate = gate.New(gate.Options{Log: log, Clusters: d.clusters, Cluster: func(name string) *gate.Cluster {
		if door := d.of(name); door != nil {
			return &door.Cluster
		}
		return nil
	}})
	return d
}

// clusters are those that have a door.
func (d *doors) clusters() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.names
}

// of is the door of a cluster, nil if it has none.
func (d *doors) of(cluster string) *door {
	if d == nil {
		return nil
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.byName[cluster]
}

// add makes a door for a cluster and returns what must run for it.
func (d *doors) add(cluster string) (run func(context.Context) error) {
	if d == nil {
		return nil
	}
	grants := d.roles.open(cluster)
	door := newDoor(cluster, d.config, gate.ByRoles{Roles: rolesFrom(grants)}, d.log.With("cluster", cluster))
	door.complain("cannot use the authorities, nobody is let in by them", door.readFiles())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byName[cluster] = door
	d.names = append(slices.Clone(d.names), cluster)
	return func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return grants.Run(ctx) })
		g.Go(func() error { return door.Run(ctx) })
		return g.Wait()
	}
}

// remove closes the door of a cluster for good.
func (d *doors) remove(cluster string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byName, cluster)
	d.names = slices.DeleteFunc(slices.Clone(d.names), func(name string) bool { return name == cluster })
}

// access is the Access of a server, nil without doors.
func (d *doors) access() func(*http.Request) (askers.Asker, error) {
	if d == nil {
		return nil
	}
	return d.gate.Asker
}

// as is somebody whose rights a handler acts with; everyone's if it names nobody. Without
// doors nobody knows what a user may see, which is not everything.
func (d *doors) as(who *config.Identity) (askers.Asker, error) {
	switch {
	case who == nil:
		return askers.Everyone(), nil
	case d == nil:
		return nil, fmt.Errorf("it acts as %s, and authentication, by which it is known what they may see, begins with a restart", who.User)
	}
	return d.gate.As(who.User, who.Groups), nil
}

// trouble is why nobody can be let in to a cluster's copy.
func (d *doors) trouble(cluster string) string {
	if door := d.of(cluster); door != nil {
		return door.troubles.Reason()
	}
	return ""
}

// connect is told how a cluster is reached.
func (d *doors) connect(cluster string, config replica.ClusterConfig) error {
	if door := d.of(cluster); door != nil {
		return door.connect(config)
	}
	return nil
}

// door is how people are let in to the copy of one cluster.
type door struct {
	gate.Cluster
	config   *config.Authentication
	log      *slog.Logger
	troubles gate.Trouble
	clients  authn.Authorities
	proxy    authn.FrontProxy

	api       atomic.Pointer[reviewClients] // nil until connected
	connected chan struct{}                 // holds one; wakes Run
	complaint string                        // of Run alone: what was wrong last
}

// reviewClients ask one API server.
type reviewClients struct {
	tokens authenticationclient.AuthenticationV1Interface
	access authorizationclient.AuthorizationV1Interface
	core   coreclient.CoreV1Interface
}

func newReviewClients(c replica.ClusterConfig) (*reviewClients, error) {
	config := c.REST
	http, err := httpClientOf(c)
	if err != nil {
		return nil, err
	}
	tokens, err := authenticationclient.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, err
	}
	access, err := authorizationclient.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, err
	}
	core, err := coreclient.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, err
	}
	return &reviewClients{tokens, access, core}, nil
}

func newDoor(cluster string, cfg *config.Config, roles gate.ByRoles, log *slog.Logger) *door {
	d := &door{config: cfg.Authentication, log: log, connected: make(chan struct{}, 1)}
	d.troubles.Log = log
	if h := d.config.RequestHeader; h != nil {
		d.proxy.SetHeaders(authn.Headers{
			Names: h.AllowedNames, Users: h.UsernameHeaders, UIDs: h.UIDHeaders, Groups: h.GroupHeaders, ExtraPrefixes: h.ExtraHeaderPrefixes,
		})
	}
	d.FrontProxy = &d.proxy
	d.Authenticator = authn.New(authn.Options{
		FrontProxy: &d.proxy, Clients: &d.clients, Tokens: d,
		Audiences: d.config.TokenReview.Audiences, TTL: d.config.TokenReview.CacheTTL, Anonymous: d.config.Anonymous,
		Told: d.troubles.Told("tokenreviews"),
	})
	roles.Roles = d.told(roles.Roles)
	d.Authorizer = roles
	if cfg.Authorization.Mode == config.Review {
		d.Authorizer = review.New(review.Options{
			Cluster: cluster, Reviewer: d, Proposer: roles, Told: d.troubles.Told("subjectaccessreviews"),
		})
	}
	return d
}

// told are roles of which it is said when they cannot be read.
func (d *door) told(roles gate.Roles) gate.Roles {
	tell := d.troubles.Told("roles")
	return func(ctx context.Context, u user.Info) (gate.Rights, error) {
		rights, err := roles(ctx, u)
		if ctx.Err() == nil {
			tell(err)
		}
		return rights, err
	}
}

func (d *door) connect(config replica.ClusterConfig) error {
	clients, err := newReviewClients(config)
	if err != nil {
		return fmt.Errorf("make clients for reviews: %w", err)
	}
	d.api.Store(clients)
	select {
	case d.connected <- struct{}{}:
	default:
	}
	return nil
}

var errNotConnected = errors.New("the API server was not reached yet")

// ReviewToken asks the API server with informerd's own credentials.
func (d *door) ReviewToken(ctx context.Context, r *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	client := d.api.Load()
	if client == nil {
		return nil, errNotConnected
	}
	return client.tokens.TokenReviews().Create(ctx, r, metav1.CreateOptions{})
}

// ReviewAccess asks the API server with informerd's own credentials.
func (d *door) ReviewAccess(ctx context.Context, r *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	client := d.api.Load()
	if client == nil {
		return nil, errNotConnected
	}
	return client.access.SubjectAccessReviews().Create(ctx, r, metav1.CreateOptions{})
}

// check reads the files of authorities that the configuration names, for the start: they
// must be there.
func (d *doors) check() error {
	if d == nil {
		return nil
	}
	return newDoor("", d.config, gate.ByRoles{}, slog.New(slog.DiscardHandler)).readFiles()
}

// readFiles takes over what is in the files of authorities.
func (d *door) readFiles() error {
	if file := d.config.ClientCAFile; file != "" {
		if err := d.readFile(file, &d.clients); err != nil {
			return fmt.Errorf("authentication.clientCAFile: %w", err)
		}
	}
	if h := d.config.RequestHeader; h != nil {
		if err := d.readFile(h.ClientCAFile, &d.proxy.Authorities); err != nil {
			return fmt.Errorf("authentication.requestHeader.clientCAFile: %w", err)
		}
	}
	return nil
}

func (d *door) readFile(file string, to *authn.Authorities) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	changed, err := to.Set(data)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if changed {
		d.log.Info("authorities that name clients taken over", "path", file)
	}
	return nil
}

// Run follows the authorities until ctx ends: those of files, and those that the
// cluster publishes.
func (d *door) Run(ctx context.Context) error {
	files := time.NewTicker(authorityPoll)
	defer files.Stop()
	published := time.NewTimer(0)
	defer published.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-files.C:
			d.complain("cannot use the changed authorities, going on with those before", d.readFiles())
			continue
		case <-d.connected:
		case <-published.C:
		}
		published.Reset(d.follow(ctx))
	}
}

// complain says what is wrong once.
func (d *door) complain(message string, err error) {
	switch {
	case err == nil:
		d.complaint = ""
	case err.Error() != d.complaint:
		d.complaint = err.Error()
		d.log.Warn(message, "err", err)
	}
}

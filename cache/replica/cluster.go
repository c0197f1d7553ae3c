package replica

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// ClusterConfig says how one cluster is reached.
type ClusterConfig struct {
	// REST is the client configuration; its UserAgent is used for every request.
	REST *rest.Config
	// Namespaces are tried when a resource may not be read in all namespaces:
	// the namespace of the kubeconfig's context, for one.
	Namespaces []string
	// Wrap is put around every transport that is made of REST, so that it gets requests
	// before they have credentials. Nil leaves them as they are.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Wrapped is a transport made of REST with Wrap around it.
func (c ClusterConfig) Wrapped(rt http.RoundTripper) http.RoundTripper {
	if c.Wrap == nil {
		return rt
	}
	return c.Wrap(rt)
}

// cluster is one API server as the informers see it: its clients, identity and
// reachability. It is usable before Connect; its informers then wait.
type cluster struct {
	name  string
	retry retry
	log   *slog.Logger

	// expected is the identity that a snapshot was made under, "" for none.
	expected string

	// identified is closed once the cluster told who it is.
	identified chan struct{}
	// connected wakes run when a configuration arrives, suspicion when something
	// speaks against the server. Each holds one.
	connected, suspicion chan struct{}
	// end ends run; ended is closed when that has returned.
	end   context.CancelFunc
	ended chan struct{}
	// other is called when another cluster is proven to answer; nil calls nobody.
	other func()

	rights *rights       // of its user
	syncs  chan struct{} // semaphore over syncs and relists

	surveying  chan struct{} // semaphore: one survey at a time; taken before mu
	confirming chan struct{} // semaphore: one confirmation at a time; taken before mu

	mu          sync.RWMutex // guards all below
	config      ClusterConfig
	epoch       int // counts the configurations
	http        *http.Client
	streams     *http.Client // of lists and watches
	meta        metadata.Interface
	metaStreams metadata.Interface
	line        *Line // the connections of the clients; nil until there are some
	uid         string
	servers     servers // the versions that its API servers say they are
	marks       marks
	unmarked    bool                // the cluster does not let marks be made
	said        map[string]struct{} // what was warned of
	err         error
	since       time.Time
	reached     bool
	answered    time.Time // when it last answered what it is asked every two seconds
	turns       turns
	away        chan struct{} // not nil while the server is away; closed at its return
	back        chan struct{} // closed, and replaced, at its next return
	// history ends, and another begins, when an object proves that the server
	// was rolled back: that concerns the copies of all resources.
	history context.Context
	rewrite context.CancelCauseFunc
}

func newCluster(name, expected string, retry retry, log *slog.Logger) *cluster {
	c := &cluster{
		name:       name,
		retry:      retry,
		expected:   expected,
		log:        log.With("cluster", name),
		identified: make(chan struct{}),
		connected:  make(chan struct{}, 1),
		suspicion:  make(chan struct{}, 1),
		end:        func() {},
		ended:      make(chan struct{}),
		back:       make(chan struct{}),
		surveying:  make(chan struct{}, 1),
		rights:     newRights(accessRate),
		confirming: make(chan struct{}, 1),
		err:        errors.New("not connected yet"),
		since:      time.Now(),
	}
	c.history, c.rewrite = context.WithCancelCause(context.Background())
	return c
}

// connect sets how the cluster is reached. A later call replaces the clients of
// requests to come. What is under way goes on, unless it is somewhere else that the
// cluster is reached now: watches are opened there again, and whether it is still the
// same cluster is judged before they go on where they were. Where that cannot be told,
// because kube-system may not be read, another place is another cluster. One goroutine
// calls it.
func (c *cluster) connect(config ClusterConfig) error {
	rc := rest.CopyConfig(config.REST)
	// Watches are never rate limited by client-go and lists are bounded by the
	// factory's own semaphore, so its limiter would only delay probes.
	rc.QPS, rc.Burst = -1, 0
	c.mu.RLock()
	before, line := c.config.REST, c.line
	c.mu.RUnlock()
	elsewhere := before == nil || elsewhereThan(before, rc)
	if elsewhere {
		line = NewLine()
	}
	client, err := newPlainClient(rc, line, config.Wrapped)
	if err != nil {
		return fmt.Errorf("make HTTP client: %w", err)
	}
	streams, err := newStreamClient(rc, line, config.Wrapped)
	if err != nil {
		return fmt.Errorf("make HTTP client of streams: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(rc, client)
	if err != nil {
		return fmt.Errorf("make metadata client: %w", err)
	}
	metaStreams, err := metadata.NewForConfigAndClient(rc, streams)
	if err != nil {
		return fmt.Errorf("make metadata client of streams: %w", err)
	}
	auth, err := authorizationv1.NewForConfigAndClient(rc, client)
	if err != nil {
		return fmt.Errorf("make authorization client: %w", err)
	}
	c.mu.Lock()
	left := c.line
	c.line = line
	c.config = ClusterConfig{REST: rc, Namespaces: config.Namespaces, Wrap: config.Wrap}
	c.epoch++
	was, history := c.uid, c.history
	if isAddressIdentity(c.uid) {
		c.uid = addressIdentity(rc)
	}
	c.http, c.streams = client, streams
	c.meta, c.metaStreams = meta, metaStreams
	c.mu.Unlock()
	c.rights.connect(auth)
	if elsewhere && isAddressIdentity(was) {
		c.rewritten(history, &otherClusterError{was: was, uid: addressIdentity(rc)})
	}
	if left != nil && left != line {
		c.log.Info("the cluster is reached elsewhere, watches are opened there again", "server", cache.PublicAddress(rc.Host))
		left.Cut()
	}
	select {
	case c.connected <- struct{}{}:
	default:
	}
	return nil
}

// disconnect closes all connections to the cluster.
func (c *cluster) disconnect() {
	c.mu.RLock()
	line := c.line
	c.mu.RUnlock()
	if line != nil {
		line.Cut()
	}
}

// Identify asks whoever a configuration leads to which cluster it is: an identity as
// cache.ClusterStatus.UID is. What is wrong with the configuration is an error, as is no
// answer.
func Identify(ctx context.Context, config ClusterConfig) (string, error) {
	c := newCluster("", "", retry{}, slog.New(slog.DiscardHandler))
	if err := c.connect(config); err != nil {
		return "", err
	}
	defer c.disconnect()
	return c.identity(ctx)
}

// Named reports whether an identity is the UID of kube-system. Any other is made of where
// the cluster is reached, since that may not be read.
func Named(identity string) bool { return identity != "" && !isAddressIdentity(identity) }

// SamePlace reports whether two configurations lead to the same place, as far as they say.
func SamePlace(a, b ClusterConfig) bool { return !elsewhereThan(a.REST, b.REST) }

// elsewhereThan reports whether two configurations lead to different places, as far as
// they say.
func elsewhereThan(a, b *rest.Config) bool {
	x, y := a.TLSClientConfig, b.TLSClientConfig
	return a.Host != b.Host || a.APIPath != b.APIPath || x.ServerName != y.ServerName || x.Insecure != y.Insecure ||
		x.CAFile != y.CAFile || !bytes.Equal(x.CAData, y.CAData)
}

// configured tells configurations apart: it grows with each connect.
func (c *cluster) configured() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.epoch
}

// rawClient makes a REST client whose objects are decoded by decode. It is of the
// present configuration and costs next to nothing, so it is made for each request.
func (c *cluster) rawClient(aggregated bool, decode func([]byte) (*cache.Object, error)) (rest.Interface, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	client := c.streams
	if aggregated {
		client = c.http // such a server may be silent for long, and to be cut off costs it a list
	}
	rc := dynamic.ConfigFor(c.config.REST)
	rc.AcceptContentTypes = runtime.ContentTypeJSON
	rc.ContentType = runtime.ContentTypeJSON
	rc.NegotiatedSerializer = rawSerializer{decode}
	rc.GroupVersion = nil
	restClient, err := rest.UnversionedRESTClientForConfigAndClient(rc, client)
	if err != nil {
		return nil, fmt.Errorf("make REST client: %w", err)
	}
	return restClient, nil
}

// encoding is how large answers may be sent: compressed, unless the kubeconfig
// does not want that.
func (c *cluster) encoding() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.config.REST.DisableCompression {
		return "identity"
	}
	return "gzip"
}

// contextNamespaces are those of ClusterConfig.
func (c *cluster) contextNamespaces() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.config.Namespaces
}

func (c *cluster) metadata() metadata.Interface {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.meta
}

// streamMetadata asks on a connection of lists and watches.
func (c *cluster) streamMetadata() metadata.Interface {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.metaStreams
}

// run asks the cluster who it is until it answers, and then looks after whether it
// goes on answering, until ctx ends.
func (c *cluster) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.connected:
	}
	if c.identify(ctx) {
		var beside sync.WaitGroup
		beside.Go(func() { c.followPresent(ctx) })
		c.watchOver(ctx)
		beside.Wait()
	}
}

// identify reports false when ctx ended first.
func (c *cluster) identify(ctx context.Context) bool {
	backoff := c.retry.backoff()
	began := time.Now()
	for ctx.Err() == nil {
		uid, err := c.identity(ctx)
		if err == nil || isTransport(err) || statusCode(err) >= 500 || statusCode(err) == http.StatusUnauthorized {
			c.setError(err)
		}
		if err == nil && !c.premature(uid, began) {
			c.mu.Lock()
			c.uid = uid
			c.mu.Unlock()
			close(c.identified)
			c.log.Info("cluster identified", "uid", uid, "version", c.status().Version, "server", c.status().Server)
			return true
		}
		select {
		case <-ctx.Done():
		case <-c.connected:
		case <-time.After(backoff.Step()):
		}
	}
	return false
}

// identityNow is who the cluster was last found to be, and how it is reached.
func (c *cluster) identityNow() (uid string, rc *rest.Config) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.uid, c.config.REST
}

// premature reports whether an identity by address is not to be believed yet. An
// API server that has just started refuses everybody but its administrators;
// a snapshot made under a UID would then be taken for another cluster's.
func (c *cluster) premature(uid string, began time.Time) bool {
	return isAddressIdentity(uid) && c.expected != "" && !isAddressIdentity(c.expected) &&
		time.Since(began) < patience*c.retry.last
}

// identity asks for the UID of the kube-system namespace and the server's
// version. A user who may not read that namespace gets an identity from the
// address and the certificate authority instead: stable for as long as the
// kubeconfig is.
func (c *cluster) identity(ctx context.Context) (uid string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if _, err = c.serverVersion(ctx); err != nil {
		return "", err
	}
	_, rc := c.identityNow()
	ns, err := c.metadata().Resource(namespaces).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case err == nil:
		return string(ns.UID), nil
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return addressIdentity(rc), nil
	default:
		return "", fmt.Errorf("ask for the cluster's identity: %w", err)
	}
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func addressIdentity(rc *rest.Config) string {
	sum := sha256.New()
	sum.Write([]byte(rc.Host + "\n" + rc.CAFile + "\n"))
	sum.Write(rc.CAData)
	return addressPrefix + hex.EncodeToString(sum.Sum(nil)[:16])
}

const addressPrefix = "address:"

func isAddressIdentity(uid string) bool { return strings.HasPrefix(uid, addressPrefix) }

// presentHistory is what a source belongs to; it ends with an error that is proven
// for the whole cluster.
func (c *cluster) presentHistory() context.Context {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.history
}

// rewritten ends history, once: a rolled back server may have any resource's
// resourceVersion in its past by now, so that each would find it out too late.
// Another cluster is the one identified from then on.
func (c *cluster) rewritten(history context.Context, err error) {
	c.mu.Lock()
	if c.history != history {
		c.mu.Unlock()
		return
	}
	var other *otherClusterError
	if errors.As(err, &other) {
		c.uid, c.servers = other.uid, servers{version: other.version, asked: time.Now()}
	}
	c.marks = marks{}
	end := c.rewrite
	c.history, c.rewrite = context.WithCancelCause(context.Background())
	end(err) // with the lock held: whoever sees the new history can tell why the old one ended
	c.mu.Unlock()
	c.log.Warn("the server has another history than the copies, listing everything behind them", "err", err)
	if other != nil && c.other != nil {
		c.other()
	}
}

// sayOnce warns of what concerns one resource, and tells of the same about others
// of the cluster only who asks for details.
func (c *cluster) sayOnce(log *slog.Logger, message, reason string) {
	key := message + ": " + reason
	c.mu.Lock()
	_, said := c.said[key]
	if c.said == nil || len(c.said) > 100 {
		c.said = map[string]struct{}{}
	}
	c.said[key] = struct{}{}
	c.mu.Unlock()
	level := slog.LevelWarn
	if said {
		level = slog.LevelDebug
	}
	log.Log(context.Background(), level, message, "reason", reason)
}

// isFuture reports whether a server has not reached the version asked for.
func isFuture(err error) bool {
	return apierrors.IsTimeout(err) && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

func (c *cluster) systemNamespace(ctx context.Context, version string) (*metav1.PartialObjectMetadata, error) {
	ns, err := c.metadataAt(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem, version)
	if err == nil && (ns.Name != metav1.NamespaceSystem || ns.UID == "") {
		return nil, fmt.Errorf("read namespace %s: the answer is something else", metav1.NamespaceSystem)
	}
	return ns, err
}

// metadataAt gets an object's metadata as it is at version or later, "" for now.
// It asks once: a resourceVersion that the server has not reached is 504 with
// Retry-After, which client-go would repeat for the better part of a minute.
func (c *cluster) metadataAt(ctx context.Context, path, version string) (*metav1.PartialObjectMetadata, error) {
	c.mu.RLock()
	client := c.http
	c.mu.RUnlock()
	return c.metadataBy(ctx, client, path, version)
}

func (c *cluster) metadataBy(ctx context.Context, client *http.Client, path, version string) (*metav1.PartialObjectMetadata, error) {
	c.mu.RLock()
	rc := rest.CopyConfig(c.config.REST)
	c.mu.RUnlock()
	rc.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	core, err := rest.UnversionedRESTClientForConfigAndClient(rc, client)
	if err != nil {
		return nil, fmt.Errorf("make REST client: %w", err)
	}
	request := core.Get().AbsPath(path).MaxRetries(0).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	if version != "" {
		request.Param("resourceVersion", version)
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	meta := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, meta); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return meta, nil
}

func (c *cluster) status() cache.ClusterStatus {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := cache.ClusterStatus{Name: c.name, UID: c.uid, Version: c.servers.version, Reachable: c.reached, Since: c.since}
	if c.config.REST != nil {
		s.Server = cache.PublicAddress(c.config.REST.Host)
	}
	if c.err != nil {
		s.Err = c.err.Error()
	}
	return s
}

package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
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
}

// ClusterStatus is what is known of a cluster at one moment.
type ClusterStatus struct {
	Name      string
	Server    string // URL of the API server, empty before Connect
	UID       string // identity, empty until the cluster answered once
	Version   string // gitVersion of the API server
	Reachable bool   // whether the last request got an answer
	Err       string // why not
	Since     time.Time
	// Discovered: it has told which resources it has. Until then one that is not
	// known may be there all the same.
	Discovered bool
}

// NotDiscovered is ErrNotSynced with what keeps the cluster from telling which
// resources it has; nil once it has told. Whoever finds a resource missing asks
// before looking: what is missing after that is not there.
func (s ClusterStatus) NotDiscovered() error {
	if s.Discovered {
		return nil
	}
	name, why := "the cluster", s.Err
	if s.Name != "" {
		name = "cluster " + s.Name
	}
	if why == "" {
		why = "it is being asked"
	}
	return fmt.Errorf("%w: not all resources of %s are known yet: %s", ErrNotSynced, name, why)
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
	// connected wakes run when a configuration arrives.
	connected chan struct{}

	mu      sync.RWMutex // guards all below
	config  ClusterConfig
	epoch   int // counts the configurations
	http    *http.Client
	streams *http.Client // of lists and watches
	meta    metadata.Interface
	access  authorizationv1.SelfSubjectAccessReviewInterface
	uid     string
	version string
	err     error
	since   time.Time
	reached bool
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
		err:        errors.New("not connected yet"),
		since:      time.Now(),
	}
	c.history, c.rewrite = context.WithCancelCause(context.Background())
	return c
}

// connect sets how the cluster is reached. A later call replaces the clients of
// requests to come.
func (c *cluster) connect(config ClusterConfig) error {
	rc := rest.CopyConfig(config.REST)
	// Watches are never rate limited by client-go and lists are bounded by the
	// factory's own semaphore, so its limiter would only delay probes.
	rc.QPS, rc.Burst = -1, 0
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		return fmt.Errorf("make HTTP client: %w", err)
	}
	streams, err := newStreamClient(rc)
	if err != nil {
		return fmt.Errorf("make HTTP client of streams: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(rc, client)
	if err != nil {
		return fmt.Errorf("make metadata client: %w", err)
	}
	auth, err := authorizationv1.NewForConfigAndClient(rc, client)
	if err != nil {
		return fmt.Errorf("make authorization client: %w", err)
	}
	c.mu.Lock()
	c.config = ClusterConfig{REST: rc, Namespaces: config.Namespaces}
	c.epoch++
	if isAddressIdentity(c.uid) {
		c.uid = addressIdentity(rc)
	}
	c.http, c.streams = client, streams
	c.meta, c.access = meta, auth.SelfSubjectAccessReviews()
	c.mu.Unlock()
	select {
	case c.connected <- struct{}{}:
	default:
	}
	return nil
}

// configured tells configurations apart: it grows with each connect.
func (c *cluster) configured() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.epoch
}

// rawClient makes a REST client whose objects are decoded by decode. It is of the
// present configuration and costs next to nothing, so it is made for each request.
func (c *cluster) rawClient(aggregated bool, decode func([]byte) (*Object, error)) (rest.Interface, error) {
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

func (c *cluster) reviews() authorizationv1.SelfSubjectAccessReviewInterface {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.access
}

func (c *cluster) metadata() metadata.Interface {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.meta
}

// run asks the cluster who it is until it answers or ctx ends.
func (c *cluster) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.connected:
	}
	backoff := c.retry.backoff()
	began := time.Now()
	for ctx.Err() == nil {
		uid, version, err := c.identity(ctx)
		c.report(err)
		if err == nil && !c.premature(uid, began) {
			c.mu.Lock()
			c.uid, c.version = uid, version
			c.mu.Unlock()
			close(c.identified)
			c.log.Info("cluster identified", "uid", uid, "version", version, "server", c.status().Server)
			return
		}
		select {
		case <-ctx.Done():
		case <-c.connected:
		case <-time.After(backoff.Step()):
		}
	}
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
func (c *cluster) identity(ctx context.Context) (uid, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if version, err = c.serverVersion(ctx); err != nil {
		return "", "", err
	}
	c.mu.RLock()
	rc, meta := c.config.REST, c.meta
	c.mu.RUnlock()
	ns, err := meta.Resource(namespaces).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case err == nil:
		return string(ns.UID), version, nil
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return addressIdentity(rc), version, nil
	default:
		return "", "", fmt.Errorf("ask for the cluster's identity: %w", err)
	}
}

// serverVersion is the gitVersion of the API server that answers now.
func (c *cluster) serverVersion(ctx context.Context) (string, error) {
	c.mu.RLock()
	rc, client := c.config.REST, c.http
	c.mu.RUnlock()
	disco, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(rc, client)
	if err != nil {
		return "", fmt.Errorf("make discovery client: %w", err)
	}
	info, err := disco.ServerVersionWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the server's version: %w", err)
	}
	c.mu.Lock()
	c.version = info.GitVersion
	c.mu.Unlock()
	return info.GitVersion, nil
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

// errOtherHistory means that a saved resourceVersion belongs to another history
// than the server's: another cluster behind the same address, or etcd restored
// from a backup. Resuming from it would be accepted in silence and show stale
// objects for ever (client-go-facts: a watch from the future delivers nothing).
var errOtherHistory = errors.New("the server's history is not the one the copy was made from")

// errRewritten is an errOtherHistory that is proven for the whole cluster.
var errRewritten = fmt.Errorf("%w: it was rolled back", errOtherHistory)

// otherClusterError is an errOtherHistory that is proven for the whole cluster:
// another one answers than was identified.
type otherClusterError struct{ was, uid, version string }

func (e *otherClusterError) Error() string {
	return fmt.Sprintf("%v: kube-system has UID %s, not %s", errOtherHistory, e.uid, e.was)
}

func (e *otherClusterError) Unwrap() error { return errOtherHistory }

func isOtherCluster(err error) bool {
	var other *otherClusterError
	return errors.As(err, &other)
}

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
	defer c.mu.Unlock()
	if c.history != history {
		return
	}
	var other *otherClusterError
	if errors.As(err, &other) {
		c.uid, c.version = other.uid, other.version
	}
	c.rewrite(err)
	c.history, c.rewrite = context.WithCancelCause(context.Background())
}

// sameHistory checks that the cluster is still the one identified before and
// that it has reached version. It asks for one small object, never a list.
// reached is false for a user who may not ask.
func (c *cluster) sameHistory(ctx context.Context, version string) (reached bool, err error) {
	c.mu.RLock()
	uid, rc := c.uid, c.config.REST
	c.mu.RUnlock()
	if _, err := strconv.ParseUint(version, 10, 64); err != nil {
		return false, fmt.Errorf("%w: resourceVersion %q is no number", errOtherHistory, version)
	}
	if uid == addressIdentity(rc) {
		return false, nil
	}
	ns, err := c.systemNamespace(ctx, version)
	switch {
	case err == nil && string(ns.UID) != uid:
		gitVersion, err := c.serverVersion(ctx)
		if err != nil {
			return false, err
		}
		return false, &otherClusterError{was: uid, uid: string(ns.UID), version: gitVersion}
	case err == nil:
		return true, nil
	case isFuture(err):
		return false, fmt.Errorf("%w: the server has not reached resourceVersion %s", errOtherHistory, version)
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return false, nil
	default:
		return false, fmt.Errorf("check the server's history: %w", err)
	}
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
	rc, client := rest.CopyConfig(c.config.REST), c.http
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

// report notes whether the API server answered. An answer that refuses is one,
// unless it says that the server is ill or does not know this user; an error of
// this side of the connection says nothing.
func (c *cluster) report(err error) {
	switch code := statusCode(err); {
	case err == nil, code >= 500, code == http.StatusUnauthorized:
	case code != 0:
		err = nil
	case errors.Is(err, context.Canceled) || !isTransport(err):
		return
	}
	c.setError(err)
}

// setError notes that the API server answers (nil) or why it does not, and logs
// the change.
func (c *cluster) setError(err error) {
	c.mu.Lock()
	changed := c.reached != (err == nil)
	c.reached = err == nil
	if changed {
		c.since = time.Now()
	}
	c.err = err
	c.mu.Unlock()
	switch {
	case changed && err == nil:
		c.log.Info("API server answers")
	case changed:
		c.log.Warn("API server does not answer, trying on", "err", err)
	}
}

// isTransport reports whether a request failed on its way.
func isTransport(err error) bool {
	var onTheWay *url.Error
	var network net.Error
	return errors.As(err, &onTheWay) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (c *cluster) status() ClusterStatus {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := ClusterStatus{Name: c.name, UID: c.uid, Version: c.version, Reachable: c.reached, Since: c.since}
	if c.config.REST != nil {
		s.Server = c.config.REST.Host
		if u, err := url.Parse(s.Server); err == nil && u.Host != "" {
			s.Server = u.Redacted()
		}
	}
	if c.err != nil {
		s.Err = c.err.Error()
	}
	return s
}

package kubeapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/websocket"
)

// Caches are the running informers. Implementations are safe for concurrent
// use.
type Caches interface {
	// Resource is one resource by its exact name; false if it is not known.
	Resource(cache.Resource) (Resource, bool)
	// Resources are all known ones of all clusters, unwatched included.
	Resources() []Resource
	Clusters() []cache.ClusterStatus
}

// Resource is one resource of one cluster.
type Resource interface {
	// Spec is what is wanted of it now.
	Spec() cache.Spec
	// View is what it is worth now. An answer is made of one View, taken once.
	View() *cache.View
}

// Options configure an API. Caches, Admit and Stopping are required.
type Options struct {
	Caches Caches
	// Upstream finds the API server of a cluster; nil, or a nil answer, is one
	// that cannot be asked now.
	Upstream func(cluster string) Upstream
	// Documents keeps what API servers say about themselves beyond the process;
	// nil forgets it.
	Documents Documents
	// Modes says how reads without a resourceVersion and requests for what is
	// not watched are answered; it is asked for each request. Nil is the zero
	// Modes.
	Modes func() Modes
	// Timeout bounds the answer to a get or list; 0 does not.
	Timeout time.Duration
	// Admit lets a request begin, or says why it must not. release is called at
	// its end.
	Admit func(ctx context.Context, c Class) (release func(), err error)
	// Freshness says in headers what an answer at version is worth.
	Freshness func(h http.Header, view *cache.View, version string)
	// TakeOver gives the connection of an answer to a WebSocket, which closes it. Nil
	// takes it as it is.
	TakeOver websocket.TakeOver
	// Stopping ends when requests of class Long must.
	Stopping context.Context
	// Log gets what could not be asked of the API server; nil discards it.
	Log *slog.Logger
}

// Class is what a request is counted among. Each has a limit of its own, so that
// an API server that hangs does not hold up what is answered without it.
type Class int

const (
	Short  Class = iota // answered here
	Single              // answered here, with one object or document
	Long                // goes on for as long as its client likes
	Passed              // answered by the API server
)

// API answers requests. It is safe for concurrent use.
type API struct {
	Options
	log       *slog.Logger
	alone     bool // there is no API server to ask
	frames    frames
	documents library
	keeping   sync.RWMutex // a document is kept, or (writing) those of a cluster are forgotten; taken before the others
	editions  editions
	outages   outages
	writes    writes
	// unanswered are questions for present versions.
	unanswered unanswered
	rows       rows
	asking     singleflight.Group // for tables
}

// New makes an API.
func New(opts Options) *API {
	a := &API{Options: opts, log: opts.Log}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.alone = a.Upstream == nil; a.alone {
		a.Upstream = func(string) Upstream { return nil }
	}
	if a.Modes == nil {
		a.Modes = func() Modes { return Modes{} }
	}
	if a.Freshness == nil {
		a.Freshness = func(http.Header, *cache.View, string) {}
	}
	a.frames.init()
	a.restoreDocuments()
	return a
}

// Prefixes are the paths that the API answers, each with everything below it.
// Below ClustersPrefix and a cluster's name they are that cluster's, as are /healthz and
// /livez; without it they are those of the only cluster.
var Prefixes = []string{"/version", "/api", "/apis", "/openapi"}

// ClustersPrefix begins the paths that name a cluster.
const ClustersPrefix = "/clusters"

// Serve answers one request. Errors found before the answer has begun are
// returned: a *errors.StatusError of apimachinery, or one of package cache. A
// *CutError says that the answer has begun and cannot be completed.
func (a *API) Serve(w http.ResponseWriter, r *http.Request) error {
	req, err := a.parse(r)
	if err != nil {
		return err
	}
	req.record(r)
	w.Header().Add("Vary", "Accept")
	r, visible := withoutVisible(r)
	if v := reviewOf(r, req); v != nil {
		return a.serveReview(w, r, req, v)
	}
	if !isRead(r.Method) {
		return a.passWrite(w, r, req)
	}
	timeout, err := requestTimeout(r, req)
	if err != nil {
		return err
	}
	if req.resource == "" {
		return a.serveDocument(w, r, req)
	}
	return a.serveResource(w, r, req, visible, timeout)
}

// serveResource answers from the copy what it can and who asks may see, within timeout,
// if that is not 0, and that of the API. What it cannot is told to those only who might
// see it. Where the API server is asked instead, it judges by itself.
func (a *API) serveResource(w http.ResponseWriter, r *http.Request, req *request, visible bool, timeout time.Duration) error {
	t, unknown := a.target(req)
	if (unknown != nil || t.lacks(cache.Scope{}) != nil && !(t.view.Spec.Watch && wantsShard(r))) && a.passesRead(req) {
		return a.pass(w, r, req)
	}
	may, err := a.judge(r, req, visible)
	switch {
	case err != nil:
		return err
	case unknown != nil:
		return unknown
	}
	if err := t.lacks(may.scope); err != nil {
		return err
	}
	t.see(may)
	release, err := a.Admit(r.Context(), req.class(r, req.size()))
	if err != nil {
		return err
	}
	defer release()
	if err := may.recheck(r.Context()); err != nil {
		return err
	}
	if a.Timeout > 0 && !req.watch && (timeout == 0 || timeout > a.Timeout) {
		timeout = a.Timeout
	}
	if timeout > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	if req.name != "" && !req.byPath {
		return a.get(w, r, t)
	}
	return a.listOrWatch(w, r, t)
}

// serveDocument answers what is about the API and not about objects.
func (a *API) serveDocument(w http.ResponseWriter, r *http.Request, req *request) error {
	if err := mayRead(r.Context(), req.path()); err != nil {
		return err
	}
	asked := time.Now()
	release, err := a.Admit(r.Context(), Single)
	if err != nil {
		return err
	}
	defer release()
	if time.Since(asked) >= rightsInterval {
		if err := mayRead(r.Context(), req.path()); err != nil {
			return err
		}
	}
	switch {
	case req.health:
		return writeHealth(w, r)
	case req.parts[0] == "version":
		return a.version(w, r, req)
	case req.parts[0] == "openapi":
		return a.openAPI(w, r, req)
	}
	return a.discovery(w, r, req)
}

// writeHealth says that the cluster is answered for. Whether its API server is there now
// makes no difference to that, and is for /readyz.
func writeHealth(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := io.WriteString(w, "ok\n")
	return cut(err)
}

// mayRead refuses a path that is no resource to those who may not read it.
func mayRead(ctx context.Context, path string) error {
	who := access.From(ctx)
	switch ok, err := who.Path(ctx, "get", path); {
	case err != nil:
		return access.Unknown(who, err)
	case !ok:
		return access.ForbiddenPath(who, "get", path)
	}
	return nil
}

// size is Single for one object.
func (q *request) size() Class {
	if q.name != "" {
		return Single
	}
	return Short
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// target is what a request for objects is answered from, to its end: the one
// View that it takes.
type target struct {
	*request
	view   *cache.View
	rights *rights
	reader *cache.Reader // what may be seen
}

func (t *target) spec() cache.Spec { return t.view.Spec }

// groupResource names the resource in errors.
func (t *target) groupResource() schema.GroupResource { return t.view.Spec.GVR.GroupResource() }

// target finds the resource that req is about, whether it can answer or not.
func (a *API) target(req *request) (*target, error) {
	resource := cache.Resource{Cluster: req.cluster, GVR: req.gvr()}
	res, ok := a.Caches.Resource(resource)
	if !ok {
		if err := a.undiscovered(req.cluster); err != nil {
			return nil, err
		}
		// The cluster may have told of it between the two questions.
		if res, ok = a.Caches.Resource(resource); !ok {
			return nil, errUnknown(req)
		}
	}
	return &target{request: req, view: res.View()}, nil
}

// lacks is why the copy cannot answer, as who sees no more than a Scope may read it; nil
// if it can.
func (t *target) lacks(seen cache.Scope) error {
	req, spec := t.request, t.view.Spec
	copied := t.view.Reader(cache.Scope{}) // no object is needed to tell
	switch {
	case req.subresource != "":
		return errSubresource(req)
	case !spec.Namespaced && req.namespace != "", spec.Namespaced && req.namespace == "" && req.name != "":
		return errUnknown(req)
	case !spec.Watch:
		return errNotWatched(req, "the configuration leaves it out")
	case copied == nil:
		return errNotReadable(t.view.SeenBy(seen))
	case req.namespace != "" && req.name != "" && !copied.Watches(req.namespace):
		return errNotHeld(req)
	case req.namespace != "" && !copied.Watches(req.namespace):
		return errNotWatched(req, "the copy does not hold namespace "+req.namespace)
	}
	for _, m := range t.view.Missing {
		if m.Namespace == req.namespace {
			return errNamespaceMissing(t.view, m.SeenBy(seen))
		}
	}
	return nil
}

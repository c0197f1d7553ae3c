package replica

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/informerd/informerd/cache"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// config is how the liar is reached: by connections in memory.
func (l *liar) config() ClusterConfig {
	return ClusterConfig{REST: &rest.Config{Host: "http://liar", UserAgent: "test", Dial: l.dial}}
}

// memberConn is the server's end of a connection.
type memberConn struct {
	net.Conn
	member *member
}

// dial is the balancer: it gives each connection to the next member.
func (l *liar) dial(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials = append(l.dials, time.Now())
	if l.refusing || l.conns == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	m := l.members[l.turn%len(l.members)]
	l.turn++
	if l.pinned != nil {
		m = l.pinned
	}
	client, server := net.Pipe()
	if m.resets {
		_ = server.Close()
		return client, nil
	}
	m.conns[server] = struct{}{}
	conns, closed := l.conns, l.closed
	go func() {
		select {
		case conns <- memberConn{server, m}:
		case <-closed:
			_ = server.Close()
		}
	}()
	return client, nil
}

// Accept, Close and Addr make a listener of the liar.
func (l *liar) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *liar) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *liar) Addr() net.Addr { return &net.UnixAddr{Name: "liar"} }

type memberKey struct{}

// listen serves until the returned function is called.
func (l *liar) listen() (stop func()) {
	l.do(func() { l.conns, l.closed = make(chan net.Conn), make(chan struct{}) })
	server := &http.Server{
		Handler: http.HandlerFunc(l.serve), ReadHeaderTimeout: time.Hour,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, memberKey{}, c.(memberConn).member)
		},
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	return func() {
		_ = server.Close()
		<-done
		l.hangUp()
	}
}

// thaw waits while the member is frozen. It reports false if the client has gone.
func (l *liar) thaw(m *member, ctx context.Context) bool {
	for {
		l.mu.Lock()
		frozen, wake := m.frozen, l.wake
		l.mu.Unlock()
		if !frozen {
			return ctx.Err() == nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return false
		}
	}
}

// call is a request as a member understands it.
type call struct {
	*member
	l                             *liar
	w                             http.ResponseWriter
	r                             *http.Request
	verb, resource, namespace, at string
	name                          string
	labels                        labels.Selector
	fields                        fields.Selector
}

// selects reports whether the request is about an object. Labels do not change.
func (c *call) selects(o fakeObject) bool {
	return (c.namespace == "" || o.key.Namespace == c.namespace) && c.labels.Matches(labels.Set(o.labels)) &&
		c.fields.Matches(fields.Set{"metadata.name": o.key.Name, "metadata.namespace": o.key.Namespace})
}

var resourcePath = regexp.MustCompile(`^/api/v1(?:/namespaces/([^/]+))?/([^/]+)(?:/([^/]+))?$`)

func (l *liar) serve(w http.ResponseWriter, r *http.Request) {
	m := r.Context().Value(memberKey{}).(*member)
	q := r.URL.Query()
	c := &call{member: m, l: l, w: w, r: r, at: q.Get("resourceVersion")}
	c.labels, _ = labels.Parse(q.Get("labelSelector"))
	c.fields, _ = fields.ParseSelector(q.Get("fieldSelector"))
	c.understand()
	l.mu.Lock()
	l.requests = append(l.requests, request{c.verb, c.resource, time.Now()})
	l.mu.Unlock()
	if !l.thaw(m, r.Context()) {
		return
	}
	l.mu.Lock()
	answer := m.answer
	l.mu.Unlock()
	if answer != nil {
		if code := answer(c.verb, c.resource); code != 0 {
			if code == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "1")
			}
			status(w, code, map[int]string{500: "InternalError", 429: "TooManyRequests", 503: "ServiceUnavailable", 403: "Forbidden", 404: "NotFound"}[code])
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	switch c.verb {
	case "version":
		l.mu.Lock()
		defer l.mu.Unlock()
		fmt.Fprintf(w, `{"major":"1","minor":"36","gitVersion":%q}`, m.gitVersion)
	case "review":
		c.review()
	case "identity", "get", "metaget":
		c.get()
	case "list", "metadata":
		c.list()
	case "watch", "watchlist":
		c.watch(c.verb == "watchlist")
	default:
		status(w, http.StatusNotFound, "NotFound")
	}
}

// understand finds out what is asked for.
func (c *call) understand() {
	q, accept := c.r.URL.Query(), c.r.Header.Get("Accept")
	switch {
	case c.r.URL.Path == "/version":
		c.verb = "version"
		return
	case strings.HasSuffix(c.r.URL.Path, "/selfsubjectaccessreviews"):
		c.verb = "review"
		return
	case c.r.URL.Path == "/api/v1/namespaces/kube-system":
		c.verb, c.resource = "identity", "namespaces"
		return
	}
	parts := resourcePath.FindStringSubmatch(c.r.URL.Path)
	if parts == nil {
		return
	}
	c.namespace, c.resource, c.name = parts[1], parts[2], parts[3]
	switch {
	case c.name != "" && strings.Contains(accept, "PartialObjectMetadata"):
		c.verb = "metaget"
	case c.name != "":
		c.verb = "get"
	case q.Get("sendInitialEvents") == "true":
		c.verb = "watchlist"
	case q.Get("watch") == "true":
		c.verb = "watch"
	case strings.Contains(accept, "PartialObjectMetadataList"):
		c.verb = "metadata"
	default:
		c.verb = "list"
	}
}

func (c *call) review() {
	body, _ := io.ReadAll(c.r.Body)
	ns := regexp.MustCompile(`(ns|team)-[a-z0-9]+`).FindString(string(body))
	c.l.mu.Lock()
	allowed := c.l.allowed == nil || c.l.allowed(ns)
	c.l.mu.Unlock()
	c.w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(c.w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%v}}`, allowed)
}

// forbiddenLocked answers a list or watch that is not allowed.
func (c *call) forbiddenLocked() bool {
	if c.l.allowed == nil || c.resource == "namespaces" || c.l.allowed(c.namespace) {
		return false
	}
	status(c.w, http.StatusForbidden, "Forbidden")
	return true
}

// viewLocked is what the request is answered from: etcd, or the watch cache if a
// version is asked for, of which it may not be the first to know.
func (c *call) viewLocked() (facts []fact, version int, ok bool) {
	if c.at == "" {
		return c.l.facts, c.l.version, true
	}
	at, _ := strconv.Atoi(c.at)
	if c.r.URL.Query().Get("resourceVersionMatch") == "Exact" {
		if at < c.l.compacted {
			status(c.w, http.StatusGone, "Expired")
		}
		return c.l.facts, at, at >= c.l.compacted
	}
	if at > c.seen {
		c.w.Header().Set("Retry-After", "1")
		c.w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprint(c.w, tooLarge)
		return nil, 0, false
	}
	return c.log, c.seen, true
}

const tooLarge = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","message":"Too large resource version","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`

const partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d"}}`

func (c *call) get() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	facts, version, ok := c.viewLocked()
	if !ok {
		return
	}
	if c.verb == "identity" {
		fmt.Fprintf(c.w, partial, "kube-system", "", c.l.uid, 1)
		return
	}
	o, ok := state(facts, c.resource, version)[cache.Key{Namespace: c.namespace, Name: c.name}]
	switch {
	case !ok:
		noObject(c.w, c.name)
	case c.verb == "metaget":
		fmt.Fprintf(c.w, partial, o.key.Name, o.key.Namespace, o.uid, o.version)
	default:
		fmt.Fprint(c.w, c.encode(o))
	}
}

// encode is the object as this member serves it. The caller holds mu.
func (c *call) encode(o fakeObject) string {
	if c.broken != "" && o.key.Name == c.broken {
		o.broken = true
		return o.json()
	}
	return o.jsonAs(c.resource, c.addition)
}

// list answers in pages if a limit is set. A page is of the version in its token.
func (c *call) list() {
	c.l.mu.Lock()
	takes := c.listing
	c.l.mu.Unlock()
	if takes > 0 && c.resource != "namespaces" && !sleep(c.r.Context(), takes) {
		return
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.forbiddenLocked() {
		return
	}
	if c.hollow != "" {
		body := c.hollow
		if c.verb == "metadata" {
			body = strings.Replace(body, `"PodList","apiVersion":"v1"`, `"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"`, 1)
		}
		fmt.Fprint(c.w, body)
		return
	}
	facts, version, ok := c.viewLocked()
	if !ok {
		return
	}
	if c.at == "" {
		c.told[c.resource] = version
	}
	from := 0
	if token := c.r.URL.Query().Get("continue"); token != "" {
		if _, err := fmt.Sscanf(token, "%d-%d", &version, &from); err != nil {
			status(c.w, http.StatusGone, "Expired")
			return
		}
	}
	objects := state(facts, c.resource, version)
	var items []string
	for _, k := range slices.SortedFunc(maps.Keys(objects), cache.Key.Compare) {
		if !c.selects(objects[k]) {
			continue
		}
		if o := objects[k]; c.verb == "metadata" {
			items = append(items, fmt.Sprintf(partial, o.key.Name, o.key.Namespace, o.uid, o.version))
		} else {
			items = append(items, c.encode(o))
		}
	}
	items, more := items[min(from, len(items)):], ""
	if limit, _ := strconv.Atoi(c.r.URL.Query().Get("limit")); limit > 0 && len(items) > limit {
		items, more = items[:limit], fmt.Sprintf("%d-%d", version, from+limit)
	}
	kind, api := "List", "v1"
	if c.verb == "metadata" {
		kind, api = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	fmt.Fprintf(c.w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`, kind, api, version, more, strings.Join(items, ","))
}

// Of a real API server: a bookmark a minute, and one before the end.
const (
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second
)

// sent is on its way to the client until due.
type sent struct {
	due  time.Time
	text string
}

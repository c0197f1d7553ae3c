package replica

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/klauspost/compress/gzip"
	"k8s.io/client-go/rest"
)

// fakeAPI is an API server for one namespaced resource, "pods", over real HTTP:
// lists, streaming lists, watches with bookmarks, compaction and access reviews.
// What it holds is the truth the tests compare with; faults make it misbehave as
// real ones do.
type fakeAPI struct {
	*httptest.Server
	uid, gitVersion string
	// crdGeneration is of the definition of pods, for tests in which they are
	// custom resources.
	crdGeneration int

	mu      sync.Mutex
	version int
	objects map[cache.Key]*fakeObject
	log     []fakeEvent
	// compacted is the highest version that cannot be watched from any more.
	compacted int
	wake      chan struct{}
	requests  []string // "list", "watch", "watchlist", "get", with the namespace
	// fault may answer a request itself; it returns true if it did.
	fault func(w http.ResponseWriter, r *http.Request, verb string) bool
	// cut makes open watches end abruptly: each gets the next number.
	cut int
	// mute drops the next n events from open watches, as a broken server would.
	mute int
	// noStreaming answers streaming lists as an old server does.
	noStreaming bool
	// known are the namespaces that the kubeconfig names.
	known []string
	// noCompression is what the kubeconfig says.
	noCompression bool
	// deny says whether a verb is forbidden in a namespace ("" for all).
	deny func(verb, namespace string) bool
	// rules is "complete" or "incomplete" for a server that tells the rules of a
	// namespace.
	rules     string
	reviewing func() // called before each access review is answered
	// meanwhile is called before a request is answered, without the lock.
	meanwhile func(verb string)
	// history is every change there was, whatever was compacted.
	history []fakeEvent
	// pages are the lists under way, by the number in their continue tokens.
	pages [][]string
}

type fakeObject struct {
	key     cache.Key
	uid     string
	version int
	labels  map[string]string
	value   string
	secret  string // only of the liar: another field, if it is not ""
	broken  bool   // served as something no decoder accepts
}

type fakeEvent struct {
	kind    cache.EventType
	object  fakeObject
	version int
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{uid: "cluster-1", gitVersion: "v1.36.3", version: 100, objects: map[cache.Key]*fakeObject{}, wake: make(chan struct{})}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(func() {
		f.cutAll()
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *fakeAPI) config() ClusterConfig {
	return ClusterConfig{Namespaces: f.known, REST: &rest.Config{Host: f.URL, UserAgent: "test", DisableCompression: f.noCompression}}
}

func (o fakeObject) json() string {
	if o.broken {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d","labels":{"a":}}}`, o.key.Name, o.key.Namespace, o.version)
	}
	labels, _ := json.Marshal(o.labels)
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","labels":%s,"managedFields":[{"manager":"x"}]},"spec":{"value":%q}}`,
		o.key.Name, o.key.Namespace, o.uid, o.version, labels, o.value)
}

// put creates or updates an object.
func (f *fakeAPI) put(key cache.Key, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	kind := cache.Modified
	o, ok := f.objects[key]
	if !ok {
		kind = cache.Added
		o = &fakeObject{key: key, uid: fmt.Sprintf("uid-%d", f.version), labels: map[string]string{"app": "a" + strconv.Itoa(f.version%3)}}
	}
	next := *o
	next.version, next.value = f.version, value
	f.objects[key] = &next
	f.recordLocked(fakeEvent{kind, next, f.version})
}

func (f *fakeAPI) delete(key cache.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.objects[key]
	if !ok {
		return
	}
	f.version++
	last := *o
	last.version = f.version
	delete(f.objects, key)
	f.recordLocked(fakeEvent{cache.Deleted, last, f.version})
}

func (f *fakeAPI) recordLocked(e fakeEvent) {
	f.log = append(f.log, e)
	f.history = append(f.history, e)
	close(f.wake)
	f.wake = make(chan struct{})
}

// compact forgets the past: watches from before now are answered with 410.
func (f *fakeAPI) compact() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	f.compacted = f.version
	f.log = nil
}

// cutAll ends open watches without a goodbye.
func (f *fakeAPI) cutAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut++
	close(f.wake)
	f.wake = make(chan struct{})
}

func (f *fakeAPI) set(change func(*fakeAPI)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// count is how many requests of a kind there were.
func (f *fakeAPI) count(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

// truth is what a store should hold: key to resourceVersion.
func (f *fakeAPI) truth() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for k, o := range f.objects {
		out[k.String()] = fmt.Sprintf("%s@%d=%s", o.uid, o.version, o.value)
	}
	return out
}

// truthAt is what a store that is complete up to version should hold, of objects
// that were all put.
func (f *fakeAPI) truthAt(version int) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for _, e := range f.history {
		if e.version > version {
			break
		}
		o := e.object
		if out[o.key.String()] = fmt.Sprintf("%s@%d=%s", o.uid, o.version, o.value); e.kind == cache.Deleted {
			delete(out, o.key.String())
		}
	}
	return out
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/version":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"major":"1","minor":"36","gitVersion":%q}`, f.gitVersion)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		f.review(w, r)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews"):
		f.reviewRules(w, r)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		f.serveIdentity(w, r)
	case r.URL.Path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pods":
		f.mu.Lock()
		generation := f.crdGeneration
		f.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"pods","uid":"crd-1","generation":%d}}`, generation)
	case strings.HasSuffix(r.URL.Path, "/pods"):
		f.servePods(w, r)
	case strings.Contains(r.URL.Path, "/pods/"):
		f.servePod(w, r)
	default:
		status(w, http.StatusNotFound, "NotFound")
	}
}

func status(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprint(w, statusJSON(code, reason))
}

// noObject is what a server says that has the resource, and no object of that name.
func noObject(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not found","reason":"NotFound","details":{"name":%q},"code":404}`, name)
}

func statusJSON(code int, reason string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"%s","reason":%q,"code":%d}`, strings.ToLower(reason), reason, code)
}

func (f *fakeAPI) serveIdentity(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault != nil && fault(w, r, "identity") {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tooLargeLocked(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":%q,"resourceVersion":"1"}}`, f.uid)
}

// tooLargeLocked refuses a version that was not reached yet.
func (f *fakeAPI) tooLargeLocked(w http.ResponseWriter, r *http.Request) bool {
	if v, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion")); v <= f.version {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusGatewayTimeout)
	fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","message":"Too large resource version","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]},"code":504}`)
	return true
}

func (f *fakeAPI) review(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	reviewing := f.reviewing
	f.mu.Unlock()
	if reviewing != nil {
		reviewing()
	}
	// The typed client sends protobuf unless told otherwise; the fields asked
	// about are found in it as plain strings.
	body := make([]byte, 4096)
	n, _ := r.Body.Read(body)
	text := string(body[:n])
	namespace := reviewed.FindString(text)
	verb := "list"
	if strings.Contains(text, "watch") {
		verb = "watch"
	}
	f.mu.Lock()
	f.requests = append(f.requests, "review "+namespace)
	denied := f.deny != nil && f.deny(verb, namespace)
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%v}}`, !denied)
}

// reviewed is the namespace that a review is about.
var reviewed = regexp.MustCompile(`team-[a-z0-9]+`)

// reviewRules tells the rules of a namespace, if the server knows how to.
func (f *fakeAPI) reviewRules(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	namespace := reviewed.FindString(string(body))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rules == "" {
		status(w, http.StatusNotFound, "NotFound")
		return
	}
	f.requests = append(f.requests, "rules "+namespace)
	rules := `{"verbs":["get"],"apiGroups":["*"],"resources":["*"]}`
	if f.deny == nil || !f.deny("list", namespace) {
		rules += `,{"verbs":["list","watch"],"apiGroups":["","apps"],"resources":["configmaps","pods"]}`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","status":{"resourceRules":[%s],"nonResourceRules":[],"incomplete":%v}}`, rules, f.rules == "incomplete")
}

// servePod answers a get of an object ("fetch") or of its metadata ("get").
func (f *fakeAPI) servePod(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	key := cache.Key{Namespace: parts[4], Name: parts[6]}
	verb := "fetch"
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		verb = "get"
	}
	fault := f.begin(verb, key.String())
	if verb == "fetch" && fault != nil && fault(w, r, verb) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.objects[key]
	if f.deny != nil && f.deny(verb, key.Namespace) {
		status(w, http.StatusForbidden, "Forbidden")
		return
	}
	if f.tooLargeLocked(w, r) {
		return
	}
	if !ok {
		noObject(w, key.Name)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if verb == "fetch" {
		fmt.Fprint(w, o.json())
		return
	}
	fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d"}}`, o.key.Name, o.key.Namespace, o.uid, o.version)
}

// begin notes a request and lets happen what is to happen meanwhile.
func (f *fakeAPI) begin(verb, what string) (fault func(http.ResponseWriter, *http.Request, string) bool) {
	f.mu.Lock()
	f.requests = append(f.requests, verb+" "+what)
	fault, meanwhile := f.fault, f.meanwhile
	f.mu.Unlock()
	if meanwhile != nil {
		meanwhile(verb)
	}
	return fault
}

func (f *fakeAPI) servePods(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	namespace := ""
	if _, rest, ok := strings.Cut(r.URL.Path, "/namespaces/"); ok {
		namespace, _, _ = strings.Cut(rest, "/")
	}
	verb := "list"
	if q.Get("watch") == "true" {
		verb = "watch"
	}
	kind := verb
	if q.Get("sendInitialEvents") == "true" {
		kind = "watchlist"
	}
	if isMetadata(r) {
		kind = "metadata"
	}
	if q.Get("limit") == "1" {
		kind = "present" // a consistent read, for its version
	}
	fault := f.begin(kind, namespace)
	f.mu.Lock()
	denied, old := f.deny != nil && f.deny(verb, namespace), f.noStreaming
	f.mu.Unlock()
	switch {
	case denied:
		status(w, http.StatusForbidden, "Forbidden")
	case fault != nil && fault(w, r, kind):
	case kind == "watchlist" && old:
		status(w, http.StatusUnprocessableEntity, "Invalid")
	case verb == "list":
		f.list(w, r, namespace)
	default:
		f.watch(w, r, namespace, kind == "watchlist")
	}
}

func isMetadata(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList")
}

func (f *fakeAPI) list(w http.ResponseWriter, r *http.Request, namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("resourceVersionMatch") == "Exact" {
		f.listThenLocked(w, r, namespace)
		return
	}
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 {
		f.listPageLocked(w, r, namespace, limit)
		return
	}
	f.writeListLocked(w, r, f.itemsLocked(namespace), f.version, "")
}

// listThenLocked answers with an object as it was at a version, if that is known yet.
func (f *fakeAPI) listThenLocked(w http.ResponseWriter, r *http.Request, namespace string) {
	at, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if at < f.compacted {
		status(w, http.StatusGone, "Expired")
		return
	}
	_, name, _ := strings.Cut(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	items := []string{}
	for _, e := range f.history {
		if e.version <= at && e.object.key == (cache.Key{Namespace: namespace, Name: name}) {
			items = items[:0]
			if e.kind != cache.Deleted {
				items = append(items, e.object.json())
			}
		}
	}
	f.writeListLocked(w, r, items, at, "")
}

func (f *fakeAPI) itemsLocked(namespace string) []string {
	items := []string{}
	for _, k := range slices.SortedFunc(maps.Keys(f.objects), cache.Key.Compare) {
		if namespace == "" || k.Namespace == namespace {
			items = append(items, f.objects[k].json())
		}
	}
	return items
}

// listPageLocked answers with a page of a list as it was when it began. Pages of
// metadata are smaller than asked for, so that few objects make many of them.
func (f *fakeAPI) listPageLocked(w http.ResponseWriter, r *http.Request, namespace string, limit int) {
	if isMetadata(r) {
		limit = min(limit, 20)
	}
	version, list, from := f.version, len(f.pages), 0
	if token := r.URL.Query().Get("continue"); token != "" {
		if _, err := fmt.Sscanf(token, "%d-%d-%d", &version, &list, &from); err != nil || version < f.compacted {
			status(w, http.StatusGone, "Expired")
			return
		}
	} else {
		f.pages = append(f.pages, f.itemsLocked(namespace))
	}
	items, more := f.pages[list][from:], ""
	if len(items) > limit {
		items, more = items[:limit], fmt.Sprintf("%d-%d-%d", version, list, from+limit)
	}
	f.writeListLocked(w, r, items, version, more)
}

func (f *fakeAPI) writeListLocked(w http.ResponseWriter, r *http.Request, items []string, version int, more string) {
	kind, api := "PodList", "v1"
	if isMetadata(r) {
		kind, api = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	var body io.Writer = w
	if r.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		body = z
	}
	fmt.Fprintf(body, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`, kind, api, version, more, strings.Join(items, ","))
}

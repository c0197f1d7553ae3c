package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

const (
	// writesKept is for how long a write is remembered. A copy that says it is live was
	// proven current less than that ago (see the lease in docs/guarantees.md), and so
	// holds what was written before.
	writesKept = 75 * time.Second
	// maxWrites bounds how many are remembered one by one.
	maxWrites = 10000
	// maxWritten bounds the answer to a write that is read for its version; the API
	// server's own limit of an object is 1.5 MB.
	maxWritten = 2 << 20
)

// writes remember which resources somebody has lately written through this API, so that
// nobody reads what was before their own write: clients that go on from what they wrote,
// such as controllers, would do it again, or undo it. What a write makes others change is
// not waited for, at the API server neither. The zero value is ready.
type writes struct {
	mu     sync.Mutex // guards all below
	last   map[write]*written
	pruned time.Time
}

// write is what is written by whom; without a name, by anybody of whom there are too many.
type write struct {
	cluster, name string
	resource      schema.GroupResource
}

// written is what is known of the last ones of its kind. It is not changed once it can be
// had, but for what is found out about it.
type written struct {
	at time.Time
	// version is the highest at which one of them came to be, "" if none is known.
	version string
	// gone are objects that were deleted, at whichever version.
	gone []goneObject
	// unknown: of some neither is known.
	unknown bool
}

// goneObject is one that was deleted, or of which only that was asked: it has a version
// after the given one then, or ends after its grace period. Without a version it is gone.
type goneObject struct {
	key          cache.Key
	uid, version string
}

// forget forgets those of a cluster.
func (ws *writes) forget(cluster string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	maps.DeleteFunc(ws.last, func(w write, _ *written) bool { return w.cluster == cluster })
}

// maxGone is how many deletions are remembered one by one.
const maxGone = 100

// note remembers one more, which is as one says.
func (ws *writes) note(by write, one written) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.last == nil {
		ws.last = map[write]*written{}
	}
	ws.prune(one.at)
	if _, known := ws.last[by]; !known && len(ws.last) >= maxWrites {
		by.name = ""
		one = written{at: one.at, unknown: true}
	}
	if before := ws.last[by]; before != nil && one.at.Sub(before.at) < writesKept {
		one.join(before)
	}
	ws.last[by] = &one
}

// join adds what was before. Answers may come in another order than what they tell of.
func (w *written) join(before *written) {
	if w.version == "" || !cache.Older(before.version, w.version) && before.version != "" {
		w.version = before.version
	}
	w.gone = slices.Concat(before.gone, w.gone)
	if w.unknown = w.unknown || before.unknown || len(w.gone) > maxGone; w.unknown {
		w.gone = nil // the version to be asked for is after them
	}
}

func (ws *writes) prune(now time.Time) {
	if now.Sub(ws.pruned) < writesKept {
		return
	}
	ws.pruned = now
	for by, w := range ws.last {
		if now.Sub(w.at) >= writesKept {
			delete(ws.last, by)
		}
	}
}

// after is what who asks may have written, nil if there was nothing lately, and a copy of
// it.
func (ws *writes) after(by write, now time.Time) (*written, written) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, name := range []string{by.name, ""} {
		by.name = name
		if w := ws.last[by]; w != nil && now.Sub(w.at) < writesKept {
			return w, *w
		}
	}
	return nil, written{}
}

// learn notes a version that the API server was at after all of w.
func (ws *writes) learn(w *written, version string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.version, w.unknown, w.gone = version, false, nil
}

// settle notes that a copy has lost what is gone.
func (ws *writes) settle(w *written) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.gone = nil
}

// noteWrite remembers a request that is passed on, if it may have changed anything, with
// the answer to it, nil if none came. It must be called before the client has the answer,
// and may read at once.
func (a *API) noteWrite(r *http.Request, req *request, answer *http.Response) {
	refused := answer != nil && answer.StatusCode >= 300 && answer.StatusCode < 500
	if r.Method == http.MethodDelete && req.name == "" {
		refused = false // of many, what came before the one that was refused is gone
	}
	if isRead(r.Method) || refused || req.resource == "" || storesNothing(req) || !a.holds(req) {
		return
	}
	one := written{unknown: true}
	if answer != nil {
		one = writtenOf(readAnswer(answer), r.Method, req)
	}
	if one.nothing() {
		return
	}
	one.at = time.Now()
	by := write{req.cluster, access.From(r.Context()).Name(), storedAs(req.group, req.resource)}
	a.writes.note(by, one)
}

// nothing reports whether nothing was written.
func (w *written) nothing() bool { return w.version == "" && len(w.gone) == 0 && !w.unknown }

// holds reports whether there is a copy of what is written. Of what there is none yet, one
// will be listed after the write; and names that somebody made up must not take the place of
// what others have written.
func (a *API) holds(req *request) bool {
	gr := storedAs(req.group, req.resource)
	return slices.ContainsFunc(a.Caches.Resources(), func(res Resource) bool {
		spec := res.Spec()
		return spec.Watch && spec.Cluster == req.cluster && storedAs(spec.GVR.Group, spec.GVR.Resource) == gr
	})
}

// neverSent reports whether a request has not left for the API server: nobody was there.
func neverSent(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// writeAnswer is what of the answer to a write tells where to find it: an object, or of
// what was deleted a Status, or a list of the objects as they were before.
type writeAnswer struct {
	Kind     string
	Metadata struct{ ResourceVersion string }
	Details  struct{ UID string }
	Items    []metav1.PartialObjectMetadata
}

// deleted are the objects of a list that were to be deleted. Those that others were to
// delete before may not have changed.
func (a *writeAnswer) deleted() (all []goneObject) {
	for _, o := range a.Items {
		if o.DeletionTimestamp == nil {
			all = append(all, goneObject{cache.Key{Namespace: o.Namespace, Name: o.Name}, string(o.UID), o.ResourceVersion})
		}
	}
	return all
}

// writtenOf is what an answer says. An object has the version that it came to, also the one
// that was deleted (k8s.io/apiserver, storage/etcd3/store.go, conditionalDelete).
func writtenOf(answer writeAnswer, method string, req *request) written {
	switch {
	case answer.Kind == "Status" && method == http.MethodDelete && req.name != "" && answer.Details.UID != "" && req.subresource == "":
		return written{gone: []goneObject{{key: cache.Key{Namespace: req.namespace, Name: req.name}, uid: answer.Details.UID}}}
	case method == http.MethodDelete && req.name == "" && strings.HasSuffix(answer.Kind, "List"):
		gone := answer.deleted()
		return written{gone: gone, unknown: len(gone) > maxGone}
	case answer.Kind == "Status" || answer.Metadata.ResourceVersion == "" || req.name == "" && method == http.MethodDelete:
		return written{unknown: true}
	}
	return written{version: answer.Metadata.ResourceVersion}
}

// storesNothing reports whether what is created by a request is its answer alone.
func storesNothing(req *request) bool {
	switch req.group {
	case "authorization.k8s.io", "authentication.k8s.io":
		return true
	}
	return req.isConnect() || req.group == "" && req.resource == "serviceaccounts" && req.subresource == "token"
}

// storedAs is the resource that changes when one is written.
func storedAs(group, resource string) schema.GroupResource {
	switch {
	case group == "events.k8s.io": // another form of the same objects
		group = ""
	case group == "" && resource == "bindings": // of pods to nodes
		resource = "pods"
	}
	return schema.GroupResource{Group: group, Resource: resource}
}

// readAnswer reads the answer to a write, which stays as it is, as far as it can be read.
func readAnswer(answer *http.Response) (known writeAnswer) {
	form, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if form != typeJSON && form != runtime.ContentTypeProtobuf || answer.Header.Get("Content-Encoding") != "" {
		return writeAnswer{}
	}
	var read bytes.Buffer
	_, err := io.Copy(&read, io.LimitReader(answer.Body, maxWritten))
	rest := io.Reader(answer.Body)
	if err != nil {
		rest = failing{err}
	}
	if err == nil && read.Len() < maxWritten {
		known = decodeAnswer(form, read.Bytes())
	}
	answer.Body = readCloser{io.MultiReader(&read, rest), answer.Body}
	return known
}

// decodeAnswer is empty where body is not what it says.
func decodeAnswer(form string, body []byte) (known writeAnswer) {
	if form == typeJSON {
		if json.Unmarshal(body, &known) != nil {
			return writeAnswer{}
		}
		return known
	}
	// Before the message stand four bytes, and in it is another one
	// (apimachinery, runtime/serializer/protobuf).
	var unknown runtime.Unknown
	message, ok := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !ok || unknown.Unmarshal(message) != nil {
		return writeAnswer{}
	}
	if known.Kind = unknown.Kind; known.Kind == "Status" {
		var status metav1.Status
		if status.Unmarshal(unknown.Raw) == nil && status.Details != nil {
			known.Details.UID = string(status.Details.UID)
		}
		return known
	}
	if strings.HasSuffix(known.Kind, "List") {
		var list metav1.PartialObjectMetadataList // whose items are where those of all lists are
		if list.Unmarshal(unknown.Raw) != nil {
			return writeAnswer{}
		}
		known.Items = list.Items
		return known
	}
	var object metav1.PartialObjectMetadata // whose metadata are where those of all objects are
	if object.Unmarshal(unknown.Raw) == nil {
		known.Metadata.ResourceVersion = object.ResourceVersion
	}
	return known
}

type readCloser struct {
	io.Reader
	io.Closer
}

// failing is the end of what could not be read any further.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// reachOwn waits until the copy holds what who asks has lately written of its resource.
// Where the answer to a write did not say what to look for, the first read after it asks
// the API server which version it is at.
func (a *API) reachOwn(ctx context.Context, t *target) (proven string, err error) {
	gr := t.spec().GVR.GroupResource()
	w, known := a.writes.after(write{t.cluster, access.From(ctx).Name(), storedAs(gr.Group, gr.Resource)}, time.Now())
	switch {
	case w == nil:
		return "", nil
	case known.unknown:
		if proven, err = a.reachPresent(ctx, t); err == nil {
			a.writes.learn(w, proven)
		}
		return proven, err
	case known.version != "":
		proven, err = known.version, a.reachVersion(ctx, t, known.version)
	}
	if err != nil || len(known.gone) == 0 {
		return proven, err
	}
	soon, cancel := context.WithTimeout(ctx, SuspectAfter)
	defer cancel()
	for _, object := range known.gone {
		switch err := t.awaitGone(soon, object); {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case errors.Is(err, cache.ErrStopped):
			return "", err
		case err != nil: // the copy is late, or it was a dry run and nothing is gone
			if proven, err = a.reachPresent(ctx, t); err == nil {
				a.writes.learn(w, proven)
			}
			return proven, err
		}
	}
	a.writes.settle(w)
	return proven, nil
}

// awaitGone waits until the copy does not hold an object.
func (t *target) awaitGone(ctx context.Context, object goneObject) error {
	for {
		o, at, _, ok := t.reader.GetAt(object.key)
		if !ok || o.UID() != object.uid || object.version != "" && cache.Older(object.version, o.ResourceVersion()) {
			return nil
		}
		next, err := nextVersion(at)
		if err == nil {
			err = t.reader.WaitVersionIn(ctx, object.key.Namespace, next)
		}
		if err != nil {
			return err
		}
	}
}

// nextVersion is the lowest after version.
func nextVersion(version string) (string, error) {
	n, err := strconv.ParseUint(version, 10, 64)
	return strconv.FormatUint(n+1, 10), err
}

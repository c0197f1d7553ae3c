package kubeapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

// CutError ends an answer that has begun: the connection must be cut, so that
// the client cannot take what it got for the whole.
type CutError struct {
	Cause error
	// Client: it was the client that could not be written to.
	Client bool
}

func (e *CutError) Error() string { return e.Cause.Error() }
func (e *CutError) Unwrap() error { return e.Cause }

// cut marks what went wrong while writing to the client.
func cut(err error) error {
	if err == nil {
		return nil
	}
	return &CutError{Cause: err, Client: true}
}

func statusError(code int, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: reply.Failure(code, reason, fmt.Sprintf(format, args...))}
}

// statusOf is what a client is told of err inside a stream.
func statusOf(err error) metav1.Status {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		s := known.Status()
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return s
	}
	return reply.Failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, "informerd failed to go on; its log says why")
}

func errNoPath(path string) error {
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource: nothing is served at %s", path)
}

func errNoCluster(name string, names []string) error {
	if name == "" {
		return statusError(http.StatusNotFound, metav1.StatusReasonNotFound,
			"there are several clusters: ask below %s/NAME, where NAME is one of: %s", ClustersPrefix, strings.Join(names, ", "))
	}
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound, "there is no cluster %q", name)
}

// errUnknown is what the API server says, too: it knows no such path.
func errUnknown(q *request) error {
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound,
		"the server could not find the requested resource: informerd knows no %s", q.path())
}

func errSubresource(q *request) error {
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound,
		"informerd holds objects, not their subresources: %s/%s can be read through it with passthrough: reads", q.gvr().GroupResource(), q.subresource)
}

func errNotWatched(q *request, why string) error {
	status := reply.Failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("informerd does not watch %s: %s", q.gvr().GroupResource(), why))
	status.Details = &metav1.StatusDetails{Group: q.group, Kind: q.resource, Name: q.name,
		Causes: []metav1.StatusCause{{Type: "NotWatched", Message: why}}}
	return &apierrors.StatusError{ErrStatus: status}
}

// errNotHeld is errNotWatched of one object, which may exist. It is no 404: to
// clients that would mean that the object is gone.
func errNotHeld(q *request) error {
	why := "its configuration selects only some of them, and this is not among those"
	status := reply.Failure(http.StatusForbidden, metav1.StatusReasonForbidden,
		fmt.Sprintf("%s %q may exist, but informerd does not watch it: %s", q.gvr().GroupResource(), q.name, why))
	status.Details = &metav1.StatusDetails{Group: q.group, Kind: q.resource, Name: q.name,
		Causes: []metav1.StatusCause{{Type: "NotWatched", Message: why}}}
	return &apierrors.StatusError{ErrStatus: status}
}

// errNotReadable says that there is no data, which is not the same as no
// objects. Clients ask again, up to ten times, where they are told when: not in a
// state that only a person changes.
func errNotReadable(v *cache.View) error {
	message := fmt.Sprintf("%s is %s in informerd", v.Spec.Name(), v.State)
	if passes(v.State) {
		message += ": there is no data yet"
	}
	return errNoData(v, v.State, message, v.Reason)
}

// errNamespaceMissing is errNotReadable of one namespace.
func errNamespaceMissing(v *cache.View, m cache.MissingNamespace) error {
	return errNoData(v, m.State, fmt.Sprintf("%s of namespace %s is %s in informerd: there is no data to answer from", v.Spec.Name(), m.Namespace, m.State), m.Reason)
}

// errLeftBehind is about a copy of a history that a restore has undone: it is about to
// be replaced.
func errLeftBehind(v *cache.View, present, held string) error {
	return errNoData(v, cache.Stale, fmt.Sprintf("the API server is at resourceVersion %s, behind the copy of %s at %s", present, v.Spec.Name(), held),
		"etcd was restored, and the copy is about to be listed again")
}

// passes reports whether a state without data ends by itself.
func passes(state cache.State) bool { return state != cache.Forbidden && state != cache.Failed }

func errNoData(v *cache.View, state cache.State, message, reason string) error {
	var again int32
	if passes(state) {
		again = 1
	}
	if reason != "" {
		message += ": " + reason
	}
	status := reply.Failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, message)
	status.Details = &metav1.StatusDetails{Group: v.Spec.GVR.Group, Kind: v.Spec.GVR.Resource, RetryAfterSeconds: again}
	return &apierrors.StatusError{ErrStatus: status}
}

// errReadOnly refuses a write.
func errReadOnly(method string) error {
	return statusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"%s is not allowed: informerd is a read replica; with passthrough: all it forwards writes to the API server", method)
}

func errTooNew(wanted, current string) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %s, current: %s", wanted, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func errTooOld(wanted, oldest string) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %s (%s)", wanted, oldest))
}

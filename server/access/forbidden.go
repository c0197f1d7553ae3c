package access

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Forbidden is the answer to a request that a may not be made with, in the API
// server's words. It says nothing of what there is.
func Forbidden(who Asker, a Attributes, reason string) *apierrors.StatusError {
	message := sanitizer.Replace(a.refusal(who.Name()))
	if reason != "" {
		message += ": " + reason
	}
	return apierrors.NewForbidden(a.GroupResource(), a.Name, errors.New(message))
}

// ForbiddenPath is Forbidden of what is no resource.
func ForbiddenPath(who Asker, verb, path string) *apierrors.StatusError {
	message := sanitizer.Replace(fmt.Sprintf("User %q cannot %s path %q", who.Name(), verb, path))
	return apierrors.NewForbidden(Attributes{}.GroupResource(), "", errors.New(message))
}

// Unknown is the answer where an Asker failed with err: what it says itself, or that
// this cannot be told now. The cause is for the log.
func Unknown(who Asker, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return err
	}
	status := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("what user %q may see cannot be told now", who.Name()),
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}}
	return fmt.Errorf("%w: %w", status, err)
}

// sanitizer is the API server's: names come from the request.
var sanitizer = strings.NewReplacer(`&`, "&amp;", `<`, "&lt;", `>`, "&gt;")

func (a Attributes) refusal(name string) string {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	cannot := fmt.Sprintf("User %q cannot %s resource %q in API group %q ", name, a.Verb, resource, a.Group)
	if a.Namespace != "" {
		return cannot + fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return cannot + "at the cluster scope"
}

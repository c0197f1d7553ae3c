package access

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

package kubeapi

import (
	"net/http"
	"strings"

	"github.com/informerd/informerd/server/audit"
)

// record notes what a request is about, in the words in which the API server does.
func (q *request) record(r *http.Request) {
	record := audit.From(r.Context())
	if record == nil {
		return
	}
	if q.resource == "" {
		record.About(strings.ToLower(r.Method), q.cluster, audit.Object{})
		return
	}
	a := q.attributes(r)
	if !isRead(r.Method) {
		a.Verb, a.Name = writeVerb(r.Method, q.name), q.name
	}
	record.About(a.Verb, q.cluster, audit.Object{
		Resource: a.Resource, Namespace: a.Namespace, Name: a.Name,
		APIGroup: a.Group, APIVersion: a.Version, Subresource: a.Subresource,
	})
}

// writeVerb is what the API server calls a method that is no read.
func writeVerb(method, name string) string {
	switch {
	case method == http.MethodPost:
		return "create"
	case method == http.MethodPut:
		return "update"
	case method == http.MethodDelete && name == "":
		return "deletecollection"
	}
	return strings.ToLower(method)
}

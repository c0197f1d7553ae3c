package server

import (
	"fmt"
	"net/http"
	"path"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

// lacking is a namespace that there is no data of, or none that is kept up to date.
type lacking struct {
	namespace string
	state     cache.State // empty: the rule does not watch it
}

func (l lacking) String() string {
	if l.state == "" {
		return l.namespace + " (not watched)"
	}
	return fmt.Sprintf("%s (%s)", l.namespace, l.state)
}

// lackingError refuses a question about one namespace, which is lacking: that there is
// nothing in it would be said where nobody looks.
type lackingError struct {
	lacking
	status error
}

func (e *lackingError) Error() string { return e.status.Error() }
func (e *lackingError) Unwrap() error { return e.status }

// lacking are those of the namespaces that a question is about, of all if there are none.
// The error is a *lackingError. The resource is readable.
func (v *viewed) lacking(namespaces []string) (all []lacking, err error) {
	missing := v.view.Missing
	for _, ns := range namespaces {
		if cache.IsGlob(ns) || !v.view.Spec.Namespaced || v.reader.Watches(ns) ||
			slices.ContainsFunc(missing, func(m cache.MissingNamespace) bool { return m.Namespace == ns }) {
			continue
		}
		l := lacking{namespace: ns}
		if len(namespaces) == 1 {
			return nil, &lackingError{l, notHeld(v.view, ns)}
		}
		all = append(all, l)
	}
	for _, m := range missing {
		l := lacking{m.Namespace, m.State}
		if len(namespaces) == 1 && namespaces[0] == m.Namespace {
			return nil, &lackingError{l, noNamespaceData(v.view, m)}
		}
		if len(namespaces) == 0 || slices.ContainsFunc(namespaces, func(glob string) bool { ok, _ := path.Match(glob, m.Namespace); return ok }) {
			all = append(all, l)
		}
	}
	return all, nil
}

func notHeld(view *cache.View, namespace string) error {
	return statusError(withCause(reply.Failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("%s of namespace %s are not here and may exist: the copy does not hold that namespace", view.Spec.Name(), namespace)), "NotWatched", ""))
}

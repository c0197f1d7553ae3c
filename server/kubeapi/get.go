package kubeapi

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/audit"
)

// get answers with one object.
func (a *API) get(w http.ResponseWriter, r *http.Request, t *target) error {
	m, err := negotiate(r, media.forObjects)
	if err != nil {
		return err
	}
	if m.as == asPartialList {
		return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"you requested %s, but the requested object is not a list", asPartialList)
	}
	version, err := canonicalVersion(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		return errVersion(err)
	}
	if _, err := a.reach(r, t, version); err != nil {
		return err
	}
	o, at, _, ok := t.reader.GetAt(cache.Key{Namespace: t.namespace, Name: t.name})
	if !ok && !t.reader.Covers(t.namespace) {
		return a.passRead(w, r, t.request, errNotHeld(t.request))
	}
	a.Freshness(w.Header(), t.view, at)
	if !ok {
		return apierrors.NewNotFound(t.groupResource(), t.name)
	}
	if m.as == asTable {
		page := &cache.Page{Result: cache.Result{Version: o.ResourceVersion(), Objects: []*cache.Object{o}}}
		return a.writeTable(w, r, t, m, page, listMeta{ResourceVersion: page.Version})
	}
	body, err := appendObject(nil, o, m.as)
	if err != nil {
		return err
	}
	audit.From(r.Context()).Returned(1)
	return writeBody(w, m, body)
}

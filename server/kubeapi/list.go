package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/reply"
)

// checkEvery is how many objects are written to a stream between two looks at
// the client.
const checkEvery = 64

// listOrWatch answers with objects, and with what becomes of them.
func (a *API) listOrWatch(w http.ResponseWriter, r *http.Request, t *target) error {
	m, err := negotiate(r, media.forObjects)
	if err != nil {
		return err
	}
	opts, err := listOptions(r, t)
	if err != nil {
		return err
	}
	q, err := query(t, opts)
	if err != nil {
		return err
	}
	a.warnPartial(w, t)
	if opts.Watch {
		if m, err = negotiate(r, media.forStreams); err != nil {
			return err
		}
		return a.watch(w, r, t, m, opts, q)
	}
	if m.as == asPartial {
		return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"you requested %s, but the requested object is a list", asPartial)
	}
	page, err := a.page(r, t, opts, q)
	if err == nil {
		err = t.rights.recheck(r.Context()) // it may have waited for its turns
	}
	if err != nil {
		return err
	}
	a.Freshness(w.Header(), t.view, page.Version)
	if m.as == asTable {
		return a.writeTable(w, r, t, m, page, metaOf(page, opts))
	}
	meta := metaOf(page, opts)
	if q.Shard != nil && m.as == "" {
		meta.ShardInfo = &metav1.ShardInfo{Selector: q.Shard.String()}
	}
	return writeList(w, r, t, m, page, meta)
}

// warnPartial tells, in the words that kubectl prints, that the copy does not
// hold all there may be.
func (a *API) warnPartial(w http.ResponseWriter, t *target) {
	if missing := t.view.Missing; t.namespace == "" && len(missing) > 0 {
		names := make([]string, len(missing))
		for i, m := range missing {
			names[i] = m.Namespace + " (" + string(m.State) + ")"
		}
		w.Header().Add("Warning", `299 informerd "informerd has no data, or none that is kept up to date, of `+t.spec().Name()+
			` in namespaces `+strings.Join(names, ", ")+`"`)
	}
	spec := t.spec()
	what := ""
	switch {
	case spec.Partial():
		what = "only the " + spec.Name() + " that its configuration selects"
	case t.namespace == "" && spec.Namespaced && !t.reader.Watches(""):
		what = spec.Name() + " of some namespaces only"
	default:
		return
	}
	w.Header().Add("Warning", `299 informerd "informerd holds `+what+`"`)
}

// selects reports whether opts leave objects out.
func selects(opts *internalversion.ListOptions) bool {
	return opts.LabelSelector != nil && !opts.LabelSelector.Empty() ||
		opts.FieldSelector != nil && !opts.FieldSelector.Empty() || opts.ShardSelector != ""
}

// page is the part of a list that is asked for, of the version that is.
func (a *API) page(r *http.Request, t *target, opts *internalversion.ListOptions, q cache.Query) (*cache.Page, error) {
	ctx := r.Context()
	version, err := canonicalVersion(opts.ResourceVersion)
	if err != nil {
		return nil, errListVersion(err)
	}
	if opts.Continue != "" {
		if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
			return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		return nextPage(ctx, t.reader, opts, q)
	}
	exact := wantsExact(opts)
	if exact && version == "0" { // such as 00: exactly none is the present one
		exact, version = false, ""
	}
	proven, err := a.reach(r, t, version)
	if err != nil {
		return nil, err
	}
	if exact {
		return exactPage(ctx, t.reader, opts, q, version)
	}
	return firstPage(ctx, t.reader, opts, q, proven)
}

// firstPage is of the present. A copy that is proven to be complete up to a
// version that it has not seen is of that one: whoever asks for a version is not
// to get an older one.
func firstPage(ctx context.Context, reader *cache.Reader, opts *internalversion.ListOptions, q cache.Query, proven string) (*cache.Page, error) {
	if proven == "" || !before(reader.Version(), proven) {
		return reader.Page(ctx, q, int(opts.Limit), "")
	}
	found, err := selectProven(ctx, reader, q, proven)
	if err != nil {
		return nil, err
	}
	return reader.FirstPage(q, found, int(opts.Limit)), nil
}

// selectProven is Select of a copy that is complete up to a version.
func selectProven(ctx context.Context, reader *cache.Reader, q cache.Query, proven string) (*cache.Result, error) {
	found, err := reader.Select(ctx, q)
	if err == nil && proven != "" && before(found.Version, proven) {
		found.Version = proven
	}
	return found, err
}

// exactPage is of a version up to which the copy is proven to be complete.
func exactPage(ctx context.Context, reader *cache.Reader, opts *internalversion.ListOptions, q cache.Query, version string) (*cache.Page, error) {
	for range selectTries {
		page, err := reader.PageAt(ctx, q, int(opts.Limit), version)
		if errors.Is(err, cache.ErrTooNew) { // nothing has happened since before it
			page, err = firstPage(ctx, reader, opts, q, version)
			if err == nil && page.Version != version {
				continue // until now: by now it is remembered
			}
		}
		if errors.Is(err, cache.ErrExpired) {
			return nil, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
		}
		return page, err
	}
	return nil, errTooNew(version, reader.Version())
}

// wantsExact: a first page at a version is of that very version even where
// nothing says so, as at the API server.
func wantsExact(opts *internalversion.ListOptions) bool {
	switch opts.ResourceVersionMatch {
	case metav1.ResourceVersionMatchExact:
		return true
	case "":
		return opts.Limit > 0 && opts.ResourceVersion != "" && opts.ResourceVersion != "0"
	}
	return false
}

func nextPage(ctx context.Context, reader *cache.Reader, opts *internalversion.ListOptions, q cache.Query) (*cache.Page, error) {
	page, err := reader.Page(ctx, q, int(opts.Limit), opts.Continue)
	if invalid, ok := errors.AsType[*cache.InvalidError](err); ok {
		return nil, apierrors.NewBadRequest("invalid continue token: " + invalid.Message)
	}
	if errors.Is(err, cache.ErrExpired) {
		return nil, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
			"You must start a new list without the continue parameter.")
	}
	return page, err
}

// listMeta is the metadata of a list; Remaining is absent where a selector
// leaves it unknown.
type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue,omitempty"`
	Remaining       int    `json:"remainingItemCount,omitempty"`
	// ShardInfo says of which part of all objects the list is; nil: of all. The API server does not
	// say it in tables and lists of metadata.
	ShardInfo *metav1.ShardInfo `json:"shardInfo,omitempty"`
}

func metaOf(page *cache.Page, opts *internalversion.ListOptions) listMeta {
	meta := listMeta{ResourceVersion: page.Version, Continue: page.Continue, Remaining: page.Remaining}
	if selects(opts) {
		meta.Remaining = 0
	}
	return meta
}

// writeList answers with a page, of which no more is held at a time than a
// reply.Writer does, whatever its form.
func writeList(w http.ResponseWriter, r *http.Request, t *target, m media, page *cache.Page, meta listMeta) error {
	form, err := newListForm(t, m, meta)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", m.contentType())
	audit.From(r.Context()).Returned(len(page.Objects))
	out := reply.New(r.Context(), w)
	defer out.Release()
	if err = form.write(out, page.Objects); err == nil {
		err = out.Finish()
	}
	if err != nil && out.Begun() {
		return &CutError{Cause: err, Client: out.Gone()}
	}
	return err
}

package server

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/reply"
)

// checkEvery is how many objects are written to a stream between two looks at
// the clock.
const checkEvery = 64

// listing is a list to be written: what it says of itself, and its items. They come in this
// order: commands take in rows while they are read, and have to know the columns before.
type listing struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   listMeta `json:"metadata"`
	Facets     []facet  `json:"facets,omitempty"`
	// Columns are those of a table, in the order in which resources appear.
	Columns []tableColumns `json:"columns,omitempty"`

	count int
	// item appends the JSON of item i.
	item func(dst []byte, i int) ([]byte, error)
}

// objectList lists the objects of a page, which are of a View, as v shows them.
func objectList(ctx context.Context, of *cache.View, page *cache.Page, v view) *listing {
	spec := &of.Spec
	enc := newEncoder(v, !spec.Aggregated)
	if v.named != 0 {
		enc.spec = func(*cache.Object) *cache.Spec { return spec }
	} else {
		enc.within = page.Within(v.paths)
	}
	l := &listing{
		Kind:       listKind(*spec),
		APIVersion: spec.GVR.GroupVersion().String(),
		Metadata:   listMeta{ResourceVersion: page.Version, Continue: page.Continue, FilterErrors: faultsOf(page.Faults)},
		count:      len(page.Objects),
		item:       itemsOf(ctx, enc, page.Objects),
	}
	if !v.uncounted {
		l.Metadata.Remaining = page.Remaining
	}
	if v.metadata {
		l.Kind, l.APIVersion = "PartialObjectMetadataList", partialVersion
	}
	return l
}

// writeList answers with a list. The JSON of objects passes through as it is; of
// a long list no more is held unpacked than a reply.Writer does.
func writeList(w http.ResponseWriter, r *http.Request, l *listing, v view) error {
	if err := sameRights(r.Context()); err != nil {
		return err
	}
	if l.Metadata.Continue != "" && v.output != outputJSON && v.output != outputYAML {
		w.Header().Set("Informerd-Continue", l.Metadata.Continue)
	}
	return writeOut(w, r, v.output.mediaType(), func(out *reply.Writer) error {
		audit.From(r.Context()).Returned(l.count)
		return writeItems(out, newListWriter(v), l)
	})
}

// writeOut answers with what write writes, part by part.
func writeOut(w http.ResponseWriter, r *http.Request, mediaType string, write func(*reply.Writer) error) error {
	if err := sameRights(r.Context()); err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	if r.Method == http.MethodHead {
		return nil
	}
	out := reply.New(r.Context(), w)
	defer out.Release()
	err := write(out)
	if err == nil {
		err = out.Finish()
	}
	switch {
	case out.Gone():
		return &abortError{&writeError{err}}
	case err != nil && out.Begun():
		return &abortError{err}
	}
	return err
}

func writeItems(out *reply.Writer, lw listWriter, l *listing) error {
	if err := out.Append(func(dst []byte) ([]byte, error) { return lw.head(dst, l) }); err != nil {
		return err
	}
	for i := range l.count {
		if err := out.Append(func(dst []byte) ([]byte, error) { return lw.item(dst, l, i) }); err != nil {
			return err
		}
	}
	return out.Append(func(dst []byte) ([]byte, error) { return lw.foot(dst, l), nil })
}

func listKind(spec cache.Spec) string {
	return cmp.Or(spec.ListKind, spec.Kind+"List")
}

// listMeta is the metadata of every list. Remaining is how many items follow on
// later pages.
type listMeta struct {
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Continue        string `json:"continue,omitempty"`
	Remaining       int    `json:"remainingItemCount,omitempty"`
	Truncated       bool   `json:"truncated,omitempty"`
	// FilterErrors is there if objects were left out because the filter has no
	// value for them.
	FilterErrors *filterErrors `json:"filterErrors,omitempty"`
	// AggErrors counts the values that are no numbers or quantities, by the
	// aggregate that could not add them.
	AggErrors map[string]int `json:"aggErrors,omitempty"`
	// Resources are those a question about many was put to.
	Resources []kindState `json:"resources,omitempty"`
}

// clientWriter marks the client's errors as such.
type clientWriter struct{ w io.Writer }

func (c clientWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}

// writeJSON answers with one value.
func writeJSON(w http.ResponseWriter, r *http.Request, value any, pretty bool) error {
	body, err := reply.JSON(value, pretty)
	if err != nil {
		return err
	}
	return writeBody(w, r, append(body, '\n'))
}

func writeBody(w http.ResponseWriter, r *http.Request, body []byte) error {
	return writeAs(w, r, typeJSON, body)
}

func writeAs(w http.ResponseWriter, r *http.Request, mediaType string, body []byte) error {
	if err := sameRights(r.Context()); err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	if r.Method == http.MethodHead {
		return nil
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil {
		return &abortError{&writeError{err}}
	}
	return nil
}

package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/informerd/informerd/cache"
)

const (
	// listBuffer is what of a list is held before it goes out.
	listBuffer = 32 << 10
	// checkEvery is how many objects are written between two looks at the
	// clock.
	checkEvery = 64
)

// listing is a list to be written: what it says of itself, and its items.
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

// objectList lists the objects of a page as v shows them.
func objectList(spec cache.Spec, page *cache.Page, v view) *listing {
	enc := &encoder{view: v}
	l := &listing{
		Kind:       listKind(spec),
		APIVersion: spec.GVR.GroupVersion().String(),
		Metadata:   listMeta{ResourceVersion: page.Version, Continue: page.Continue, FilterErrors: faultsOf(page.Faults)},
		count:      len(page.Objects),
		item:       func(dst []byte, i int) ([]byte, error) { return enc.append(dst, page.Objects[i]) },
	}
	if !v.uncounted {
		l.Metadata.Remaining = page.Remaining
	}
	if v.metadata {
		l.Kind, l.APIVersion = "PartialObjectMetadataList", partialVersion
	}
	return l
}

// writeList streams a list. The JSON of objects passes through as it is; no more
// than one object is held decompressed.
func writeList(w http.ResponseWriter, r *http.Request, l *listing, v view) error {
	out := newListWriter(v)
	w.Header().Set("Content-Type", v.output.mediaType())
	if l.Metadata.Continue != "" && v.output != outputJSON && v.output != outputYAML {
		w.Header().Set("Informerd-Continue", l.Metadata.Continue)
	}
	if r.Method == http.MethodHead {
		return nil
	}
	client := &clientWriter{w: w}
	buffered := bufio.NewWriterSize(client, listBuffer)
	if err := writeItems(r.Context(), buffered, out, l); err != nil {
		if !client.begun {
			return err
		}
		return &abortError{err}
	}
	return nil
}

func writeItems(ctx context.Context, out *bufio.Writer, lw listWriter, l *listing) error {
	buf, err := lw.head(nil, l)
	if err != nil {
		return err
	}
	_, _ = out.Write(buf) // a bufio.Writer keeps its first error
	var item []byte
	for i := range l.count {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if item, err = l.item(item[:0], i); err != nil {
			return err
		}
		if buf, err = lw.item(buf[:0], i, item); err != nil {
			return err
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	_, _ = out.Write(lw.foot(buf[:0], l))
	return out.Flush()
}

func listKind(spec cache.Spec) string {
	if spec.Kind == "" {
		return "List"
	}
	return spec.Kind + "List"
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

// clientWriter marks the client's errors as such, and knows whether the answer
// has begun.
type clientWriter struct {
	w     io.Writer
	begun bool
}

func (c *clientWriter) Write(p []byte) (int, error) {
	c.begun = true
	n, err := c.w.Write(p)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}

// writeJSON answers with one value.
func writeJSON(w http.ResponseWriter, r *http.Request, value any, pretty bool) error {
	body, err := marshal(value, pretty)
	if err != nil {
		return err
	}
	return writeBody(w, r, append(body, '\n'))
}

// marshal leaves &, < and > as they are, unlike json.Marshal: messages name
// URLs, and no answer is taken for HTML.
func marshal(value any, pretty bool) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if pretty {
		enc.SetIndent("", "  ")
	}
	err := enc.Encode(value)
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), err
}

func writeBody(w http.ResponseWriter, r *http.Request, body []byte) error {
	w.Header().Set("Content-Type", typeJSON)
	if r.Method == http.MethodHead {
		return nil
	}
	if _, err := w.Write(body); err != nil {
		return &abortError{&writeError{err}}
	}
	return nil
}

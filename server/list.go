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

// encoder turns objects into the JSON of answers. Its buffers are reused, so it
// belongs to one goroutine.
type encoder struct {
	view
	raw, projected []byte
}

// append appends the JSON of o, seen through the view. Pretty JSON is indented
// below indent.
func (e *encoder) append(dst []byte, o *cache.Object, indent string) ([]byte, error) {
	if e.projection == nil && !e.pretty {
		return o.AppendJSON(dst)
	}
	shown, err := o.AppendJSON(e.raw[:0])
	if err != nil {
		return dst, err
	}
	e.raw = shown
	if e.projection != nil {
		if shown, err = e.projection.Append(e.projected[:0], shown); err != nil {
			return dst, err
		}
		e.projected = shown
	}
	if !e.pretty {
		return append(dst, shown...), nil
	}
	out := bytes.NewBuffer(dst)
	if err := json.Indent(out, shown, indent, "  "); err != nil {
		return dst, err
	}
	return out.Bytes(), nil
}

// writeList streams a page as a Kubernetes list. The JSON of the objects passes
// through as it is; no more than one object is held decompressed.
func writeList(w http.ResponseWriter, r *http.Request, spec cache.Spec, page *cache.Page, v view) error {
	head, err := listHead(spec, page, v.pretty)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", typeJSON)
	if r.Method == http.MethodHead {
		return nil
	}
	client := &clientWriter{w: w}
	out := bufio.NewWriterSize(client, listBuffer)
	if err := writeItems(r.Context(), out, head, page.Objects, v); err != nil {
		if !client.begun {
			return err
		}
		return &abortError{err}
	}
	return nil
}

func writeItems(ctx context.Context, out *bufio.Writer, head []byte, objects []*cache.Object, v view) error {
	separator, indent, foot := ",", "", "]}\n"
	if v.pretty {
		separator, indent, foot = ",\n    ", "    ", "\n  ]\n}\n"
		if len(objects) == 0 {
			foot = "]\n}\n"
		}
	}
	_, _ = out.Write(head) // a bufio.Writer keeps its first error
	enc := &encoder{view: v}
	var buf []byte
	for n, o := range objects {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if n > 0 {
			_, _ = out.WriteString(separator)
		} else if v.pretty {
			_, _ = out.WriteString("\n    ")
		}
		var err error
		if buf, err = enc.append(buf[:0], o, indent); err != nil {
			return err
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	_, _ = out.WriteString(foot)
	return out.Flush()
}

// listHead is the list up to and including the bracket of its items.
func listHead(spec cache.Spec, page *cache.Page, pretty bool) ([]byte, error) {
	list := struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Metadata   listMeta `json:"metadata"`
		Items      []string `json:"items"`
	}{
		Kind:       listKind(spec),
		APIVersion: spec.GVR.GroupVersion().String(),
		Metadata:   listMeta{ResourceVersion: page.Version, Continue: page.Continue, Remaining: page.Remaining, FilterErrors: faultsOf(page.Faults)},
		Items:      []string{},
	}
	head, err := marshal(list, pretty)
	if pretty {
		return bytes.TrimSuffix(head, []byte("]\n}")), err
	}
	return bytes.TrimSuffix(head, []byte("]}")), err
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

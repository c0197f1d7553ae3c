package kubeapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/server/reply"
)

// metadataPath finds the metadata of an object.
var metadataPath = func() *rawjson.Extractor {
	paths, err := rawjson.ParsePaths("metadata")
	if err != nil {
		panic(err)
	}
	e, err := rawjson.CompileExtractor(paths)
	if err != nil {
		panic(err)
	}
	return e
}()

// appendObject appends the JSON of o: whole, or only its metadata.
func appendObject(dst []byte, o *cache.Object, as string) ([]byte, error) {
	if as != asPartial && as != asPartialList {
		return o.AppendJSON(dst)
	}
	raw, err := o.JSON()
	if err != nil {
		return dst, err
	}
	return appendPartial(dst, raw)
}

// appendPartial appends the PartialObjectMetadata of an object.
func appendPartial(dst, raw []byte) ([]byte, error) {
	metadata, err := metadataOf(raw)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`...)
	dst = append(dst, metadata...)
	return append(dst, '}'), nil
}

// metadataOf is the JSON of an object's metadata.
func metadataOf(raw []byte) ([]byte, error) {
	var metadata []byte
	err := metadataPath.Each(raw, func(v rawjson.Value) bool {
		metadata = v.Text
		return v.Kind == rawjson.Object
	})
	if err == nil && metadata == nil {
		err = fmt.Errorf("object has no metadata")
	}
	return metadata, err
}

// writeBody answers with one JSON value.
func writeBody(w http.ResponseWriter, m media, body []byte) error {
	body, err := m.render(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", m.contentType())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, err = w.Write(body)
	return cut(err)
}

// writeValue answers with a value.
func writeValue(w http.ResponseWriter, m media, value any) error {
	body, err := reply.JSON(value, false)
	if err != nil {
		return err
	}
	return writeBody(w, m, body)
}

// render gives JSON the form that was asked for.
func (m media) render(body []byte) ([]byte, error) {
	switch {
	case m.yaml:
		return reply.YAML(body)
	case m.pretty:
		var err error
		if body, err = reply.AppendIndented(nil, body, ""); err != nil {
			return nil, err
		}
	}
	return append(bytes.TrimSuffix(body, []byte("\n")), '\n'), nil
}

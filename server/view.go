package server

import (
	"slices"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// view is how objects are shown.
type view struct {
	projection *rawjson.Projection // nil: whole objects
	paths      []rawjson.Path      // all that is shown of objects; none: all of them
	named      cache.Identity      // what is shown, where that is known without unpacking objects; else 0
	metadata   bool                // as PartialObjectMetadata
	table      bool                // as rows that the API server prints
	columns    []column            // of output=csv, and of output=table with fields
	output     output
	uncounted  bool // count=none
	pretty     bool
	lines      bool // each item of a list begins a line
}

// prettyItems, in the place of true, asks for a list in which each item begins a line, as cheap
// as one without lines.
const prettyItems = "items"

// column is one of a table: its name, and where in an item its cells are.
type column struct {
	name string
	path rawjson.Path
}

// partialVersion is the apiVersion of PartialObjectMetadata.
const partialVersion = "meta.k8s.io/v1"

// defaultColumns are those of output=csv without fields.
var defaultColumns = []string{"kind", "metadata.namespace", "metadata.name"}

func parseView(p params) (v view, err error) {
	if v.lines = p.Get("pretty") == prettyItems; !v.lines {
		if v.pretty, err = p.flag("pretty"); err != nil {
			return v, invalid("pretty", "%q is neither true nor false, nor %s", p.Get("pretty"), prettyItems)
		}
	}
	if v.output, err = parseOutput(p.Get("output"), p.Has("output")); err != nil {
		return v, err
	}
	if (v.pretty || v.lines) && v.output != outputJSON {
		return v, invalid("pretty", "not possible together with output=%s", v.output)
	}
	kind, err := p.oneOf("view", "full", "full", "metadata", "table")
	if err != nil {
		return v, err
	}
	v.metadata, v.table = kind == "metadata", kind == "table"
	count, err := p.oneOf("count", "exact", "exact", "none")
	if err != nil {
		return v, err
	}
	v.uncounted = count == "none"
	switch {
	case v.metadata && (p.Has("fields") || v.output.flat()):
		return v, invalid("view", "metadata is not possible together with fields or output=%s: name the paths in fields", v.output)
	case v.table && (p.Has("fields") && v.output == outputTable || v.output == outputCSV):
		return v, invalid("view", "table has the columns of the API server: leave it out and name the paths in fields, for output=csv or output=table")
	}
	if v.output == outputTable && !p.Has("fields") {
		v.table = true
	}
	return v, v.parseFields(p)
}

func (v *view) parseFields(p params, always ...rawjson.Path) error {
	paths, err := fieldsOf(p)
	if len(paths) > 0 && !v.output.flat() {
		paths = append(paths, always...)
	}
	switch {
	case err != nil:
		return err
	case v.output.flat():
		v.paths = paths
		for _, path := range paths {
			v.columns = append(v.columns, column{path.String(), path})
		}
		v.named = cache.IdentityOf(paths)
		return nil
	case v.metadata:
		paths = []rawjson.Path{metadataPath}
	}
	if len(paths) == 0 {
		return nil
	}
	if v.projection, err = rawjson.CompileProjection(paths); err != nil {
		return invalid("fields", "%v", err)
	}
	v.named, v.paths = cache.IdentityOf(paths), paths
	return nil
}

// nameKinds makes projected objects say what they are, among others of many
// kinds.
func (v *view) nameKinds(p params) error {
	if v.projection == nil || v.metadata || v.table {
		return nil
	}
	return v.parseFields(p, must(rawjson.ParsePath("apiVersion")), must(rawjson.ParsePath("kind")))
}

// partialView shows what identifies an object.
var partialView = view{metadata: true, projection: must(rawjson.CompileProjection([]rawjson.Path{metadataPath}))}

var metadataPath = must(rawjson.ParsePath("metadata"))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// fieldsOf reads the parameter fields; none means whole objects.
func fieldsOf(p params) ([]rawjson.Path, error) {
	var paths []rawjson.Path
	if !p.Has("fields") {
		if p.Get("output") == string(outputCSV) {
			for _, c := range defaultColumns {
				paths = append(paths, must(rawjson.ParsePath(c)))
			}
		}
		return paths, nil
	}
	if p.Get("fields") == "" {
		return nil, invalid("fields", "empty; leave it out for whole objects")
	}
	paths, err := rawjson.ParsePaths(p.Get("fields"))
	if err != nil {
		return nil, invalid("fields", "%v", err)
	}
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			return nil, invalid("fields", "%s is named twice", path)
		}
	}
	return paths, nil
}

// encoder turns objects into the JSON of answers. Its buffers are reused, so it
// belongs to one goroutine, but for project.
type encoder struct {
	view
	raw  []byte
	spec func(*cache.Object) *cache.Spec // nil: objects are unpacked
	// within appends as much of object i as is shown, or more; nil: all of it. Several
	// goroutines may do so at a time.
	within func(dst []byte, i int) ([]byte, error)
}

// newEncoder is an encoder of objects in which, if unique, no key occurs twice.
func newEncoder(v view, unique bool) *encoder {
	if unique && v.projection != nil {
		v.projection = v.projection.Unique()
	}
	return &encoder{view: v}
}

// read appends what there is to see of o, which is object i where there are several.
func (e *encoder) read(dst []byte, i int, o *cache.Object) ([]byte, error) {
	if e.spec != nil {
		if named, ok := e.spec(o).AppendIdentity(dst, o, cache.WholeIdentity); ok {
			return named, nil
		}
	}
	if e.within != nil {
		return e.within(dst, i)
	}
	return o.AppendJSON(dst)
}

// append appends the JSON of o, seen through the view, which is object i where there are
// several.
func (e *encoder) append(dst []byte, i int, o *cache.Object) ([]byte, error) {
	if e.projection == nil {
		return e.read(dst, i, o)
	}
	if e.spec != nil && !e.metadata {
		if named, ok := e.spec(o).AppendIdentity(dst, o, e.named); ok {
			return named, nil
		}
	}
	raw, err := e.read(e.raw[:0], i, o)
	if err != nil {
		return dst, err
	}
	e.raw = raw
	return e.project(dst, raw)
}

// project appends what the view shows of an object, whose JSON is raw. Several goroutines may
// do so at a time.
func (e *encoder) project(dst, raw []byte) (_ []byte, err error) {
	if !e.metadata {
		return e.projection.Append(dst, raw)
	}
	start := len(dst)
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"`+partialVersion+`"`...)
	brace := len(dst)
	if dst, err = e.projection.Append(dst, raw); err != nil {
		return dst[:start], err
	}
	dst[brace] = ',' // every object has metadata
	return dst, nil
}

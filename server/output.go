package server

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/server/reply"
)

// output names the form of a list.
type output string

const (
	outputJSON   output = "json"
	outputYAML   output = "yaml"
	outputCSV    output = "csv"
	outputNDJSON output = "ndjson"
	outputTable  output = "table"
)

var mediaTypes = map[output]string{
	outputJSON:   typeJSON,
	outputYAML:   "application/yaml",
	outputCSV:    "text/csv",
	outputNDJSON: "application/x-ndjson",
	outputTable:  "text/plain",
}

// flat outputs have cells instead of nested items, and no place beside them.
func (o output) flat() bool { return o == outputCSV || o == outputTable }

func (o output) mediaType() string { return mediaTypes[o] }

func parseOutput(s string, given bool) (output, error) {
	if !given {
		return outputJSON, nil
	}
	if mediaTypes[output(s)] == "" {
		return outputJSON, invalid("output", "%q is none of json, yaml, csv, ndjson and table", s)
	}
	return output(s), nil
}

// listWriter writes a list in one form. Each method appends to dst. It belongs to
// one list.
type listWriter interface {
	head(dst []byte, l *listing) ([]byte, error)
	// item appends item i of l.
	item(dst []byte, l *listing, i int) ([]byte, error)
	foot(dst []byte, l *listing) []byte
}

func newListWriter(v view) listWriter {
	switch {
	case v.output == outputYAML:
		return &yamlWriter{}
	case v.output == outputCSV:
		return newCSVWriter(v.columns)
	case v.output == outputNDJSON:
		return &ndjsonWriter{}
	case v.output == outputTable && v.table:
		return &tableWriter{}
	case v.output == outputTable:
		return &columnWriter{csvWriter: newCSVWriter(v.columns)}
	case v.pretty:
		return &prettyWriter{}
	case v.lines:
		return linesWriter{}
	default:
		return jsonWriter{}
	}
}

// scratch holds the JSON of the item that a listWriter turns into another form.
type scratch struct{ json []byte }

func (s *scratch) read(l *listing, i int) (json []byte, err error) {
	s.json, err = l.item(s.json[:0], i)
	return s.json, err
}

// jsonWriter writes a Kubernetes list.
type jsonWriter struct{}

func (jsonWriter) head(dst []byte, l *listing) ([]byte, error) {
	head, err := reply.JSON(l, false)
	return append(append(dst, bytes.TrimSuffix(head, []byte("}"))...), `,"items":[`...), err
}

func (jsonWriter) item(dst []byte, l *listing, i int) ([]byte, error) {
	if i > 0 {
		dst = append(dst, ',')
	}
	return l.item(dst, i)
}

func (jsonWriter) foot(dst []byte, _ *listing) []byte { return append(dst, "]}\n"...) }

// linesWriter writes the same, but each item begins a line. One that has lines of its own, as
// those of some aggregated API servers, keeps them.
type linesWriter struct{ jsonWriter }

func (linesWriter) item(dst []byte, l *listing, i int) ([]byte, error) {
	if i > 0 {
		dst = append(dst, ',')
	}
	return l.item(append(dst, '\n'), i)
}

func (linesWriter) foot(dst []byte, l *listing) []byte {
	if l.count > 0 {
		dst = append(dst, '\n')
	}
	return append(dst, "]}\n"...)
}

// prettyWriter writes the same for people.
type prettyWriter struct{ scratch }

func (*prettyWriter) head(dst []byte, l *listing) ([]byte, error) {
	head, err := reply.JSON(l, true)
	return append(append(dst, bytes.TrimSuffix(head, []byte("\n}"))...), ",\n  \"items\": ["...), err
}

func (w *prettyWriter) item(dst []byte, l *listing, i int) ([]byte, error) {
	item, err := w.read(l, i)
	if err != nil {
		return dst, err
	}
	if i > 0 {
		dst = append(dst, ',')
	}
	return reply.AppendIndented(append(dst, "\n    "...), item, "    ")
}

func (*prettyWriter) foot(dst []byte, l *listing) []byte {
	if l.count == 0 {
		return append(dst, "]\n}\n"...)
	}
	return append(dst, "\n  ]\n}\n"...)
}

// ndjsonWriter writes one object per line and nothing else.
type ndjsonWriter struct{ scratch }

func (*ndjsonWriter) head(dst []byte, _ *listing) ([]byte, error) { return dst, nil }

func (w *ndjsonWriter) item(dst []byte, l *listing, i int) ([]byte, error) {
	item, err := w.read(l, i)
	if err != nil {
		return dst, err
	}
	if !bytes.ContainsAny(item, "\r\n") {
		return append(append(dst, item...), '\n'), nil
	}
	out := bytes.NewBuffer(dst)
	if err := json.Compact(out, item); err != nil {
		return dst, err
	}
	return append(out.Bytes(), '\n'), nil
}

func (*ndjsonWriter) foot(dst []byte, _ *listing) []byte { return dst }

// yamlWriter writes a Kubernetes list as kubectl reads it.
type yamlWriter struct{ scratch }

func (*yamlWriter) head(dst []byte, l *listing) ([]byte, error) {
	head, err := yaml.Marshal(l)
	dst = append(append(dst, head...), "items:"...)
	if l.count == 0 {
		dst = append(dst, " []"...)
	}
	return append(dst, '\n'), err
}

func (w *yamlWriter) item(dst []byte, l *listing, i int) ([]byte, error) {
	item, err := w.read(l, i)
	if err != nil {
		return dst, err
	}
	return reply.AppendYAMLItem(dst, item)
}

func (*yamlWriter) foot(dst []byte, _ *listing) []byte { return dst }

// csvWriter writes RFC 4180: a line of names, then one line per item. Several
// values in one cell are separated by semicolons, objects and arrays are JSON.
type csvWriter struct {
	scratch
	columns   []column
	extractor *rawjson.Extractor
	values    [][]string // of an item, by column
	cells     []string   // of an item
	harmless  []string   // the cells as they are written
	bad       error      // of the extractor
	text      bytes.Buffer
	lines     *csv.Writer // into text; it has a buffer of 4 KB, and there are many lines
}

func newCSVWriter(columns []column) *csvWriter {
	w := &csvWriter{columns: columns, values: make([][]string, len(columns)), cells: make([]string, len(columns))}
	w.lines = csv.NewWriter(&w.text)
	w.lines.UseCRLF = true
	paths := make([]rawjson.Path, len(columns))
	for i, c := range columns {
		paths[i] = c.path
	}
	w.extractor, w.bad = rawjson.CompileExtractor(paths)
	return w
}

func (w *csvWriter) head(dst []byte, _ *listing) ([]byte, error) {
	if w.bad != nil {
		return dst, invalid("fields", "%v", w.bad)
	}
	for i, c := range w.columns {
		w.cells[i] = c.name
	}
	return w.line(dst)
}

func (w *csvWriter) item(dst []byte, l *listing, i int) ([]byte, error) {
	item, err := w.read(l, i)
	if err != nil {
		return dst, err
	}
	for i := range w.values {
		w.values[i] = w.values[i][:0]
	}
	err = w.extractor.Each(item, func(v rawjson.Value) bool {
		if v.Kind != rawjson.Null {
			w.values[v.Path] = append(w.values[v.Path], string(v.Text))
		}
		return true
	})
	if err != nil {
		return dst, err
	}
	for i, v := range w.values {
		w.cells[i] = strings.Join(v, ";")
	}
	return w.line(dst)
}

func (w *csvWriter) line(dst []byte) ([]byte, error) {
	w.harmless = w.harmless[:0]
	for _, c := range w.cells {
		w.harmless = append(w.harmless, notFormula(c))
	}
	w.text.Reset()
	if err := w.lines.Write(w.harmless); err != nil {
		return dst, err
	}
	w.lines.Flush()
	return append(dst, w.text.Bytes()...), w.lines.Error()
}

// notFormula puts an apostrophe before what a spreadsheet would take for a formula and
// run (OWASP, CSV injection). Numbers stay numbers.
func notFormula(cell string) string {
	if cell == "" || strings.IndexByte("=+-@\t\r", cell[0]) < 0 {
		return cell
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return cell
	}
	return "'" + cell
}

func (w *csvWriter) foot(dst []byte, _ *listing) []byte { return dst }

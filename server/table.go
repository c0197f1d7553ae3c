package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/kubeapi"
	"github.com/informerd/informerd/server/reply"
)

// tableColumns are those that the API server prints of one resource.
type tableColumns struct {
	Cluster    string                         `json:"cluster,omitempty"`
	Resource   string                         `json:"resource"`
	Namespaced bool                           `json:"namespaced"`
	Columns    []metav1.TableColumnDefinition `json:"columns"`
}

// tableRow is an item of view=table.
type tableRow struct {
	Cluster  string          `json:"cluster,omitempty"`
	Resource string          `json:"resource"`
	Object   json.RawMessage `json:"object"` // its metadata, or the fields that were asked for
	Cells    []any           `json:"cells"`
}

// table is what rows are made from.
type table struct {
	of       func(*cache.Object) *viewed // which resource an object is of
	clusters bool                        // they are of several
	columns  []tableColumns
	cells    []kubeapi.Cells // by the position of the object
}

// rows makes of l, a list of objects, one of their rows.
func (s *Server) rows(ctx context.Context, l *listing, objects []*cache.Object, of func(*cache.Object) *viewed, clusters bool, v view) error {
	t := &table{of: of, clusters: clusters, columns: []tableColumns{}}
	if err := t.print(ctx, s.kube, objects); err != nil {
		return err
	}
	enc := &encoder{view: partialView}
	if v.projection != nil {
		enc.view = v
	}
	if v.named != 0 {
		enc.spec = func(o *cache.Object) *cache.Spec { return &of(o).view.Spec }
	}
	l.Kind, l.APIVersion, l.Columns = "Table", apiVersion, t.columns
	l.item = func(dst []byte, i int) ([]byte, error) {
		return t.appendRow(dst, enc, objects[i], &t.cells[i])
	}
	return nil
}

// appendRow appends a tableRow.
func (t *table) appendRow(dst []byte, enc *encoder, o *cache.Object, cells *kubeapi.Cells) ([]byte, error) {
	spec := &t.of(o).view.Spec
	dst = append(dst, '{')
	if cluster := t.cluster(spec); cluster != "" {
		dst = append(reply.AppendText(append(dst, `"cluster":`...), cluster), ',')
	}
	dst, err := enc.append(append(reply.AppendText(append(dst, `"resource":`...), spec.Name()), `,"object":`...), 0, o)
	if err != nil {
		return dst, err
	}
	dst, err = cells.Append(append(dst, `,"cells":[`...))
	return append(dst, "]}"...), err
}

// print fills in columns, in the order in which resources appear, and cells.
func (t *table) print(ctx context.Context, api *kubeapi.API, objects []*cache.Object) error {
	if len(objects) > 0 && !slices.ContainsFunc(objects, func(o *cache.Object) bool { return t.of(o) != t.of(objects[0]) }) {
		cells, err := t.printOf(ctx, api, t.of(objects[0]), objects)
		t.cells = cells
		return err
	}
	positions := map[*viewed][]int{}
	var order []*viewed
	for i, o := range objects {
		r := t.of(o)
		if positions[r] == nil {
			order = append(order, r)
		}
		positions[r] = append(positions[r], i)
	}
	t.cells = make([]kubeapi.Cells, len(objects))
	for _, r := range order {
		those := make([]*cache.Object, len(positions[r]))
		for n, i := range positions[r] {
			those[n] = objects[i]
		}
		cells, err := t.printOf(ctx, api, r, those)
		if err != nil {
			return err
		}
		for n, i := range positions[r] {
			t.cells[i] = cells[n]
		}
	}
	return nil
}

// printOf adds the columns of a resource and returns the cells of objects of it.
func (t *table) printOf(ctx context.Context, api *kubeapi.API, r *viewed, objects []*cache.Object) ([]kubeapi.Cells, error) {
	printed, err := api.Print(ctx, r.view, objects)
	if err != nil {
		return nil, err
	}
	spec := &r.view.Spec
	t.columns = append(t.columns, tableColumns{t.cluster(spec), spec.Name(), spec.Namespaced, printed.Columns})
	return printed.Rows, nil
}

// cluster is said only where there are several.
func (t *table) cluster(spec *cache.Spec) string {
	if t.clusters {
		return spec.Cluster
	}
	return ""
}

// tableWriter writes text for people: for each resource its columns and rows, as
// kubectl get does.
type tableWriter struct {
	scratch
	columns map[[2]string]tableColumns // by cluster and resource
	order   [][2]string
	rows    map[[2]string][]string // lines, cells separated by tabs
}

func (w *tableWriter) head(dst []byte, l *listing) ([]byte, error) {
	w.columns, w.rows = map[[2]string]tableColumns{}, map[[2]string][]string{}
	for _, c := range l.Columns {
		key := [2]string{c.Cluster, c.Resource}
		w.columns[key] = c
		w.order = append(w.order, key)
	}
	return dst, nil
}

func (w *tableWriter) item(dst []byte, l *listing, i int) ([]byte, error) {
	item, err := w.read(l, i)
	if err != nil {
		return dst, err
	}
	var row tableRow
	decoder := json.NewDecoder(bytes.NewReader(item))
	decoder.UseNumber()
	if err := decoder.Decode(&row); err != nil {
		return dst, err
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(row.Object, &object); err != nil {
		return dst, err
	}
	key := [2]string{row.Cluster, row.Resource}
	columns := w.columns[key]
	var line []string
	if columns.Namespaced {
		line = append(line, object.Namespace)
	}
	for i, cell := range row.Cells {
		if i < len(columns.Columns) && columns.Columns[i].Priority > 0 {
			continue // of kubectl get -o wide
		}
		line = append(line, cellText(cell))
	}
	w.rows[key] = append(w.rows[key], strings.Join(line, "\t"))
	return dst, nil
}

func (w *tableWriter) foot(dst []byte, _ *listing) []byte {
	var out bytes.Buffer
	for n, key := range w.order {
		if n > 0 {
			out.WriteByte('\n')
		}
		if len(w.order) > 1 {
			fmt.Fprintf(&out, "# %s\n", strings.TrimPrefix(strings.Join(key[:], "/"), "/"))
		}
		writeTable(&out, append([]string{w.columns[key].header()}, w.rows[key]...))
	}
	return append(dst, out.Bytes()...)
}

func (c tableColumns) header() string {
	var names []string
	if c.Namespaced {
		names = append(names, "NAMESPACE")
	}
	for _, column := range c.Columns {
		if column.Priority == 0 {
			names = append(names, strings.ToUpper(column.Name))
		}
	}
	return strings.Join(names, "\t")
}

// cellText is a cell in one line.
func cellText(cell any) string {
	if cell == nil {
		return "<none>"
	}
	return oneLine(fmt.Sprint(cell))
}

// oneLine takes out what would break a table, or be an order to a terminal: control
// characters, C1 included, and those that change the direction of what follows.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
}

// writeTable aligns lines whose cells are separated by tabs.
func writeTable(out *bytes.Buffer, lines []string) {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	_ = w.Flush() // a Buffer takes everything
}

// columnWriter writes the columns of csvWriter as text for people.
type columnWriter struct {
	*csvWriter
	lines []string
}

func (w *columnWriter) head(dst []byte, l *listing) ([]byte, error) {
	_, err := w.csvWriter.head(nil, l)
	w.lines = append(w.lines, w.tabbed(strings.ToUpper))
	return dst, err
}

func (w *columnWriter) item(dst []byte, l *listing, i int) ([]byte, error) {
	_, err := w.csvWriter.item(nil, l, i)
	w.lines = append(w.lines, w.tabbed(func(cell string) string {
		if cell == "" {
			return "<none>"
		}
		return oneLine(cell)
	}))
	return dst, err
}

func (w *columnWriter) tabbed(write func(string) string) string {
	cells := slices.Clone(w.cells)
	for i, c := range cells {
		cells[i] = write(c)
	}
	return strings.Join(cells, "\t")
}

func (w *columnWriter) foot(dst []byte, _ *listing) []byte {
	var out bytes.Buffer
	writeTable(&out, w.lines)
	return append(dst, out.Bytes()...)
}

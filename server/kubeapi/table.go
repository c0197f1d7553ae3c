package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/reply"
)

// printer makes tables of one resource for one request. The objects are those
// of the copy. How they look in a row their definition says, if they are custom
// resources; else it is asked of the API server, see rows, unless it might show
// what the configuration takes out.
type printer struct {
	*target
	api      *API
	custom   *customPrinter // nil: rows are asked for
	plain    bool           // rows may not be asked for: names and ages
	version  string         // of the Table
	include  metav1.IncludeObjectPolicy
	selector string // labelSelector of the request
	headed   bool   // a stream has said its columns
	// stream: objects are printed as they were, so what they are by now is no
	// better than how they were printed last.
	stream bool
}

func (a *API) newPrinter(r *http.Request, t *target) *printer {
	p := a.printer(t)
	p.selector, p.include = r.URL.Query().Get("labelSelector"), metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject"))
	return p
}

// printer makes tables of whole objects' metadata.
func (a *API) printer(t *target) *printer {
	custom, err := a.customPrinter(t.spec())
	if err != nil {
		a.log.Debug("cannot learn the columns of a definition", "gvr", t.spec().Resource.String(), "err", err)
	}
	plain := custom == nil && !mayPrint(t.spec())
	return &printer{target: t, api: a, custom: custom, plain: plain, version: "v1"}
}

// writeTable answers with a page as a table.
func (a *API) writeTable(w http.ResponseWriter, r *http.Request, t *target, m media, page *cache.Page, meta listMeta) error {
	p := a.newPrinter(r, t)
	p.version = m.version
	if err := p.check(); err != nil {
		return err
	}
	body, err := p.table(r.Context(), page.Objects, meta, false)
	if err == nil {
		err = t.rights.recheck(r.Context()) // it may have waited for the API server
	}
	if err != nil {
		return err
	}
	p.warn(w.Header())
	audit.From(r.Context()).Returned(len(page.Objects))
	return writeBody(w, m, body)
}

func (p *printer) check() error {
	switch p.include {
	case "", metav1.IncludeMetadata, metav1.IncludeNone, metav1.IncludeObject:
		return nil
	}
	return apierrors.NewBadRequest("unrecognized includeObject value: " + string(p.include))
}

// warn passes on what the API server warns of who prints this resource, such as
// that it is deprecated.
func (p *printer) warn(h http.Header) {
	if p.custom != nil {
		if p.custom.warning != "" {
			h.Add("Warning", p.custom.warning)
		}
		return
	}
	if p.plain {
		return
	}
	heading, _ := p.api.rows.get(p.spec().Resource, nil)
	for _, w := range heading.warnings {
		h.Add("Warning", w)
	}
}

// event is the table of one object of a stream; the first one has the columns.
// version, if not "", is shown instead of the object's own.
func (p *printer) event(ctx context.Context, o *cache.Object, version string) ([]byte, error) {
	if version == "" {
		version = o.ResourceVersion()
	}
	if err := p.askAt(ctx, o); err != nil {
		p.api.log.Debug("cannot learn how an object was printed", "gvr", p.spec().Resource.String(), "err", err)
	}
	body, err := p.table(ctx, []*cache.Object{o}, listMeta{ResourceVersion: version}, p.headed)
	p.headed = true
	return body, err
}

// table prints objs.
func (p *printer) table(ctx context.Context, objs []*cache.Object, meta listMeta, headless bool) ([]byte, error) {
	columns, cells, err := p.cells(ctx, objs)
	if err != nil {
		return nil, err
	}
	objs, cells = inPrintedOrder(p.spec().Resource, objs, cells)
	body, err := p.tableHead(columns, meta, headless)
	if err != nil {
		return nil, err
	}
	for i, o := range objs {
		if i > 0 {
			body = append(body, ',')
		}
		if body, err = p.appendRow(body, &cells[i], o); err != nil {
			return nil, err
		}
	}
	return append(body, "]}"...), nil
}

// tableHead is a table up to and including the bracket of its rows.
func (p *printer) tableHead(columns []metav1.TableColumnDefinition, meta listMeta, headless bool) ([]byte, error) {
	head := struct {
		Kind       string                         `json:"kind"`
		APIVersion string                         `json:"apiVersion"`
		Metadata   listMeta                       `json:"metadata"`
		Columns    []metav1.TableColumnDefinition `json:"columnDefinitions"`
		Rows       []string                       `json:"rows"`
	}{asTable, metav1.GroupName + "/" + p.version, meta, columns, []string{}}
	if headless {
		head.Columns = nil
	}
	body, err := reply.JSON(head, false)
	return bytes.TrimSuffix(body, []byte("]}")), err
}

func (p *printer) appendRow(dst []byte, cells *Cells, o *cache.Object) ([]byte, error) {
	dst, err := cells.Append(append(dst, `{"cells":[`...))
	if err != nil {
		return dst, err
	}
	dst = append(dst, ']')
	if conditions := cells.conditions(); conditions != "" {
		dst = append(append(dst, `,"conditions":`...), conditions...)
	}
	dst = append(dst, `,"object":`...)
	switch p.include {
	case metav1.IncludeNone:
		dst = append(dst, "null"...)
	case metav1.IncludeObject:
		dst, err = appendObject(dst, o, "")
	default:
		dst, err = appendObject(dst, o, asPartial)
	}
	return append(dst, '}'), err
}

// cells print objs.
func (p *printer) cells(ctx context.Context, objs []*cache.Object) ([]metav1.TableColumnDefinition, []Cells, error) {
	all := make([]Cells, len(objs))
	if p.custom != nil {
		var err error
		for i, o := range objs {
			if all[i].made, err = p.custom.cells(o); err != nil {
				return nil, nil, err
			}
		}
		return p.custom.columns, all, nil
	}
	if p.plain || p.withheld() {
		columns := genericColumns
		if !p.plain {
			columns = p.api.columns(p.spec().Resource) // of which the stream has been told
		}
		for i, o := range objs {
			all[i].made = unprinted(columns, o)
		}
		return columns, all, nil
	}
	columns, printed := p.print(ctx, objs)
	common := ages{}
	for i, o := range objs {
		all[i] = cellsOf(columns, common, printed[i], o)
	}
	return columns, all, nil
}

// withheld reports whether a stream goes on under a rule that its rows might show too
// much for. It began under one that they did not.
func (p *printer) withheld() bool {
	if !p.stream {
		return false
	}
	now, ok := p.api.Caches.Resource(p.spec().Resource)
	return !ok || !mayPrint(now.View().Spec)
}

// columns are those that the API server last printed a resource with.
func (a *API) columns(r cache.Resource) []metav1.TableColumnDefinition {
	heading, _ := a.rows.get(r, nil)
	return heading.columnsOrGeneric()
}

// cellsOf are the cells of o: as they were printed, but with an age of now.
func cellsOf(columns []metav1.TableColumnDefinition, common ages, r *row, o *cache.Object) Cells {
	if r == nil {
		return Cells{made: unprinted(columns, o)}
	}
	return Cells{printed: r, object: o, ages: common}
}

// unprinted are the cells of an object that was never printed, while the API
// server is away.
func unprinted(columns []metav1.TableColumnDefinition, o *cache.Object) []any {
	cells := make([]any, len(columns))
	for i, c := range columns {
		switch {
		case i == 0:
			cells[i] = o.Name()
		case isAge(c):
			cells[i] = age(o)
		default:
			cells[i] = "<unknown>"
		}
	}
	return cells
}

// isAge reports whether a column is the time since the object was created.
func isAge(c metav1.TableColumnDefinition) bool { return c.Name == "Age" }

func age(o *cache.Object) string { return ages(nil).of(o) }

// ages are texts of ages in seconds, which is all that HumanDuration looks at: many objects of
// an answer are of the same age.
type ages map[int64]string

func (a ages) of(o *cache.Object) string {
	created := o.Created()
	if created.IsZero() {
		return "<unknown>"
	}
	d := time.Since(created)
	seconds := int64(d / time.Second)
	text, ok := a[seconds]
	if !ok {
		text = duration.HumanDuration(d)
		if a != nil {
			a[seconds] = text
		}
	}
	return text
}

// genericColumns are those of resources whose printing nothing is known of, or
// nothing may be.
var genericColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name"},
	{Name: "Age", Type: "string"},
}

// print returns columns and a row for each of objs, nil for those nobody
// printed. It asks the API server for what it does not have.
func (p *printer) print(ctx context.Context, objs []*cache.Object) ([]metav1.TableColumnDefinition, []*row) {
	resource := p.spec().Resource
	heading, printed := p.api.rows.get(resource, objs)
	now := time.Now()
	var missing []int // positions
	for i, o := range objs {
		if !printed[i].shows(o, now) && !(p.stream && printed[i] != nil) {
			missing = append(missing, i)
		}
	}
	if len(missing) > 0 || heading.columns == nil {
		gap := &rowGap{p, objs, printed}
		if err := gap.fill(ctx, missing); err != nil {
			p.api.log.Debug("cannot learn how objects are printed", "gvr", resource.String(), "err", err)
		}
		heading, _ = p.api.rows.get(resource, nil)
	}
	return heading.columnsOrGeneric(), printed
}

// askAt has the API server print o as it was at its version: by now it may be
// another. It is no error that it was not there: the version may be that of its
// deletion.
func (p *printer) askAt(ctx context.Context, o *cache.Object) error {
	if p.custom != nil || p.plain || p.withheld() {
		return nil
	}
	_, printed := p.api.rows.get(p.spec().Resource, []*cache.Object{o})
	if printed[0].shows(o, time.Now()) || p.spec().Aggregated {
		return nil
	}
	_, err := p.askFor(ctx, p.resourcePath(o.Namespace())+"?"+url.Values{
		"includeObject": {"Metadata"}, "fieldSelector": {"metadata.name=" + o.Name()},
		"resourceVersion": {o.ResourceVersion()}, "resourceVersionMatch": {string(metav1.ResourceVersionMatchExact)},
	}.Encode())
	return err
}

// goodThrough is until when all cells are true that are not made anew each time, in Unix
// nanoseconds; 0 is for ever.
func goodThrough(columns []metav1.TableColumnDefinition, cells []json.RawMessage, now time.Time) (until int64) {
	for i, c := range cells {
		if i < len(columns) && isAge(columns[i]) {
			continue
		}
		if d := goodFor(c); d > 0 && (until == 0 || now.Add(d).UnixNano() < until) {
			until = now.Add(d).UnixNano()
		}
	}
	return until
}

package kubeapi

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// Rows are asked for one by one if they are few, or few of those that are shown: a list
// costs the API server as much as there is in it, and of 20,000 pods some have changed
// whenever somebody looks.
const (
	fewRows     = 4
	manyRows    = 64
	rowsAtATime = 8
)

// singly reports whether rows are asked for one by one, where so many are shown.
func singly(rows, shown int) bool {
	return rows > 0 && rows <= min(manyRows, max(fewRows, shown/100))
}

// An API server prints some 10,000 pods a second, and is waited for as long as documentTimeout
// for each of its answers. Of a resource with more objects than can be printed in one, the rows
// that are missing are asked for with a list of each of their namespaces, as long as that
// promises some rows a list; of namespaces with few objects one by one, as long as they are
// those of a page.
const (
	rowsAtOnce  = 20_000
	fewLists    = 16
	rowsOfAList = 100 // in the mean, of more lists
	rowsOfAPage = 1000
)

// printTimeout bounds the wait for all the rows of an answer, which leaves without those that
// are not there by then.
const printTimeout = 2 * documentTimeout

// rowGap are rows of an answer, of which some are missing.
type rowGap struct {
	*printer
	objs    []*cache.Object
	printed []*row // by the position of the object
}

// fill has the API server print the objects at the positions that are missing. What it does
// not print stays as it is.
func (g *rowGap) fill(ctx context.Context, missing []int) error {
	ctx, cancel := context.WithTimeout(ctx, printTimeout)
	defer cancel()
	if singly(len(missing), len(g.objs)) {
		return g.each(ctx, missing)
	}
	parts := g.byNamespace(missing)
	switch {
	case len(parts) > 1 && g.ofNamespaces():
		return g.lists(ctx, parts)
	case len(parts) < 2, g.view.Len() <= g.api.rows.atOnce():
		return g.list(ctx, missing)
	case len(parts) <= fewLists, len(missing) >= rowsOfAList*len(parts):
		return g.lists(ctx, parts)
	case len(missing) <= rowsOfAPage:
		return g.each(ctx, missing)
	}
	return g.list(ctx, missing)
}

// ofNamespaces reports whether the copy is of some namespaces: all together may be more than
// informerd may list.
func (g *rowGap) ofNamespaces() bool {
	sources := g.reader.Sources()
	return len(sources) > 0 && sources[0].Namespace != ""
}

// byNamespace parts positions.
func (g *rowGap) byNamespace(positions []int) [][]int {
	of := map[string][]int{}
	for _, i := range positions {
		namespace := g.objs[i].Namespace()
		of[namespace] = append(of[namespace], i)
	}
	var parts [][]int
	for _, namespace := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, of[namespace])
	}
	return parts
}

// lists lists one namespace after the other. What is wrong with one is not with the next, as
// long as the API server answers.
func (g *rowGap) lists(ctx context.Context, parts [][]int) error {
	var errs []error
	for _, part := range parts {
		err := g.list(ctx, part)
		errs = append(errs, err)
		if _, away := errors.AsType[*noUpstreamError](err); away || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// list asks with one list. Its rows are entered as they come: by the time that others have come,
// they need not be among those that are kept.
func (g *rowGap) list(ctx context.Context, part []int) error {
	those := make([]*cache.Object, len(part))
	for n, i := range part {
		those[n] = g.objs[i]
	}
	rows, err := g.askFor(ctx, g.listURI(those))
	for _, i := range part {
		g.enter(i, rows)
	}
	return err
}

func (g *rowGap) each(ctx context.Context, positions []int) error {
	defer cache.Pause(ctx)()
	asking, ctx := errgroup.WithContext(cache.WithoutTurns(ctx))
	asking.SetLimit(rowsAtATime)
	for _, i := range positions {
		asking.Go(func() error {
			rows, err := g.askFor(ctx, g.objectURI(g.objs[i]))
			g.enter(i, rows)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return asking.Wait()
}

func (g *rowGap) enter(i int, rows map[string]*row) {
	if r := rows[string(appendRowID(nil, g.objs[i]))]; r != nil {
		g.printed[i] = r
	}
}

func (p *printer) objectURI(o *cache.Object) string {
	return p.resourcePath(o.Namespace()) + "/" + url.PathEscape(o.Name()) + "?includeObject=Metadata"
}

// listURI lists the smallest part that has all of objs, from memory of the API
// server: its copy is as new as this one. Without objects only the columns are
// wanted.
func (p *printer) listURI(objs []*cache.Object) string {
	namespace := ""
	for i, o := range objs {
		if i > 0 && o.Namespace() != namespace {
			namespace = ""
			break
		}
		namespace = o.Namespace()
	}
	q := url.Values{"includeObject": {"Metadata"}, "resourceVersion": {"0"}}
	if p.reader.Version() != "" && !p.spec().Aggregated {
		q.Set("resourceVersion", p.reader.Version())
		q.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	spec := p.spec()
	if selector := both(spec.LabelSelector, p.selector); selector != "" {
		q.Set("labelSelector", selector)
	}
	if spec.FieldSelector != "" {
		q.Set("fieldSelector", spec.FieldSelector)
	}
	if len(objs) == 0 {
		q = url.Values{"includeObject": {"None"}, "limit": {"1"}}
	}
	return p.resourcePath(namespace) + "?" + q.Encode()
}

// both selects what two selectors do, of which either may be empty.
func both(a, b string) string {
	return strings.Trim(a+","+b, ",")
}

// askFor returns the rows of the table at uri, by their ids.
func (p *printer) askFor(ctx context.Context, uri string) (map[string]*row, error) {
	t, err := p.api.askTable(ctx, p.spec().Resource, uri)
	if err != nil {
		return nil, err
	}
	return t.rows, nil
}

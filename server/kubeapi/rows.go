package kubeapi

import (
	"cmp"
	"container/list"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// maxRows bounds the printed rows that are kept.
const maxRows = 100_000

// row is an object as the API server printed it.
type row struct {
	key         rowKey
	uid, rv     string
	cells       *printedCells
	conditions  json.RawMessage
	goodThrough time.Time // zero: for ever
}

type rowKey struct {
	resource cache.Resource
	object   cache.Key
}

// shows reports whether the row is that of o, and still what would be printed.
func (r *row) shows(o *cache.Object, now time.Time) bool {
	return r != nil && r.uid == o.UID() && r.rv == o.ResourceVersion() &&
		(r.goodThrough.IsZero() || now.Before(r.goodThrough))
}

// heading is what is said of a resource's tables as a whole.
type heading struct {
	columns  []metav1.TableColumnDefinition // nil: not known
	warnings []string                       // as in the header Warning
}

func (h heading) columnsOrGeneric() []metav1.TableColumnDefinition {
	if h.columns == nil {
		return genericColumns
	}
	return h.columns
}

// rows keeps what the API server printed: its printers know the kinds, and are
// asked only once for each version of an object. The zero value is ready.
type rows struct {
	mu       sync.Mutex // guards all below
	headings map[cache.Resource]heading
	blanks   map[cache.Resource][]json.RawMessage // see blank
	byKey    map[cache.Resource]map[cache.Key]*list.Element
	order    list.List // of *row, the oldest in front
}

// get returns the heading of a resource and the rows there are for objs, nil
// where there is none.
func (t *rows) get(r cache.Resource, objs []*cache.Object) (heading, []*row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, byKey := make([]*row, len(objs)), t.byKey[r]
	for i, o := range objs {
		if e := byKey[o.Key()]; e != nil {
			found[i] = e.Value.(*row)
		}
	}
	return t.headings[r], found
}

func (t *rows) put(r cache.Resource, h heading, printed []*row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey == nil {
		t.byKey, t.headings = map[cache.Resource]map[cache.Key]*list.Element{}, map[cache.Resource]heading{}
	}
	t.headings[r] = h
	for _, p := range printed {
		of := t.byKey[p.key.resource]
		if of == nil {
			of = map[cache.Key]*list.Element{}
			t.byKey[p.key.resource] = of
		}
		if e := of[p.key.object]; e != nil {
			t.order.Remove(e)
		}
		of[p.key.object] = t.order.PushBack(p)
	}
	for t.order.Len() > maxRows {
		oldest := t.order.Remove(t.order.Front()).(*row).key
		if of := t.byKey[oldest.resource]; len(of) > 1 {
			delete(of, oldest.object)
		} else {
			delete(t.byKey, oldest.resource)
		}
	}
}

// blank are the cells of an object in which nothing is set, of which bookmarks
// have a row; nil if they are not known.
func (t *rows) blank(r cache.Resource) []json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.blanks[r]
}

func (t *rows) putBlank(r cache.Resource, cells []json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.blanks == nil {
		t.blanks = map[cache.Resource][]json.RawMessage{}
	}
	t.blanks[r] = cells
}

// elapsed is a time that has passed, as printers write it: 3d4h, (5m ago).
var elapsed = regexp.MustCompile(`(?:^|\()(?:[0-9]+[ydhms]){1,2}(?:$| ago\))`)

// goodFor is how long a cell stays true by itself: one that says how long ago
// something was grows old as fast as its smallest unit. Zero is for ever.
func goodFor(cell json.RawMessage) time.Duration {
	text := strings.Trim(string(cell), `"`)
	match := elapsed.FindString(text)
	switch {
	case match == "":
		return 0
	case strings.Contains(match, "s"):
		return time.Second
	case strings.Contains(match, "m"):
		return 10 * time.Second
	case strings.Contains(match, "h"):
		return time.Minute
	}
	return 10 * time.Minute
}

// inPrintedOrder puts a table in the order its printer gives it, where that is
// not the order of names: FlowSchemas are shown by precedence.
func inPrintedOrder(r cache.Resource, objs []*cache.Object, lines []line) ([]*cache.Object, []line) {
	if r.Name() != "flowschemas.flowcontrol.apiserver.k8s.io" {
		return objs, lines
	}
	order := make([]int, len(objs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lines[a].precedence(), lines[b].precedence()) })
	sortedObjs, sortedLines := make([]*cache.Object, len(objs)), make([]line, len(lines))
	for to, from := range order {
		sortedObjs[to], sortedLines[to] = objs[from], lines[from]
	}
	return sortedObjs, sortedLines
}

// precedence is the number in the third cell.
func (l line) precedence() int {
	if n, ok := l.cells.number(2); ok {
		return n
	}
	return math.MaxInt
}

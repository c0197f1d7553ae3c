package kubeapi

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

// A generation of printed rows is full with so many rows, or bytes of them.
const (
	rowsKept  = 100_000
	bytesKept = 512 * rowsKept
)

// row is an object as the API server printed it. Nothing of it changes.
type row struct {
	version     string // resourceVersion of the object
	cells       printedCells
	conditions  unique.Handle[string] // as JSON; those of many objects are the same
	goodThrough int64                 // Unix time in nanoseconds; 0: for ever
}

// rowID tells objects of a resource apart. One may have the name of another that is gone, and of
// aggregated API servers some give no UID, and others the same one to several objects. None
// of the three has a slash in it but the last.
func rowID(namespace, name, uid string) string { return namespace + "/" + name + "/" + uid }

// appendRowID appends the rowID of o.
func appendRowID(dst []byte, o *cache.Object) []byte {
	return append(append(append(append(append(dst, o.Namespace()...), '/'), o.Name()...), '/'), o.UID()...)
}

// shows reports whether the row of o is still what would be printed.
func (r *row) shows(o *cache.Object, now time.Time) bool {
	return r != nil && r.version == o.ResourceVersion() && (r.goodThrough == 0 || now.UnixNano() < r.goodThrough)
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
// asked only once for each version of an object. There are two generations of them: when
// the young one is full it takes the place of the old one, which is forgotten. So those
// that came last are there, as many as a generation has, and never more than two have. The
// zero value is ready.
type rows struct {
	most     int        // of a generation; 0: rowsKept
	mu       sync.Mutex // guards all below
	headings map[cache.Resource]heading
	blanks   map[cache.Resource][]json.RawMessage // see blank
	young    generation
	old      generation // has no row that young has another of
}

// generation are rows by their ids.
type generation struct {
	of         map[cache.Resource]map[string]*row
	len, bytes int
}

// put enters a row that there was none of.
func (g *generation) put(r cache.Resource, id string, p *row) {
	of := g.of[r]
	if of == nil {
		if g.of == nil {
			g.of = map[cache.Resource]map[string]*row{}
		}
		of = map[string]*row{}
		g.of[r] = of
	}
	of[id] = p
	g.len++
	g.bytes += p.bytes(id)
}

func (g *generation) drop(r cache.Resource, id string) {
	if p := g.of[r][id]; p != nil {
		delete(g.of[r], id)
		g.len--
		g.bytes -= p.bytes(id)
	}
}

// bytes are those that the row has of its own.
func (r *row) bytes(id string) int { return len(id) + len(r.version) + len(r.cells) }

// generationOf is how many rows a generation has at most.
func (t *rows) generationOf() int { return cmp.Or(t.most, rowsKept) }

// atOnce is how many rows are asked for at once.
func (t *rows) atOnce() int { return min(rowsAtOnce, t.generationOf()) }

func (t *rows) isFull() bool {
	return t.young.len >= t.generationOf() || t.young.bytes >= bytesKept
}

// get returns the heading of a resource and the rows there are for objs, nil
// where there is none.
func (t *rows) get(r cache.Resource, objs []*cache.Object) (heading, []*row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, young, old := make([]*row, len(objs)), t.young.of[r], t.old.of[r]
	var id []byte
	for i, o := range objs {
		id = appendRowID(id[:0], o)
		if found[i] = young[string(id)]; found[i] == nil {
			found[i] = old[string(id)]
		}
	}
	return t.headings[r], found
}

// put keeps printed rows, by their ids.
func (t *rows) put(r cache.Resource, h heading, printed map[string]*row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.headings == nil {
		t.headings = map[cache.Resource]heading{}
	}
	t.headings[r] = h
	for id, p := range printed {
		t.young.drop(r, id)
		t.old.drop(r, id)
		if t.isFull() {
			t.young, t.old = generation{}, t.young
		}
		t.young.put(r, id, p)
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
func inPrintedOrder(r cache.Resource, objs []*cache.Object, cells []Cells) ([]*cache.Object, []Cells) {
	if r.Name() != "flowschemas.flowcontrol.apiserver.k8s.io" {
		return objs, cells
	}
	order := make([]int, len(objs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cells[a].precedence(), cells[b].precedence()) })
	sortedObjs, sortedCells := make([]*cache.Object, len(objs)), make([]Cells, len(cells))
	for to, from := range order {
		sortedObjs[to], sortedCells[to] = objs[from], cells[from]
	}
	return sortedObjs, sortedCells
}

// precedence is the number in the third cell.
func (c *Cells) precedence() int {
	if n, ok := c.number(2); ok {
		return n
	}
	return math.MaxInt
}

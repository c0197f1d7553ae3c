package kubeapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

// Cells are those of one row. They are put together when they are written. All Cells of an
// answer are for one goroutine at a time.
type Cells struct {
	made    []any         // for this answer
	printed *row          // else: by the API server
	object  *cache.Object // whose row it is
	ages    ages          // that the Cells of an answer have in common
}

// conditions are those of the row as JSON; empty: it has none.
func (c *Cells) conditions() string {
	if c.printed == nil || c.printed.conditions == (unique.Handle[string]{}) {
		return ""
	}
	return c.printed.conditions.Value()
}

// printedCells are those of a row as the API server wrote them, with commas between them: of
// 20,000 rows it takes longer to look at each cell than to copy all. What is told of the
// object itself has a mark in its place: a control character, as JSON has none but spaces.
type printedCells string

const (
	markName = '\x00' // only at the start
	markAge  = '\x01' // of now
)

// newPrintedCells are those of an object of the given name.
func newPrintedCells(columns []metav1.TableColumnDefinition, cells []json.RawMessage, name string) (printedCells, error) {
	var text []byte
	for i, cell := range cells {
		if i > 0 {
			text = append(text, ',')
		}
		if i < len(columns) && isAge(columns[i]) {
			text = append(text, markAge)
			continue
		}
		if i == 0 && bytes.Equal(cell, reply.AppendText(nil, name)) {
			text = append(text, markName)
			continue
		}
		var err error
		if text, err = reply.AppendRaw(text, cell); err != nil {
			return "", err
		}
	}
	return printedCells(text), nil
}

// append appends the cells of o.
func (p printedCells) append(dst []byte, o *cache.Object, ages ages) []byte {
	text := string(p)
	if strings.HasPrefix(text, string(markName)) {
		dst, text = reply.AppendText(dst, o.Name()), text[1:]
	}
	for {
		before, after, found := strings.Cut(text, string(markAge))
		dst = append(dst, before...)
		if !found {
			return dst
		}
		dst, text = reply.AppendText(dst, ages.of(o)), after
	}
}

// Append appends the cells as JSON, with commas between them. A row has not always as many as
// there are columns.
func (c *Cells) Append(dst []byte) ([]byte, error) {
	if c.printed != nil {
		return c.printed.cells.append(dst, c.object, c.ages), nil
	}
	var err error
	for i, cell := range c.made {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = reply.AppendValue(dst, cell); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// number is the number in a cell; false: there is none.
func (c *Cells) number(i int) (int, bool) {
	text, err := c.Append([]byte{'['})
	if err != nil {
		return 0, false
	}
	var cells []any
	if json.Unmarshal(append(text, ']'), &cells) != nil || i >= len(cells) {
		return 0, false
	}
	n, ok := cells[i].(float64)
	return int(n), ok
}

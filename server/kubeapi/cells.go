package kubeapi

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

// Cells are those of one row. They are put together when they are written. All Cells of an
// answer are for one goroutine at a time.
type Cells struct {
	made    []any         // for this answer
	printed *printedCells // else: by the API server
	object  *cache.Object // whose age it is
	ages    ages          // that the Cells of an answer have in common
}

// printedCells are those of a row as the API server wrote them, with commas between them, but
// for ages: of 20,000 rows it takes longer to look at each cell than to copy all.
type printedCells struct {
	text []byte
	ages []int // where in text an age of now goes
}

func newPrintedCells(columns []metav1.TableColumnDefinition, cells []json.RawMessage) (*printedCells, error) {
	p := &printedCells{}
	for i, cell := range cells {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		if i < len(columns) && isAge(columns[i]) {
			p.ages = append(p.ages, len(p.text))
			continue
		}
		var err error
		if p.text, err = reply.AppendRaw(p.text, cell); err != nil {
			return nil, err
		}
	}
	p.text = slices.Clip(p.text)
	return p, nil
}

// Append appends the cells as JSON, with commas between them. A row has not always as many as
// there are columns.
func (c *Cells) Append(dst []byte) ([]byte, error) {
	var err error
	for i, cell := range c.made {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = reply.AppendValue(dst, cell); err != nil {
			return dst, err
		}
	}
	if c.printed == nil {
		return dst, nil
	}
	from := 0
	for _, at := range c.printed.ages {
		dst = reply.AppendText(append(dst, c.printed.text[from:at]...), c.ages.of(c.object))
		from = at
	}
	return append(dst, c.printed.text[from:]...), nil
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

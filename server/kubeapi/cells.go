package kubeapi

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

// Cells are those of one row. They are put together when they are written: of 20,000 rows that
// were printed before it takes longer to copy the cells than to write them. All Cells of an
// answer are for one goroutine at a time.
type Cells struct {
	made    []any             // for this answer
	printed []json.RawMessage // else: as the API server wrote them, but for ages
	object  *cache.Object     // whose age it is
	*shared                   // nil: made
}

// shared is what the Cells of an answer have in common.
type shared struct {
	columns []metav1.TableColumnDefinition
	ages    ages
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
	for i, cell := range c.printed {
		if i > 0 {
			dst = append(dst, ',')
		}
		if i < len(c.columns) && isAge(c.columns[i]) {
			dst = reply.AppendText(dst, c.ages.of(c.object))
		} else if dst, err = reply.AppendRaw(dst, cell); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// raw is a cell as the API server wrote it, nil if it wrote none.
func (c *Cells) raw(i int) json.RawMessage {
	if i >= len(c.printed) {
		return nil
	}
	return c.printed[i]
}

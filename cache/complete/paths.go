package complete

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// pathSample is how many objects are read for their paths.
	pathSample = 64
	// maxPaths bounds what is collected; a few objects full of data have more.
	maxPaths = 20_000
	// maxDepth bounds how deep objects are read.
	maxDepth = 32
)

// Paths proposes paths that objects of a store have, and those that they could
// have if a Schema is given, [*] for every element of an array; near ones and
// frequent ones first.
func Paths(ctx context.Context, reader *cache.Reader, possible *Schema, q Query) (*Answer, error) {
	objects, of, err := sample(ctx, reader, pathSample)
	if err != nil {
		return nil, err
	}
	c := collector{items: map[rawjson.Path]*Item{}}
	var buf []byte
	for i, o := range objects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if buf, err = o.AppendJSON(buf[:0]); err != nil {
			return nil, err
		}
		decoder := json.NewDecoder(bytes.NewReader(buf))
		decoder.UseNumber()
		var document any
		if err := decoder.Decode(&document); err != nil {
			return nil, err
		}
		c.object = i + 1
		c.collect(rawjson.Path{}, document, 0)
	}
	items := make([]Item, 0, len(c.items))
	for p, item := range c.items {
		item.Value = p.String()
		items = append(items, *item)
	}
	if possible != nil {
		for p, item := range possible.items {
			if c.items[p] == nil {
				items = append(items, item)
			}
		}
	}
	a := q.of(items, nearer)
	a.Sampled, a.Objects = len(objects), of
	return a, nil
}

// nearer is the order of paths. Those that no object has come after those that
// some do, wherever they are.
func nearer(a, b Item) int {
	return cmp.Or(compareBool(a.Objects == 0, b.Objects == 0), cmp.Compare(steps(a.Value), steps(b.Value)), moreObjects(a, b))
}

// compareBool has false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// steps counts the steps of a path, near enough to order by.
func steps(path string) int { return strings.Count(path, ".") + strings.Count(path, "[") }

// collector gathers the paths of documents.
type collector struct {
	items  map[rawjson.Path]*Item
	seen   map[rawjson.Path]int // the last object a path was counted for
	object int
}

func (c *collector) collect(at rawjson.Path, v any, depth int) {
	if !at.IsZero() && !c.note(at, v) || depth == maxDepth {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			if name != "" {
				c.collect(at.Field(name), below, depth+1)
			}
		}
	case []any:
		for _, below := range v {
			c.collect(at.Elements(), below, depth+1)
		}
	}
}

// note counts an object for a path, once. It reports false when there are too
// many paths.
func (c *collector) note(at rawjson.Path, v any) bool {
	item := c.items[at]
	if item == nil {
		if len(c.items) == maxPaths {
			return false
		}
		item = &Item{Kind: kindOf(v)}
		c.items[at] = item
	}
	if c.seen == nil {
		c.seen = map[rawjson.Path]int{}
	}
	if c.seen[at] != c.object {
		c.seen[at] = c.object
		item.Objects++
	}
	return true
}

func kindOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "bool"
	case nil:
		return "null"
	default:
		return "number"
	}
}

package complete

import (
	"context"
	"strings"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// valueSample is how many objects are read for their values.
	valueSample = 512
	// maxValue is the longest value that is proposed.
	maxValue = 256
)

// Values proposes values at a path, those of most objects first: from the index
// that covers it, for labels and namespaces always, else from a sample. Of
// metadata.labels it proposes the keys.
func Values(ctx context.Context, reader *cache.Reader, path rawjson.Path, q Query) (*Answer, error) {
	switch s := path.String(); {
	case s == "metadata.labels":
		return labelKeys(reader, q)
	case s == "metadata.namespace":
		return indexed(reader, cache.NamespaceIndex, "", q)
	case strings.HasPrefix(s, "metadata.labels"):
		if key, ok := labelKey(path); ok {
			return indexed(reader, cache.LabelIndex, key+"=", q)
		}
	}
	for _, index := range reader.Indexes() {
		if index.Path == path.String() {
			return indexed(reader, index.Name, "", q)
		}
	}
	return sampled(ctx, reader, path, q)
}

// labelKey is the key of the label a path leads to.
func labelKey(path rawjson.Path) (string, bool) {
	labels, err := rawjson.ParsePath("metadata.labels")
	if err != nil {
		return "", false
	}
	rest := strings.TrimPrefix(path.String(), labels.String())
	key := strings.TrimPrefix(rest, ".")
	if quoted, ok := strings.CutPrefix(rest, "['"); ok {
		key = strings.TrimSuffix(quoted, "']")
	}
	return key, labels.Field(key) == path // not a path below the label
}

// indexed proposes the values of an index that begin with within, less that.
func indexed(reader *cache.Reader, index, within string, q Query) (*Answer, error) {
	values, _, err := reader.IndexValues(index, within+q.Prefix, 0)
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(values))
	for i, v := range values {
		items[i] = Item{Value: strings.TrimPrefix(v.Value, within), Objects: v.Objects}
	}
	return q.of(items, moreObjects), nil
}

// labelKeys proposes keys of labels.
func labelKeys(reader *cache.Reader, q Query) (*Answer, error) {
	values, _, err := reader.IndexValues(cache.LabelIndex, q.Prefix, 0)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, v := range values {
		key, _, _ := strings.Cut(v.Value, "=")
		counts[key] += v.Objects // an object has one value of a label
	}
	return q.of(itemsOf(counts), moreObjects), nil
}

func itemsOf(counts map[string]int) []Item {
	items := make([]Item, 0, len(counts))
	for v, n := range counts {
		items = append(items, Item{Value: v, Objects: n})
	}
	return items
}

// sampled reads values out of some objects.
func sampled(ctx context.Context, reader *cache.Reader, path rawjson.Path, q Query) (*Answer, error) {
	extractor, err := rawjson.CompileExtractor([]rawjson.Path{path})
	if err != nil {
		return nil, err
	}
	objects, of, err := sample(ctx, reader, valueSample)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	var buf []byte
	for _, o := range objects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if buf, err = o.AppendJSON(buf[:0]); err != nil {
			return nil, err
		}
		has := map[string]bool{}
		err := extractor.Each(buf, func(v rawjson.Value) bool {
			if scalar(v.Kind) && len(v.Text) <= maxValue {
				has[string(v.Text)] = true
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		for v := range has {
			counts[v]++
		}
	}
	a := q.of(itemsOf(counts), moreObjects)
	a.Sampled, a.Objects = len(objects), of
	return a, nil
}

func scalar(k rawjson.Kind) bool {
	return k == rawjson.String || k == rawjson.Number || k == rawjson.Bool
}

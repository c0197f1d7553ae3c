package search

import (
	"fmt"
	"strings"
	"sync"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// maxAnnotation is the longest value of an annotation that is looked at;
	// of longer ones only the key is.
	maxAnnotation = 48
	// maxText is how much of a configured text is looked at.
	maxText = 256
)

// content is what can be found of one object.
type content struct {
	key    cache.Key
	stamp  uint64
	texts  []text
	unread bool // only identity and labels could be read
}

// contents are those that were entered, to be read into again: there is one for each object.
var contents = sync.Pool{New: func() any { return new(content) }}

// release gives c to other objects.
func (c *content) release() {
	clear(c.texts)
	*c = content{texts: c.texts[:0]}
	contents.Put(c)
}

// text is a text of a field, in lower case.
type text struct {
	field Field
	s     string
}

// annotations is the position of metadata.annotations in every reader.
const annotations = 0

var imagePaths = func() (paths []string) {
	for _, spec := range []string{"spec.", "spec.template.spec.", "spec.jobTemplate.spec.template.spec."} {
		for _, containers := range []string{"containers", "initContainers", "ephemeralContainers"} {
			paths = append(paths, spec+containers+"[*].image")
		}
	}
	return paths
}()

// reader takes texts out of objects. It is immutable.
type reader struct {
	extractor *rawjson.Extractor
	images    int // positions up to here are images, those after it texts
}

func newReader(textPaths []string) (*reader, error) {
	var paths []rawjson.Path
	for _, s := range append(append([]string{"metadata.annotations"}, imagePaths...), textPaths...) {
		p, err := rawjson.ParsePath(s)
		if err != nil {
			return nil, fmt.Errorf("search text: %w", err)
		}
		paths = append(paths, p)
	}
	extractor, err := rawjson.CompileExtractor(paths)
	if err != nil {
		return nil, fmt.Errorf("search text: %w", err)
	}
	return &reader{extractor, len(imagePaths)}, nil
}

// read takes the texts out of o.
func (r *reader) read(o *cache.Object) *content {
	c := contents.Get().(*content)
	c.key, c.stamp = o.Key(), follow.Stamp(o)
	c.add(Name, o.Name())
	if o.Namespace() != "" {
		c.add(Namespace, o.Namespace())
	}
	for t := range o.EachTerm() {
		if t.Index == cache.LabelIndex {
			c.add(Label, t.Value)
		}
	}
	err := o.ReadJSON(func(plain []byte) error {
		return r.extractor.Each(plain, func(v rawjson.Value) bool {
			r.add(c, v)
			return true
		})
	})
	c.unread = err != nil
	return c
}

func (r *reader) add(c *content, v rawjson.Value) {
	switch {
	case v.Path == annotations:
		c.addAnnotations(v)
	case v.Kind != rawjson.String && v.Kind != rawjson.Number && v.Kind != rawjson.Bool:
	case v.Path <= r.images:
		c.add(Image, string(v.Text))
	default:
		c.add(Text, strings.ToValidUTF8(string(v.Text[:min(len(v.Text), maxText)]), ""))
	}
}

func (c *content) addAnnotations(v rawjson.Value) {
	if v.Kind != rawjson.Object {
		return
	}
	for parts := rawjson.NewLazy(v.Text).Parts(); ; {
		key, plain, value, ok := parts.Next()
		if !ok {
			return
		}
		if value.Kind() != rawjson.String {
			continue // an API server lets in nothing else
		}
		text := rawjson.KeyText(key, plain)
		if value := value.Text(); len(value) <= maxAnnotation {
			text += "=" + value
		}
		c.add(Annotation, text)
	}
}

// add enters a text once.
func (c *content) add(f Field, s string) {
	t := text{f, strings.ToLower(s)}
	for _, have := range c.texts {
		if have == t {
			return
		}
	}
	c.texts = append(c.texts, t)
}

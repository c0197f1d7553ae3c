package search

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/internal/brief"
	"github.com/informerd/informerd/cache/rawjson"
)

const (
	// maxAnnotation is the longest value of an annotation that is looked at;
	// of longer ones only the key is.
	maxAnnotation = 48
	// maxWritten is how long such a value is in JSON at most, of which \u0041 is one byte.
	maxWritten = len(`""`) + maxAnnotation*len(`\u0041`)
	// maxText is how much of a configured text is looked at.
	maxText = 256
)

// content is what can be found of one object.
type content struct {
	key    cache.Key
	stamp  uint64
	texts  []text
	unread bool        // only identity and labels could be read
	brief  brief.Texts // those of texts that the object does not have as they are
}

// contents are those that were entered, to be read into again: there is one for each object.
var contents = sync.Pool{New: func() any { return &content{brief: brief.New()} }}

// release gives c to other objects.
func (c *content) release() {
	c.brief.Release()
	clear(c.texts)
	*c = content{texts: c.texts[:0], brief: c.brief}
	contents.Put(c)
}

// text is a text of a field, in lower case. All but names are good until the content that has
// them is released: who keeps one has to clone it.
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
	c.enter(text{Name, strings.ToLower(o.Name())})
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
		c.add(Image, c.brief.Add(v.Text))
	default:
		s := v.Text[:min(len(v.Text), maxText)]
		if !utf8.Valid(s) {
			s = bytes.ToValidUTF8(s, nil)
		}
		c.add(Text, c.brief.Add(s))
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
		raw := rawjson.Lazy(value.Raw())
		parts.Passed(len(raw))
		c.add(Annotation, c.brief.Append(func(dst []byte) []byte {
			dst = rawjson.AppendKeyText(dst, key, plain)
			if len(raw) > maxWritten {
				return dst
			}
			end := len(dst)
			if dst = raw.AppendText(append(dst, '=')); len(dst)-end-len("=") > maxAnnotation {
				return dst[:end]
			}
			return dst
		}))
	}
}

// lower is s in lower case, brief if it is not already.
func (c *content) lower(s string) string {
	upper := false
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return strings.ToLower(s)
		}
		upper = upper || unicode.IsUpper(rune(s[i]))
	}
	if !upper {
		return s
	}
	return c.brief.Append(func(dst []byte) []byte {
		for i := range len(s) {
			dst = append(dst, byte(unicode.ToLower(rune(s[i]))))
		}
		return dst
	})
}

// add enters a text once.
func (c *content) add(f Field, s string) { c.enter(text{f, c.lower(s)}) }

func (c *content) enter(t text) {
	for _, have := range c.texts {
		if have == t {
			return
		}
	}
	c.texts = append(c.texts, t)
}

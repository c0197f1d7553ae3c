package rawjson

// Excerpt takes out of an object what some paths lead to. What reads nothing else cannot tell
// the excerpt from the object: what is above a value is there, too, and a value of a kind that
// a path does not go on from is there as a whole, as is an object of which a path leads to all
// members, and be it that others lead to one by its name. It is immutable and safe for concurrent
// use.
type Excerpt struct {
	root *excerptNode
}

// excerptNode is what is wanted of a value. Of a kind of value of which nothing is said it is
// the whole.
type excerptNode struct {
	whole    bool
	fields   []excerptField
	elements *excerptNode
}

type excerptField struct {
	name string
	node *excerptNode
}

// NewExcerpt makes an Excerpt for paths. Of an array of which a path leads to one element all
// is taken.
func NewExcerpt(paths []Path) *Excerpt {
	root := &excerptNode{}
	for _, p := range paths {
		root.add(p.steps())
	}
	return &Excerpt{root}
}

func (n *excerptNode) add(steps []step) {
	if len(steps) == 0 || steps[0].kind == stepIndex {
		n.whole = true
		return
	}
	var next *excerptNode
	if steps[0].kind == stepStar {
		if n.elements == nil {
			n.elements = &excerptNode{}
		}
		next = n.elements
	} else if next = n.field([]byte(steps[0].name)); next == nil {
		next = &excerptNode{}
		n.fields = append(n.fields, excerptField{steps[0].name, next})
	}
	next.add(steps[1:])
}

func (n *excerptNode) field(name []byte) *excerptNode {
	for i := range n.fields {
		if n.fields[i].name == string(name) {
			return n.fields[i].node
		}
	}
	return nil
}

// Append appends the excerpt of an object in which no key occurs twice. src must be valid
// JSON.
func (e *Excerpt) Append(dst, src []byte) []byte {
	return e.append(dst, src, nil)
}

// append is Append, and notes spans if t is not nil.
func (e *Excerpt) append(dst, src []byte, t *tracing) []byte {
	v := NewLazy(src)
	if n := e.root; n.takesFields(v) {
		dst, _ = n.appendSome(dst, v, t, len(n.fields)) // what comes then is not read
		return dst
	}
	dst, _ = e.root.append(dst, v, t)
	return dst
}

// takesFields reports whether v is an object of which some fields are wanted, and not all.
func (n *excerptNode) takesFields(v Lazy) bool {
	return !n.whole && v.Kind() == Object && len(n.fields) > 0 && n.elements == nil
}

// append returns how long v is, too.
func (n *excerptNode) append(dst []byte, v Lazy, t *tracing) ([]byte, int) {
	switch {
	case n.takesFields(v):
		return n.appendFields(dst, v, t)
	case !n.whole && v.Kind() == Array && n.elements != nil:
		return n.appendElements(dst, v, t)
	}
	raw := v.Raw()
	t.note(dst, v, raw)
	return append(dst, raw...), len(raw)
}

func (n *excerptNode) appendFields(dst []byte, v Lazy, t *tracing) ([]byte, int) {
	return n.appendSome(dst, v, t, -1)
}

// appendSome is appendFields of no more than so many fields. How long v is, is not told then.
func (n *excerptNode) appendSome(dst []byte, v Lazy, t *tracing, most int) ([]byte, int) {
	dst = append(dst, '{')
	first := len(dst)
	parts := v.Parts()
	for {
		key, plain, member, ok := parts.Next()
		if !ok {
			return append(dst, '}'), parts.End()
		}
		name := key
		if !plain {
			name = []byte(KeyText(key, plain))
		}
		wanted := n.field(name)
		if wanted == nil {
			continue
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), key...), `":`...)
		var length int
		dst, length = wanted.append(dst, member, t)
		if most--; most == 0 {
			return append(dst, '}'), 0
		}
		parts.Passed(length)
	}
}

func (n *excerptNode) appendElements(dst []byte, v Lazy, t *tracing) ([]byte, int) {
	dst = append(dst, '[')
	first := len(dst)
	parts := v.Parts()
	for {
		_, _, element, ok := parts.Next()
		if !ok {
			return append(dst, ']'), parts.End()
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		var length int
		dst, length = n.elements.append(dst, element, t)
		parts.Passed(length)
	}
}

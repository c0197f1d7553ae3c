package rawjson

// Projection builds, from an object, one that holds only the given paths. It is
// immutable and safe for concurrent use.
type Projection struct {
	root   *node
	unique bool
}

// CompileProjection makes a Projection of paths.
func CompileProjection(paths []Path) (*Projection, error) {
	root := &branch{}
	for i, p := range paths {
		if err := checkNamed(p); err != nil {
			return nil, err
		}
		b := root.at(p.steps())
		b.extract = append(b.extract, i)
	}
	n, err := resolve(root)
	if err != nil {
		return nil, err
	}
	return &Projection{root: n}, nil
}

// Unique returns a Projection that takes for granted, as an Extractor's does, that no object
// in src has a key twice, and that src is valid JSON. It stops reading once all that is
// wanted has been.
func (p *Projection) Unique() *Projection { return &Projection{root: p.root, unique: true} }

// Append appends the projection of the object in src. Nesting and order stay. A
// field that is missing, or that a path cannot step into, is absent. Elements
// of arrays keep their positions: those in between that no path leads to, or
// can step into, are null, those after the last index wanted are left out. The
// values themselves are copied as they are. After an error dst is returned as
// it was.
func (p *Projection) Append(dst, src []byte) ([]byte, error) {
	d := documents.Get().(*Document)
	defer d.release()
	d.reset(src)
	d.unique = p.unique
	out, end := d.projectRoot(p.root, dst)
	if failedFor(end, duplicate) {
		d.reset(src)
		d.careful = true
		out, end = d.projectRoot(p.root, dst)
	}
	if end < 0 {
		return dst, scanError(src, end)
	}
	return out, nil
}

func (d *Document) projectRoot(n *node, dst []byte) ([]byte, int) {
	i := skipSpace(d.src, 0)
	if i >= len(d.src) || d.src[i] != '{' {
		return dst, fail(notObject, i)
	}
	dst, end := d.projectObject(n, dst, i, 1, d.unique)
	if end < 0 {
		return dst, end
	}
	if rest := skipSpace(d.src, end); rest < len(d.src) {
		return dst, fail(badSyntax, rest)
	}
	return dst, end
}

// project appends what n wants of the value at i, within depth open containers.
// It appends nothing if n wants nothing of that kind of value. Where it is the last that is
// wanted at all, nobody needs to know its end: that of src is as good.
func (d *Document) project(n *node, dst []byte, i, depth int, last bool) ([]byte, int) {
	if i >= len(d.src) {
		return dst, fail(badSyntax, i)
	}
	if len(n.extract) == 0 && depth < maxDepth {
		switch {
		case d.src[i] == '{' && len(n.fields) > 0:
			return d.projectObject(n, dst, i, depth+1, last)
		case d.src[i] == '[' && n.wantsElements():
			return d.projectArray(n, dst, i, depth+1)
		}
	}
	end := skipValue(d.src, i, depth)
	if end >= 0 && len(n.extract) > 0 {
		dst = append(dst, d.src[i:end]...)
	}
	return dst, end
}

func (d *Document) projectObject(n *node, dst []byte, i, depth int, last bool) ([]byte, int) {
	m := members{n: n, careful: d.careful || len(n.fields) > 64, base: len(d.last)}
	i = skipSpace(d.src, i+1)
	if i < len(d.src) && d.src[i] == '}' {
		return append(dst, '{', '}'), i + 1
	}
	if m.careful {
		if bad := d.markLast(n, i, depth); bad < 0 {
			return dst, bad
		}
	}
	dst = append(dst, '{')
	for {
		if dst, i = d.projectMember(&m, dst, i, depth, last); i < 0 {
			return dst, i
		}
		if d.unique && m.complete() {
			return append(dst, '}'), d.restOf(i, last)
		}
		i = skipSpace(d.src, i)
		if i >= len(d.src) {
			return dst, fail(badSyntax, i)
		}
		switch d.src[i] {
		case ',':
			i = skipSpace(d.src, i+1)
		case '}':
			d.last = d.last[:m.base]
			return append(dst, '}'), i + 1
		default:
			return dst, fail(badSyntax, i)
		}
	}
}

// projectMember reads the member at i and appends it, with the comma before it,
// if it is wanted.
func (d *Document) projectMember(m *members, dst []byte, i, depth int, last bool) ([]byte, int) {
	key := i
	f, i := d.key(m, i)
	if i < 0 {
		return dst, i
	}
	if f < 0 || m.careful && d.last[m.base+f] != key {
		return dst, skipValue(d.src, i, depth)
	}
	if m.again(f) {
		return dst, fail(duplicate, key)
	}
	before := len(dst)
	if m.kept {
		dst = append(dst, ',')
	}
	dst = append(append(dst, m.n.fields[f].quoted...), ':')
	value := len(dst)
	dst, end := d.project(m.n.fields[f].node, dst, i, depth, last && m.complete())
	if len(dst) == value {
		return dst[:before], end
	}
	m.kept = true
	return dst, end
}

// restOf is the end of the object of which i is within, at the end of a member.
func (d *Document) restOf(i int, last bool) int {
	if last {
		return len(d.src)
	}
	return d.endOf(i)
}

func (d *Document) projectArray(n *node, dst []byte, i, depth int) ([]byte, int) {
	dst = append(dst, '[')
	i = skipSpace(d.src, i+1)
	if i < len(d.src) && d.src[i] == ']' {
		return append(dst, ']'), i + 1
	}
	for k := 0; ; k++ {
		if dst, i = d.projectElement(n, dst, k, i, depth); i < 0 {
			return dst, i
		}
		i = skipSpace(d.src, i)
		if i >= len(d.src) {
			return dst, fail(badSyntax, i)
		}
		switch d.src[i] {
		case ',':
			i = skipSpace(d.src, i+1)
		case ']':
			return append(dst, ']'), i + 1
		default:
			return dst, fail(badSyntax, i)
		}
	}
}

// projectElement appends element k, which is at i, or a null in its place.
func (d *Document) projectElement(n *node, dst []byte, k, i, depth int) ([]byte, int) {
	if n.star == nil && k > n.last {
		return dst, skipValue(d.src, i, depth)
	}
	if k > 0 {
		dst = append(dst, ',')
	}
	before, end := len(dst), i
	if e := n.element(k); e != nil {
		dst, end = d.project(e, dst, i, depth, false)
	} else {
		end = skipValue(d.src, i, depth)
	}
	if len(dst) == before {
		dst = append(dst, "null"...)
	}
	return dst, end
}

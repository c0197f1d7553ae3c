package rawjson

import (
	"bytes"
	"slices"
)

// Kind is what a JSON value is.
type Kind uint8

// The kinds of JSON values.
const (
	String Kind = iota + 1
	Number
	Bool
	Null
	Object
	Array
)

var kindNames = [...]string{"", "string", "number", "bool", "null", "object", "array"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Value is a value found at a path.
type Value struct {
	Path int  // position of the path in Spec.Extract
	Kind Kind // Object and Array are no index values; callers count them
	// Text is the text of a string, the literal of a number, bool or null, the
	// raw JSON of an object or array; nil for an object or array of which parts
	// are dropped. It is valid until the next Run.
	Text []byte
}

// Pair is one label.
type Pair struct {
	Key, Value []byte
}

// Owner is one owner reference. A field of the wrong type is empty.
type Owner struct {
	UID, Kind, Name, APIVersion []byte
	Controller                  bool
}

// Document is the result of a Run, made to be reused. Its slices alias the
// input or the Document's own memory and are valid until the next Run. The
// zero Document is ready. It must not be used concurrently.
//
// Accessors of apimachinery are the measure: a field of the wrong type is nil,
// one label that is no string voids all labels, one owner that is no object
// voids all owners.
type Document struct {
	APIVersion, Kind, Namespace, Name, UID, ResourceVersion []byte
	// Timestamps are as served, unchecked.
	CreationTimestamp, DeletionTimestamp []byte
	Labels                               []Pair // in the order of the document, each key once
	Owners                               []Owner
	// InitialEventsEnd: this is the bookmark that ends a streamed list.
	InitialEventsEnd bool
	Values           []Value // in the order of the document

	src        []byte
	start, end int  // the object in src
	kept       bool // the stored form has members of its own
	edits      []edit
	arena      []byte // unescaped texts
	last       []int  // for careful runs, see markLast
	careful    bool
	unsure     bool // some annotation may be no string
	unique     bool // see Program
	missing    int  // paths still without a value, when unique
}

// edit replaces a part of the source by nothing or by an empty string.
type edit struct {
	start, end int
	blank      bool
}

// reset readies d for src and keeps its memory.
func (d *Document) reset(src []byte) {
	*d = Document{
		Labels: d.Labels[:0], Owners: d.Owners[:0], Values: d.Values[:0],
		edits: d.edits[:0], arena: d.arena[:0], last: d.last[:0],
		src: src,
	}
}

// Run reads one object. After an error doc is empty.
func (p *Program) Run(src []byte, doc *Document) error {
	doc.reset(src)
	end := doc.run(p)
	if failedFor(end, duplicate) {
		doc.reset(src)
		doc.careful = true
		end = doc.run(p)
	}
	switch {
	case end >= 0:
		doc.end = end
	case failedFor(end, satisfied): // by values alone; there is nothing to store
	default:
		doc.reset(nil)
		return scanError(src, end)
	}
	return nil
}

// run walks the whole document and returns the index after the object.
func (d *Document) run(p *Program) int {
	d.unique = p.unique && !d.careful
	d.missing = p.single
	i, end := skipSpace(d.src, 0), 0
	if i >= len(d.src) || d.src[i] != '{' {
		return fail(notObject, i)
	}
	d.start = i
	if end = d.value(p.root, i, 0); end < 0 {
		return end
	}
	if rest := skipSpace(d.src, end); rest < len(d.src) {
		return fail(badSyntax, rest)
	}
	return end
}

// value reads the value at i, which n is about, within depth open containers.
func (d *Document) value(n *node, i, depth int) int {
	if i >= len(d.src) {
		return fail(badSyntax, i)
	}
	switch c := d.src[i]; c {
	case '{', '[':
		return d.container(n, i, depth)
	case '"':
		end, plain := skipText(d.src, i+1)
		if end < 0 || n.redact {
			return d.blank(n, i, end)
		}
		return d.found(n, String, d.text(d.src[i+1:end-1], plain), end)
	default:
		end := skipValue(d.src, i, depth)
		if end < 0 || n.redact {
			return d.blank(n, i, end)
		}
		return d.found(n, literalKind(c), d.src[i:end], end)
	}
}

func literalKind(c byte) Kind {
	switch c {
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// blank redacts the scalar in [i,end).
func (d *Document) blank(n *node, i, end int) int {
	if end >= 0 && n.redact {
		d.edits = append(d.edits, edit{start: i, end: end, blank: true})
	}
	return end
}

// text returns what the body of a valid string stands for; plain if that is
// known to be the body itself.
func (d *Document) text(raw []byte, plain bool) []byte {
	if plain || plainText(raw) {
		return raw
	}
	at := len(d.arena)
	d.arena = appendText(d.arena, raw)
	return d.arena[at:len(d.arena):len(d.arena)]
}

// found notes a scalar and returns end.
func (d *Document) found(n *node, kind Kind, text []byte, end int) int {
	for _, p := range n.extract {
		d.Values = append(d.Values, Value{Path: p, Kind: kind, Text: text})
	}
	if n.role != roleNone {
		d.identity(n.role, kind, text)
	}
	return d.enough(n, end)
}

// enough ends the walk early where nothing can come any more.
func (d *Document) enough(n *node, end int) int {
	if d.unique && len(n.extract) > 0 {
		if d.missing -= len(n.extract); d.missing == 0 {
			return fail(satisfied, end)
		}
	}
	return end
}

func (d *Document) identity(r role, kind Kind, text []byte) {
	if r == roleOwnerController {
		d.Owners[len(d.Owners)-1].Controller = kind == Bool && text[0] == 't'
		return
	}
	if kind != String {
		return
	}
	switch r {
	case roleAPIVersion:
		d.APIVersion = text
	case roleKind:
		d.Kind = text
	case roleNamespace:
		d.Namespace = text
	case roleName:
		d.Name = text
	case roleUID:
		d.UID = text
	case roleResourceVersion:
		d.ResourceVersion = text
	case roleCreationTimestamp:
		d.CreationTimestamp = text
	case roleDeletionTimestamp:
		d.DeletionTimestamp = text
	case roleInitialEventsEnd:
		d.InitialEventsEnd = string(text) == "true"
	case roleOwnerUID:
		d.Owners[len(d.Owners)-1].UID = text
	case roleOwnerKind:
		d.Owners[len(d.Owners)-1].Kind = text
	case roleOwnerName:
		d.Owners[len(d.Owners)-1].Name = text
	case roleOwnerAPIVersion:
		d.Owners[len(d.Owners)-1].APIVersion = text
	}
}

// container reads the object or array at i.
func (d *Document) container(n *node, i, depth int) int {
	at, kind := len(d.Values), Object
	if d.src[i] == '[' {
		kind = Array
	}
	for _, p := range n.extract {
		d.Values = append(d.Values, Value{Path: p, Kind: kind})
	}
	var end int
	switch {
	case depth >= maxDepth:
		return fail(badDepth, i)
	case kind == Object && (len(n.fields) > 0 || n.redact || n.role == roleLabels):
		end = d.object(n, i, depth+1)
	case kind == Array && (n.wantsElements() || n.redact):
		end = d.array(n, i, depth+1)
	default:
		end = skipValue(d.src, i, depth)
	}
	if end < 0 {
		return end
	}
	if !n.cuts {
		for k := range n.extract {
			d.Values[at+k].Text = d.src[i:end]
		}
	}
	return d.enough(n, end)
}

// object reads the members of the object at i.
func (d *Document) object(n *node, i, depth int) int {
	m := members{n: n, open: i, careful: d.careful || len(n.fields) > 64, base: len(d.last)}
	i = skipSpace(d.src, i+1)
	if i < len(d.src) && d.src[i] == '}' {
		return i + 1
	}
	if m.careful {
		if bad := d.markLast(n, i, depth); bad < 0 {
			return bad
		}
	}
	comma := -1 // before the current member
	for {
		key := i
		if i = d.member(&m, i, depth); i < 0 {
			return i
		}
		valueEnd := i
		i = skipSpace(d.src, i)
		if i >= len(d.src) {
			return fail(badSyntax, i)
		}
		closed := d.src[i] == '}'
		if !closed {
			if d.src[i] != ',' {
				return fail(badSyntax, i)
			}
		}
		after := skipSpace(d.src, i+1)
		switch {
		case !m.cut:
			m.kept = true
		case m.kept: // with the comma before it
			d.edits = append(d.edits, edit{start: comma, end: valueEnd})
		case closed:
			d.edits = append(d.edits, edit{start: key, end: valueEnd})
		default: // with the comma after it
			d.edits = append(d.edits, edit{start: key, end: after})
		}
		if closed {
			d.last = d.last[:m.base]
			return d.closeObject(&m, i+1)
		}
		comma, i = i, after
	}
}

// members is the state of reading one object.
type members struct {
	n       *node
	open    int    // index of the brace
	careful bool   // earlier occurrences of a key are known and cut
	base    int    // of this object's part of Document.last
	seen    uint64 // wanted fields seen so far, unless careful
	kept    bool   // some member stays in the stored form
	name    []byte // the current key
	cut     bool   // the current member does not stay
}

// again notes that field f is here and reports whether it was before. Careful
// walks know better.
func (m *members) again(f int) bool {
	if m.careful {
		return false
	}
	seen := m.seen&(1<<f) != 0
	m.seen |= 1 << f
	return seen
}

// key reads the key at i and its colon. It returns which field of m.n it names,
// or -1, and the index of the value.
func (d *Document) key(m *members, i int) (f, value int) {
	if i >= len(d.src) || d.src[i] != '"' {
		return -1, fail(badSyntax, i)
	}
	end, plain := skipText(d.src, i+1)
	if end < 0 {
		return -1, end
	}
	m.name = d.text(d.src[i+1:end-1], plain)
	return m.n.find(m.name), skipColon(d.src, end)
}

// member reads the key and value at i and returns the index after them.
func (d *Document) member(m *members, i, depth int) int {
	key := i
	f, i := d.key(m, i)
	if i < 0 {
		return i
	}
	m.cut = false
	value, edits := i, len(d.edits)
	if f < 0 {
		i = skipValue(d.src, i, depth)
	} else {
		i = d.wanted(m, f, key, i, depth)
	}
	if i < 0 {
		return i
	}
	if m.cut {
		d.edits = d.edits[:edits] // what was edited inside goes too
	} else if m.n.redact {
		d.edits = append(d.edits[:edits], edit{start: value, end: i, blank: true})
	}
	switch m.n.role {
	case roleLabels:
		d.label(m.name, value, i)
	case roleAnnotations:
		if c := d.src[value]; c != '"' && c != 'n' {
			d.unsure = true
		}
	}
	return i
}

// wanted reads the value at i of a field that some path leads to.
func (d *Document) wanted(m *members, f, key, i, depth int) int {
	child := m.n.fields[f].node
	if m.careful && d.last[m.base+f] != key {
		m.cut = true // an earlier occurrence, as good as absent
		return skipValue(d.src, i, depth)
	}
	if m.again(f) {
		return fail(duplicate, key)
	}
	m.cut = child.drop
	if child.drop && !child.roles {
		return skipValue(d.src, i, depth)
	}
	end := d.value(child, i, depth)
	switch child.role {
	case roleAPIVersion:
		m.cut = len(d.APIVersion) == 0
	case roleKind:
		m.cut = len(d.Kind) == 0
	}
	return end
}

// markLast pushes, for each field of n, where its last occurrence starts in the
// object whose first key is at i. Only the last one counts; earlier ones are
// cut. A document is read again with this when a wanted key occurs twice.
func (d *Document) markLast(n *node, i, depth int) int {
	base := len(d.last)
	for range n.fields {
		d.last = append(d.last, -1)
	}
	for {
		key := i
		if i >= len(d.src) || d.src[i] != '"' {
			return fail(badSyntax, i)
		}
		if i = skipString(d.src, i+1); i < 0 {
			return i
		}
		arena := len(d.arena)
		f := n.find(d.text(d.src[key+1:i-1], false))
		d.arena = d.arena[:arena]
		if f >= 0 {
			d.last[base+f] = key
		}
		if i = skipColon(d.src, i); i < 0 {
			return i
		}
		if i = skipValue(d.src, i, depth); i < 0 {
			return i
		}
		i = skipSpace(d.src, i)
		if i >= len(d.src) || d.src[i] != ',' {
			return i // the caller checks how it ends
		}
		i = skipSpace(d.src, i+1)
	}
}

func (d *Document) closeObject(m *members, end int) int {
	switch m.n.role {
	case roleLabels:
		d.Labels = uniquePairs(d.Labels)
	case roleAnnotations:
		if d.InitialEventsEnd && d.unsure {
			d.InitialEventsEnd = d.allStrings(m.open, end)
		}
	}
	if m.open == d.start {
		d.kept = m.kept
	}
	return end
}

// label notes a label; a value that is no string is nil until uniquePairs.
func (d *Document) label(key []byte, value, end int) {
	var text []byte
	switch d.src[value] {
	case '"':
		text = d.text(d.src[value+1:end-1], false)
	case 'n':
		text = d.src[value:value]
	}
	d.Labels = append(d.Labels, Pair{Key: key, Value: text})
}

// uniquePairs leaves of each key the last pair, and nothing at all if one of
// those has no text.
func uniquePairs(pairs []Pair) []Pair {
	const few = 24
	var out []Pair
	if len(pairs) <= few {
		out = uniqueFew(pairs)
	} else {
		out = uniqueMany(pairs)
	}
	for _, p := range out {
		if p.Value == nil {
			return out[:0]
		}
	}
	return out
}

func uniqueFew(pairs []Pair) []Pair {
	return slices.DeleteFunc(pairs, func() func(Pair) bool {
		i := -1
		return func(p Pair) bool {
			i++
			for _, q := range pairs[i+1:] {
				if bytes.Equal(p.Key, q.Key) {
					return true
				}
			}
			return false
		}
	}())
}

func uniqueMany(pairs []Pair) []Pair {
	at := make(map[string]int, len(pairs))
	for i, p := range pairs {
		at[string(p.Key)] = i
	}
	if len(at) == len(pairs) {
		return pairs
	}
	out := pairs[:0]
	for i, p := range pairs {
		if at[string(p.Key)] == i {
			out = append(out, p)
		}
	}
	return out
}

// allStrings reports whether the object in [i,end), which has been read, holds
// only strings and nulls once the last of each key is taken.
func (d *Document) allStrings(i, end int) bool {
	labels := d.Labels
	d.Labels = nil
	for i = skipSpace(d.src, i+1); i < end-1; {
		key := i
		i = skipString(d.src, i+1)
		name := d.text(d.src[key+1:i-1], false)
		i = skipColon(d.src, i)
		value := i
		i = skipValue(d.src, i, 0)
		d.label(name, value, i)
		i = skipSpace(d.src, i)
		i = skipSpace(d.src, i+1)
	}
	ok := len(uniquePairs(d.Labels)) > 0
	d.Labels = labels
	return ok
}

// array reads the elements of the array at i.
func (d *Document) array(n *node, i, depth int) int {
	i = skipSpace(d.src, i+1)
	if i < len(d.src) && d.src[i] == ']' {
		return i + 1
	}
	bad := false
	for k := 0; ; k++ {
		start, edits := i, len(d.edits)
		if n.role == roleOwners {
			d.Owners = append(d.Owners, Owner{})
			bad = bad || i >= len(d.src) || d.src[i] != '{'
		}
		if e := n.element(k); e != nil {
			i = d.value(e, i, depth)
		} else {
			i = skipValue(d.src, i, depth)
		}
		if i < 0 {
			return i
		}
		if n.redact {
			d.edits = append(d.edits[:edits], edit{start: start, end: i, blank: true})
		}
		i = skipSpace(d.src, i)
		if i >= len(d.src) {
			return fail(badSyntax, i)
		}
		if d.src[i] == ']' {
			break
		}
		if d.src[i] != ',' {
			return fail(badSyntax, i)
		}
		i = skipSpace(d.src, i+1)
	}
	if bad {
		d.Owners = d.Owners[:0]
	}
	return i + 1
}

// AppendJSON appends the stored form of the object last Run: as served, less
// what is dropped, redacted. An apiVersion or kind that is absent or no proper
// string is put first from the given defaults, unless those are empty: items of
// typed lists lack both. White space stays. After a failed Run it appends
// nothing.
func (d *Document) AppendJSON(dst []byte, apiVersion, kind string) []byte {
	if d.end == 0 {
		return dst
	}
	dst = slices.Grow(dst, d.end-d.start+len(apiVersion)+len(kind)+32)
	dst = append(dst, '{')
	first := len(dst)
	if len(d.APIVersion) == 0 && apiVersion != "" {
		dst = appendQuoted(append(dst, `"apiVersion":`...), apiVersion)
	}
	if len(d.Kind) == 0 && kind != "" {
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(dst, `"kind":`...), kind)
	}
	if len(dst) > first && d.kept {
		dst = append(dst, ',')
	}
	at := d.start + 1
	for _, e := range d.edits {
		dst = append(dst, d.src[at:e.start]...)
		if e.blank {
			dst = append(dst, '"', '"')
		}
		at = e.end
	}
	return append(dst, d.src[at:d.end]...)
}

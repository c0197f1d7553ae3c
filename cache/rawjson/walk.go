package rawjson

import "math/bits"

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

// skip passes the value at i, of which no part is wanted.
func (d *Document) skip(i, depth int) int {
	if d.valid && i < len(d.src) {
		return skipValid(d.src, i)
	}
	end := skipValue(d.src, i, depth)
	if d.notePassed {
		d.passed = append(d.passed, extent{i, end})
	}
	return end
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
	d.bookmark = d.bookmark || r == roleInitialEventsEnd
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
		end = d.skip(i, depth)
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
	m := members{n: n, open: i, careful: d.careful || len(n.fields) > maxSeen, base: len(d.last)}
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
		if d.unique && m.n.all != 0 && m.seen == m.n.all {
			return d.rest(n, i)
		}
		i = skipSpace(d.src, i)
		if i >= len(d.src) {
			return fail(badSyntax, i)
		}
		switch d.src[i] {
		case '}':
			d.keepOrCut(&m, key, comma, valueEnd, valueEnd)
			d.last = d.last[:m.base]
			return d.closeObject(&m, i+1)
		case ',':
			next := skipSpace(d.src, i+1)
			d.keepOrCut(&m, key, comma, valueEnd, next)
			comma, i = i, next
		default:
			return fail(badSyntax, i)
		}
	}
}

// rest passes what follows the value that ends at i in an object of which nothing more is
// wanted. Of the document itself nothing more need be read.
func (d *Document) rest(n *node, i int) int {
	if n == d.root {
		return fail(satisfied, i)
	}
	return d.endOf(i)
}

// endOf is the end of the object of which i is within.
func (d *Document) endOf(i int) int {
	open := boundary{mode: inNested, open: '{', depth: 1}
	length, done := open.feed(d.src[i:])
	if !done {
		return fail(badSyntax, len(d.src))
	}
	return i + length
}

// keepOrCut notes whether the member at key stays. One comma must go with a
// member: the one before it if a member stays before, else the one after it,
// up to the next key.
func (d *Document) keepOrCut(m *members, key, comma, valueEnd, next int) {
	switch {
	case !m.cut:
		m.kept = true
	case m.kept:
		d.edits = append(d.edits, edit{start: comma, end: valueEnd})
	default:
		d.edits = append(d.edits, edit{start: key, end: next})
	}
}

// maxSeen is how many fields members.seen has room for.
const maxSeen = 64

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

// complete reports whether all wanted fields have been. Careful walks never know.
func (m *members) complete() bool {
	return !m.careful && bits.OnesCount64(m.seen) == len(m.n.fields)
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
	value, edits, values := i, len(d.edits), len(d.Values)
	if f < 0 {
		i = d.skip(i, depth)
	} else {
		i = d.wanted(m, f, key, i, depth)
	}
	if i < 0 {
		return i
	}
	if m.n.copies && !m.cut && d.isSecretCopy(value, i) {
		m.cut, d.Values = true, d.Values[:values]
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

// isSecretCopy reports whether the value in [i,end) is a string that holds a Secret.
func (d *Document) isSecretCopy(i, end int) bool {
	if d.src[i] != '"' {
		return false
	}
	arena := len(d.arena)
	is := holdsSecret(d.text(d.src[i+1:end-1], false))
	d.arena = d.arena[:arena]
	return is
}

// wanted reads the value at i of a field that some path leads to.
func (d *Document) wanted(m *members, f, key, i, depth int) int {
	child := m.n.fields[f].node
	if m.careful && d.last[m.base+f] != key {
		m.cut = true // an earlier occurrence, as good as absent
		return d.skip(i, depth)
	}
	if m.again(f) {
		return fail(duplicate, key)
	}
	m.cut = child.drop
	if child.drop && !child.roles {
		return d.skip(i, depth)
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
		passed := len(d.passed)
		i = d.skip(i, depth)
		if d.passed = d.passed[:passed]; i < 0 { // it is read again, where something of it may be wanted
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
			i = d.skip(i, depth)
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

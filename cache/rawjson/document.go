package rawjson

import "slices"

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
	bookmark   bool // there is an annotation that ends a streamed list, whatever it says
	// passed are the values of which nothing is wanted, not even a key, if they are noted: in the
	// order of the document, none within another.
	passed     []extent
	notePassed bool
	valid      bool // see Program
	unique     bool // see Program
	missing    int  // paths still without a value, when unique
	root       *node
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
		src: src, passed: d.passed[:0], notePassed: d.notePassed,
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
	d.valid, d.unique = p.valid, p.unique && !d.careful
	d.missing, d.root = p.single, p.root
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

// AppendJSON appends the stored form of the object last Run: as served, less
// what is dropped, redacted. An apiVersion or kind that is absent or no proper
// string is put first from the given defaults, unless those are empty: items of
// typed lists lack both. Kind comes before apiVersion, as the API server writes
// them in a single object and in an event. White space stays. After a failed Run it appends
// nothing.
func (d *Document) AppendJSON(dst []byte, apiVersion, kind string) []byte {
	if d.end == 0 {
		return dst
	}
	dst = slices.Grow(dst, d.end-d.start+len(apiVersion)+len(kind)+32)
	dst = append(dst, '{')
	first := len(dst)
	if len(d.Kind) == 0 && kind != "" {
		dst = appendQuoted(append(dst, `"kind":`...), kind)
	}
	if len(d.APIVersion) == 0 && apiVersion != "" {
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(dst, `"apiVersion":`...), apiVersion)
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

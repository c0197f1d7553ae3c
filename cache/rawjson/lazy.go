package rawjson

import "strconv"

// Lazy is a value inside a valid JSON document, known by where it begins: what
// follows the value may be part of it. Only what is asked of it is read.
type Lazy []byte

// NewLazy returns the value of a valid document.
func NewLazy(src []byte) Lazy { return Lazy(src[skipSpace(src, 0):]) }

// Kind tells from the first byte what the value is.
func (l Lazy) Kind() Kind {
	switch l[0] {
	case '"':
		return String
	case '{':
		return Object
	case '[':
		return Array
	default:
		return literalKind(l[0])
	}
}

// Text returns the text of a string, or the literal of a number, bool or null.
func (l Lazy) Text() string {
	if l[0] != '"' {
		return string(l.Raw())
	}
	end, plain := skipText(l, 1)
	return textOf(l[1:end-1], plain)
}

// Written is a string as it stands between its quotes, if that is surely its text.
func (l Lazy) Written() (raw []byte, plain bool) {
	end, plain := skipText(l, 1)
	if !plain {
		return nil, false
	}
	return l[1 : end-1], true
}

// Get is the value that names lead to, one object inside the other; nil where there is
// none. Of a name that occurs twice the last one counts.
func (l Lazy) Get(names ...string) Lazy {
	for _, name := range names {
		if len(l) == 0 {
			return nil
		}
		l, _ = l.member(name)
	}
	return l
}

// First is Get, but that of a name that occurs twice the first one counts: nothing behind it is
// read.
func (l Lazy) First(names ...string) Lazy {
	for _, name := range names {
		if len(l) == 0 || l.Kind() != Object {
			return nil
		}
		l = l.first(name)
	}
	return l
}

func (l Lazy) first(name string) Lazy {
	for parts := l.Parts(); ; {
		key, plain, value, ok := parts.Next()
		if !ok || plain && string(key) == name || !plain && KeyText(key, false) == name {
			return value
		}
	}
}

// Raw returns exactly the value.
func (l Lazy) Raw() []byte {
	if end := skipValue(l, 0, 0); end >= 0 {
		return l[:end:end]
	}
	return l
}

// Number returns a number as apimachinery decodes it: an int64 if it is written
// as an integer and fits, else a float64.
func (l Lazy) Number() (n int64, f float64, integer bool) {
	text := string(l.Raw())
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, 0, true
	}
	f, _ = strconv.ParseFloat(text, 64)
	return 0, f, false
}

// AppendText appends what Text returns.
func (l Lazy) AppendText(dst []byte) []byte {
	if l[0] != '"' {
		return append(dst, l.Raw()...)
	}
	end, plain := skipText(l, 1)
	return AppendKeyText(dst, l[1:end-1], plain)
}

func textOf(raw []byte, plain bool) string {
	if plain || plainText(raw) {
		return string(raw)
	}
	return string(appendText(nil, raw))
}

// Parts walks through the members of an object or the elements of an array, in
// the order of the document, and reads no further than it has come.
type Parts struct {
	src    Lazy
	i      int // of the value last returned, or of the bracket
	passed int // how long that value is, if it is known
	begun  bool
	done   bool
}

// Parts returns a walk through an object or array.
func (l Lazy) Parts() Parts { return Parts{src: l} }

// Next returns the next part, and its key if it is a member. plain says that the
// key is text as it stands; otherwise KeyText has to be asked.
func (p *Parts) Next() (key []byte, plain bool, value Lazy, ok bool) {
	if p.done || !p.advance() {
		p.done = true
		return nil, false, nil, false
	}
	if p.src[0] == '[' {
		return nil, false, p.src[p.i:], true
	}
	end, plain := skipText(p.src, p.i+1)
	if end < 0 {
		p.done, p.i = true, len(p.src)
		return nil, false, nil, false
	}
	key = p.src[p.i+1 : end-1]
	if p.i = skipColon(p.src, end); p.i < 0 {
		p.done, p.i = true, len(p.src)
		return nil, false, nil, false
	}
	return key, plain, p.src[p.i:], true
}

// Passed says how long the part is that Next returned last, as End does of an object or
// array that was walked through, so that it is not read once more to find its end. 0: it
// is not known.
func (p *Parts) Passed(length int) { p.passed = length }

// End is how long the object or array is, after Next has found no more parts; before it is
// 0.
func (p *Parts) End() int {
	if !p.done || p.i >= len(p.src) {
		return 0
	}
	return p.i + 1
}

// KeyText is the text of a key that Next returned.
func KeyText(key []byte, plain bool) string { return textOf(key, plain) }

// AppendKeyText appends what KeyText returns.
func AppendKeyText(dst, key []byte, plain bool) []byte {
	if plain || plainText(key) {
		return append(dst, key...)
	}
	return appendText(dst, key)
}

// advance puts i at the next key or element.
func (p *Parts) advance() bool {
	if p.begun {
		if p.passed > 0 {
			p.i, p.passed = p.i+p.passed, 0
		} else if p.i = skipValid(p.src, p.i); p.i < 0 {
			p.i = len(p.src)
			return false
		}
		p.i = skipSpace(p.src, p.i)
	}
	if p.i >= len(p.src) || p.begun && p.src[p.i] != ',' {
		return false
	}
	p.begun = true
	p.i = skipSpace(p.src, p.i+1)
	return p.i < len(p.src) && p.src[p.i] != '}' && p.src[p.i] != ']'
}

// skipValid is skipValue in a document that is known to be valid: it only looks
// for the end.
func skipValid(src []byte, i int) int {
	if src[i] != '{' && src[i] != '[' {
		return skipValue(src, i, 0)
	}
	var b boundary
	n, done := b.feed(src[i:])
	if !done {
		return fail(badSyntax, len(src))
	}
	return i + n
}

package rawjson

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSteps bounds the length of a path, and with it how deep the walks over an
// object recurse.
const maxSteps = 64

// Path is a parsed field path: spec.nodeName, spec.containers[*].image,
// status.conditions[0].type, metadata.annotations['example.com/x.y']. The form
// that CRDs use (".spec.color", "{.spec.color}", "$.spec.color", with "\." for
// a dot inside a name) is read too. A name selects a field of an object, [*]
// every element of an array and [0] one of them; none selects anything in
// another kind of value.
//
// Paths are immutable and comparable: equal paths are ==.
type Path struct {
	s string // the canonical form
}

// step is one part of a path.
type step struct {
	kind  stepKind
	name  string
	index int
}

type stepKind uint8

const (
	stepField stepKind = iota
	stepIndex
	stepStar
)

// ParsePath reads a path. Its errors name the column, counted from 1.
func ParsePath(s string) (Path, error) {
	p := pathParser{s: s, end: len(s)}
	steps, err := p.parseAll()
	if err != nil {
		return Path{}, err
	}
	return newPath(steps), nil
}

// ParsePathIn reads the path in s[start:end]. Its errors name the column in s.
func ParsePathIn(s string, start, end int) (Path, error) {
	p := pathParser{s: s, i: start, end: end}
	steps, err := p.parseAll()
	if err != nil {
		return Path{}, err
	}
	return newPath(steps), nil
}

// CommaSeparated returns where the parts of a list begin and end. Commas inside
// quotes do not separate.
func CommaSeparated(s string) (parts [][2]int) {
	for base := 0; ; {
		n := commaOutsideQuotes(s[base:])
		parts = append(parts, [2]int{base, base + n})
		if base+n == len(s) {
			return parts
		}
		base += n + 1
	}
}

// ParsePaths reads paths separated by commas. Commas inside quotes are part of
// a name.
func ParsePaths(s string) ([]Path, error) {
	var paths []Path
	for _, part := range CommaSeparated(s) {
		p, err := ParsePathIn(s, part[0], part[1])
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

func commaOutsideQuotes(s string) int {
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ',':
			return i
		}
	}
	return len(s)
}

// Computed is the path of a value that is nowhere in an object: what the function of a name
// makes of it. It leads to a field of the name and "()", which no object has, and which
// whoever asks for it adds to what is read.
func Computed(function string) Path { return Path{s: function + "()"} }

// String returns the canonical form: no leading dot, names in single quotes
// where they hold anything but letters, digits, dashes and underscores.
func (p Path) String() string { return p.s }

// IsZero reports whether p is the zero Path, which selects nothing.
func (p Path) IsZero() bool { return p.s == "" }

// Len is how many steps p has.
func (p Path) Len() int { return len(p.steps()) }

// Field is the path of a field of what p selects.
func (p Path) Field(name string) Path {
	var b strings.Builder
	b.WriteString(p.s)
	writeName(&b, name, p.s == "")
	return Path{s: b.String()}
}

// Elements is the path of every element of what p selects.
func (p Path) Elements() Path { return Path{s: p.s + "[*]"} }

// Below is how many steps p is below outer, 0 for where outer itself may lead; ok is
// false if it does not lead there.
func (p Path) Below(outer Path) (steps int, ok bool) {
	inner, above := p.steps(), outer.steps()
	return len(inner) - len(above), len(above) <= len(inner) && overlap(inner, above)
}

// Multi reports whether p can yield more than one value.
func (p Path) Multi() bool {
	for _, st := range p.steps() {
		if st.kind == stepStar {
			return true
		}
	}
	return false
}

// steps returns the parts of p. A Path can only be made by ParsePath, so its
// canonical form parses.
func (p Path) steps() []step {
	if p.IsZero() {
		return nil
	}
	if strings.HasSuffix(p.s, "()") {
		return []step{{kind: stepField, name: p.s}}
	}
	pp := pathParser{s: p.s, end: len(p.s)}
	steps, err := pp.parseAll()
	if err != nil {
		panic("rawjson: canonical path " + strconv.Quote(p.s) + " does not parse: " + err.Error())
	}
	return steps
}

func newPath(steps []step) Path {
	var b strings.Builder
	for i, st := range steps {
		switch st.kind {
		case stepStar:
			b.WriteString("[*]")
		case stepIndex:
			b.WriteString("[" + strconv.Itoa(st.index) + "]")
		default:
			writeName(&b, st.name, i == 0)
		}
	}
	return Path{s: b.String()}
}

func writeName(b *strings.Builder, name string, first bool) {
	if !bareName(name) {
		b.WriteString("['")
		for i := 0; i < len(name); i++ {
			if name[i] == '\'' || name[i] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(name[i])
		}
		b.WriteString("']")
		return
	}
	if !first {
		b.WriteByte('.')
	}
	b.WriteString(name)
}

func bareName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !(isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '-' || c == '_') {
			return false
		}
	}
	return name != ""
}

// pathParser reads s[i:end].
type pathParser struct {
	s      string
	i, end int
}

func (p *pathParser) errorf(at int, format string, args ...any) error {
	return fmt.Errorf("path %q, column %d: %s", p.s, at+1, fmt.Sprintf(format, args...))
}

func (p *pathParser) peek() byte {
	if p.i < p.end {
		return p.s[p.i]
	}
	return 0
}

func (p *pathParser) parseAll() ([]step, error) {
	if !utf8.ValidString(p.s) {
		return nil, p.errorf(0, "not valid UTF-8")
	}
	p.trim()
	start := p.i
	if p.peek() == '$' && (p.i+1 >= p.end || p.s[p.i+1] == '.' || p.s[p.i+1] == '[') {
		p.i++
	}
	var steps []step
	for p.i < p.end {
		st, err := p.parseStep(p.i == start)
		if err != nil {
			return nil, err
		}
		if len(steps) == maxSteps {
			return nil, p.errorf(p.i, "more than %d steps", maxSteps)
		}
		steps = append(steps, st)
	}
	if len(steps) == 0 {
		return nil, p.errorf(start, "no field named; write for example spec.nodeName")
	}
	return steps, nil
}

// trim leaves off white space and the braces of a JSONPath template.
func (p *pathParser) trim() {
	p.trimSpace()
	if p.end-p.i >= 2 && p.s[p.i] == '{' && p.s[p.end-1] == '}' {
		p.i++
		p.end--
		p.trimSpace()
	}
}

func (p *pathParser) trimSpace() {
	for p.i < p.end && isSpace(p.s[p.i]) {
		p.i++
	}
	for p.i < p.end && isSpace(p.s[p.end-1]) {
		p.end--
	}
}

func (p *pathParser) parseStep(first bool) (step, error) {
	switch c := p.peek(); {
	case c == '[':
		return p.parseBracket()
	case c == '.':
		p.i++
		switch p.peek() {
		case '.':
			return step{}, p.errorf(p.i, "recursive descent (..) is not supported; name every field")
		case '[': // {.['name']}
			return p.parseBracket()
		}
		return p.parseName()
	case first:
		return p.parseName()
	default:
		return step{}, p.errorf(p.i, "want . or [ here, found %q", rune(c))
	}
}

func (p *pathParser) parseName() (step, error) {
	start := p.i
	var name []byte
	for p.i < p.end {
		c := p.s[p.i]
		if c == '.' || c == '[' {
			break
		}
		if c == '\\' {
			p.i++
			if p.i >= p.end {
				return step{}, p.errorf(p.i-1, "nothing after the backslash; write \\. for a dot inside a name")
			}
			c = p.s[p.i]
		} else if strings.IndexByte("*?@$(){}]'\",=!<>|&", c) >= 0 || c <= ' ' {
			return step{}, p.errorf(p.i, "%q cannot stand in a bare name; quote the name: ['...']", rune(c))
		}
		name = append(name, c)
		p.i++
	}
	if p.i == start {
		return step{}, p.errorf(p.i, "a field name is missing")
	}
	return step{kind: stepField, name: string(name)}, nil
}

func (p *pathParser) parseBracket() (step, error) {
	open := p.i
	p.i++
	var st step
	var err error
	switch c := p.peek(); {
	case c == '*':
		p.i++
		st.kind = stepStar
	case c == '\'' || c == '"':
		st.name, err = p.parseQuoted(c)
	case isDigit(c):
		st.kind = stepIndex
		st.index, err = p.parseIndex()
	case c == '?':
		err = p.errorf(p.i, "filters are not supported; use [*]")
	case c == '-' || c == ':':
		err = p.errorf(p.i, "negative indexes and slices are not supported; use [*] or [0]")
	default:
		err = p.errorf(p.i, "want [*], [0] or ['name']")
	}
	if err != nil {
		return step{}, err
	}
	if p.peek() != ']' || p.i >= p.end {
		return step{}, p.errorf(p.i, "the [ of column %d is not closed by ] here; want [*], [0] or ['name']", open+1)
	}
	p.i++
	return st, nil
}

func (p *pathParser) parseQuoted(quote byte) (string, error) {
	open := p.i
	var name []byte
	for p.i++; p.i < p.end; p.i++ {
		c := p.s[p.i]
		if c == quote {
			p.i++
			return string(name), nil
		}
		if c == '\\' && p.i+1 < p.end {
			p.i++
			c = p.s[p.i]
		}
		name = append(name, c)
	}
	return "", p.errorf(open, "the quote is not closed")
}

func (p *pathParser) parseIndex() (int, error) {
	start := p.i
	for isDigit(p.peek()) {
		p.i++
	}
	n, err := strconv.ParseUint(p.s[start:p.i], 10, 31)
	if err != nil {
		return 0, p.errorf(start, "index %s is too large", p.s[start:p.i])
	}
	return int(n), nil
}

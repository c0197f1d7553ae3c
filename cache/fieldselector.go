package cache

import (
	"fmt"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache/rawjson"
	"k8s.io/apimachinery/pkg/selection"
)

// FieldSelector selects objects by the values at field paths; the zero value
// selects all. Its requirements must all hold.
//
// A path that leads nowhere, or to null, has the value "", as in the API
// server's spec.nodeName=. Numbers and booleans compare by their literal text;
// an object or array equals nothing. With [*] a path has several values: an
// equality holds if any value is equal, its negation if none is.
type FieldSelector struct {
	requirements []FieldRequirement
}

// FieldRequirement is one condition of a FieldSelector.
type FieldRequirement struct {
	Path rawjson.Path
	// Operator is one of Equals, NotEquals, In, NotIn, Exists, DoesNotExist.
	Operator selection.Operator
	// Values has one element for Equals and NotEquals, none for Exists and
	// DoesNotExist.
	Values []string
}

// NewFieldSelector is of requirements that NewFieldRequirement made.
func NewFieldSelector(requirements ...FieldRequirement) FieldSelector {
	return FieldSelector{requirements: slices.Clone(requirements)}
}

// NewFieldRequirement is a condition that has been read already, by whatever grammar:
// the path is one path and the values are as they stand, so that nothing in them can
// be taken for another condition. Its errors are *InvalidError.
func NewFieldRequirement(path string, operator selection.Operator, values ...string) (FieldRequirement, error) {
	parsed, err := rawjson.ParsePath(path)
	if err != nil {
		return FieldRequirement{}, invalidf("fieldSelector", "%v", err)
	}
	r := FieldRequirement{Path: parsed, Operator: operator, Values: slices.Clone(values)}
	fits := false
	switch operator {
	case selection.DoubleEquals:
		r.Operator, fits = selection.Equals, len(values) == 1
	case selection.Equals, selection.NotEquals:
		fits = len(values) == 1
	case selection.In, selection.NotIn:
		slices.Sort(r.Values)
		r.Values, fits = slices.Compact(r.Values), len(values) > 0
	case selection.Exists, selection.DoesNotExist:
		fits = len(values) == 0
	}
	if !fits {
		return FieldRequirement{}, invalidf("fieldSelector", "path %q: %d values do not go with operator %q", path, len(values), operator)
	}
	return r, nil
}

// Empty reports whether f selects everything.
func (f FieldSelector) Empty() bool { return len(f.requirements) == 0 }

// Requirements lists the conditions; the slice must not be modified.
func (f FieldSelector) Requirements() []FieldRequirement { return f.requirements }

// String is a form that ParseFieldSelector reads back.
func (f FieldSelector) String() string {
	parts := make([]string, len(f.requirements))
	for i, r := range f.requirements {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

func (r FieldRequirement) String() string {
	switch r.Operator {
	case selection.Exists:
		return r.Path.String()
	case selection.DoesNotExist:
		return "!" + r.Path.String()
	case selection.In, selection.NotIn:
		values := make([]string, len(r.Values))
		for i, v := range r.Values {
			values[i] = escapeFieldValue.Replace(v)
		}
		return r.Path.String() + " " + string(r.Operator) + " (" + strings.Join(values, ",") + ")"
	default:
		return r.Path.String() + string(r.Operator) + escapeFieldValue.Replace(r.Values[0])
	}
}

var escapeFieldValue = strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`, `(`, `\(`, `)`, `\)`, ` `, `\ `)

// negated reports whether the requirement says that something must not be.
func (r FieldRequirement) negated() bool {
	switch r.Operator {
	case selection.NotEquals, selection.NotIn, selection.DoesNotExist:
		return true
	default:
		return false
	}
}

// ParseFieldSelector reads requirements separated by commas:
//
//	path=value  path==value  path!=value
//	path in (a,b)  path notin (a,b)  path  !path
//
// A path is any that rawjson.ParsePath reads. In values the backslash escapes
// itself, comma, equals sign, parentheses and space; white space around values
// is left out. Errors are *InvalidError and name the column, counted from 1.
func ParseFieldSelector(s string) (FieldSelector, error) {
	p := fieldParser{s: s}
	var f FieldSelector
	for {
		p.space()
		switch {
		case p.done():
			return f, nil
		case p.s[p.i] == ',':
			p.i++
			continue
		}
		r, err := p.requirement()
		if err != nil {
			return FieldSelector{}, err
		}
		f.requirements = append(f.requirements, r)
		p.space()
		if !p.done() && p.s[p.i] != ',' {
			return FieldSelector{}, p.errorf(p.i, "unexpected %q, want a comma or the end", p.s[p.i:])
		}
	}
}

type fieldParser struct {
	s string
	i int
}

func (p *fieldParser) errorf(at int, format string, args ...any) error {
	return invalidf("fieldSelector", "column %d: %s", at+1, fmt.Sprintf(format, args...))
}

func (p *fieldParser) done() bool { return p.i >= len(p.s) }

func (p *fieldParser) space() {
	for !p.done() && (p.s[p.i] == ' ' || p.s[p.i] == '\t' || p.s[p.i] == '\n' || p.s[p.i] == '\r') {
		p.i++
	}
}

func (p *fieldParser) requirement() (FieldRequirement, error) {
	if p.s[p.i] == '!' && !strings.HasPrefix(p.s[p.i:], "!=") {
		p.i++
		p.space()
		path, err := p.path()
		return FieldRequirement{Path: path, Operator: selection.DoesNotExist}, err
	}
	path, err := p.path()
	if err != nil {
		return FieldRequirement{}, err
	}
	p.space()
	r := FieldRequirement{Path: path, Operator: p.operator()}
	switch r.Operator {
	case selection.Equals, selection.NotEquals:
		var v string
		v, err = p.value(",")
		r.Values = []string{v}
	case selection.In, selection.NotIn:
		r.Values, err = p.values()
	}
	return r, err
}

// path reads up to an operator, a comma or a space outside quotes and brackets.
func (p *fieldParser) path() (rawjson.Path, error) {
	start := p.i
	p.i = pathEnd(p.s, start)
	if p.i == start {
		if p.done() {
			return rawjson.Path{}, p.errorf(start, "want a field path")
		}
		return rawjson.Path{}, p.errorf(start, "want a field path before %q", p.s[start:])
	}
	path, err := rawjson.ParsePath(p.s[start:p.i])
	if err != nil {
		return rawjson.Path{}, p.errorf(start, "path %q: %v", p.s[start:p.i], err)
	}
	return path, nil
}

func pathEnd(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case depth > 0 && (c == '\'' || c == '"'):
			n := closingQuote(s[i+1:], c)
			if n < 0 {
				return len(s)
			}
			i += 1 + n
		case c == '\\' && i+1 < len(s):
			i++
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth <= 0 && strings.IndexByte("=!, \t\r\n", c) >= 0:
			return i
		}
	}
	return len(s)
}

// closingQuote returns the index of the quote that ends s, or -1.
func closingQuote(s string, quote byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i
		}
	}
	return -1
}

func (p *fieldParser) operator() selection.Operator {
	rest := p.s[p.i:]
	for _, op := range []struct {
		text string
		op   selection.Operator
	}{{"!=", selection.NotEquals}, {"==", selection.Equals}, {"=", selection.Equals}} {
		if strings.HasPrefix(rest, op.text) {
			p.i += len(op.text)
			return op.op
		}
	}
	for _, op := range []selection.Operator{selection.In, selection.NotIn} {
		after, ok := strings.CutPrefix(rest, string(op))
		if ok && (after == "" || strings.IndexByte("( \t\r\n", after[0]) >= 0) {
			p.i += len(op)
			return op
		}
	}
	return selection.Exists
}

// values reads a list in parentheses.
func (p *fieldParser) values() ([]string, error) {
	p.space()
	if p.done() || p.s[p.i] != '(' {
		return nil, p.errorf(p.i, "want ( and the values")
	}
	open := p.i
	p.i++
	var values []string
	for {
		v, err := p.value(",)")
		if err != nil {
			return nil, err
		}
		if p.done() {
			return nil, p.errorf(open, "( is not closed")
		}
		values = append(values, v)
		p.i++
		if p.s[p.i-1] == ')' {
			slices.Sort(values)
			return slices.Compact(values), nil
		}
	}
}

// value reads up to one of the bytes in end, or the end.
func (p *fieldParser) value(end string) (string, error) {
	var b strings.Builder
	p.space()
	kept := 0 // length without trailing white space
	for ; !p.done() && strings.IndexByte(end, p.s[p.i]) < 0; p.i++ {
		c := p.s[p.i]
		switch c {
		case '=':
			return "", p.errorf(p.i, `= in a value must be written \=`)
		case '\\':
			p.i++
			if p.done() || strings.IndexByte(`\,=() `, p.s[p.i]) < 0 {
				return "", p.errorf(p.i-1, `the backslash escapes \ , = ( ) and space only`)
			}
			b.WriteByte(p.s[p.i])
			kept = b.Len()
			continue
		}
		b.WriteByte(c)
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			kept = b.Len()
		}
	}
	return b.String()[:kept], nil
}

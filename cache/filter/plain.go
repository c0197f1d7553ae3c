package filter

import (
	"bytes"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/informerd/informerd/cache/rawjson"
)

// plain answers an expression about texts, such as object.spec.nodeName == 'n1', without cel-go,
// which takes several times as long. known is false where something that it asks for is not
// there, or is no text: what that means is for cel-go to say.
type plain func(object rawjson.Lazy) (is, known bool)

const (
	// plainCost is the cost of each comparison without cel-go: about its time.
	plainCost = 4
	// maxPlain is how large an object may be to be looked at without cel-go, and mostPlain how
	// many comparisons there may be: each of them goes through the object from its beginning, and
	// nothing interrupts it.
	maxPlain  = 16 << 10
	mostPlain = 8
)

// plainAnswer is how an expression is answered without cel-go.
type plainAnswer struct {
	plain
	cost uint64
}

// of answers for an object in JSON; known is false where cel-go has to.
func (a *plainAnswer) of(object []byte) (is, known bool) {
	if a.plain == nil || len(object) > maxPlain {
		return false, false
	}
	return a.plain(rawjson.NewLazy(object))
}

// plainAnswerOf is that of an expression, if it has one.
func plainAnswerOf(e ast.Expr) (a plainAnswer) {
	n := 0
	if p := plainOf(e, &n); n <= mostPlain {
		a = plainAnswer{p, uint64(n) * plainCost}
	}
	return a
}

// plainOf is the plain of an expression, nil if it has none, and counts its comparisons.
func plainOf(e ast.Expr, n *int) plain {
	if e.Kind() != ast.CallKind {
		return nil
	}
	c := e.AsCall()
	switch args := c.Args(); c.FunctionName() {
	case operators.LogicalAnd:
		return both(args, n, true)
	case operators.LogicalOr:
		return both(args, n, false)
	case operators.LogicalNot:
		return not(plainOf(args[0], n))
	case operators.Equals:
		return plainEqual(args[0], args[1], n)
	case operators.NotEquals:
		return not(plainEqual(args[0], args[1], n))
	case "startsWith":
		return plainMember(c, n, bytes.HasPrefix, strings.HasPrefix)
	case "endsWith":
		return plainMember(c, n, bytes.HasSuffix, strings.HasSuffix)
	case "contains":
		return plainMember(c, n, bytes.Contains, strings.Contains)
	}
	return nil
}

func not(p plain) plain {
	if p == nil {
		return nil
	}
	return func(object rawjson.Lazy) (is, known bool) {
		is, known = p(object)
		return !is, known
	}
}

// both is a && b, or a || b: the second is asked only where the first is as said. In CEL either
// may decide, whatever the other one says.
func both(args []ast.Expr, n *int, goesOn bool) plain {
	if len(args) != 2 {
		return nil
	}
	a, b := plainOf(args[0], n), plainOf(args[1], n)
	if a == nil || b == nil {
		return nil
	}
	return func(object rawjson.Lazy) (is, known bool) {
		if is, known = a(object); !known || is != goesOn {
			return is, known
		}
		return b(object)
	}
}

func plainEqual(left, right ast.Expr, n *int) plain {
	path, text := left, right
	if left.Kind() == ast.LiteralKind {
		path, text = right, left
	}
	want, ok := stringLiteral(text)
	if !ok {
		return nil
	}
	return plainText(path, n, func(raw []byte) bool { return string(raw) == want }, func(text string) bool { return text == want })
}

// plainMember is a call of a text's function with one that is written out.
func plainMember(c ast.CallExpr, n *int, raw func(text, part []byte) bool, decoded func(text, part string) bool) plain {
	if !c.IsMemberFunction() || len(c.Args()) != 1 {
		return nil
	}
	part, ok := stringLiteral(c.Args()[0])
	if !ok {
		return nil
	}
	written := []byte(part)
	return plainText(c.Target(), n, func(text []byte) bool { return raw(text, written) }, func(text string) bool { return decoded(text, part) })
}

// plainText asks what a text at a path is, as it is written where that is all of it, or decoded.
func plainText(path ast.Expr, n *int, written func(raw []byte) bool, decoded func(text string) bool) plain {
	names, ok := plainPath(path)
	if !ok {
		return nil
	}
	*n++
	return func(object rawjson.Lazy) (is, known bool) {
		v := object.First(names...) // as jsonMap has it
		if v == nil || v.Kind() != rawjson.String {
			return false, false
		}
		if raw, plain := v.Written(); plain {
			return written(raw), true
		}
		return decoded(v.Text()), true
	}
}

// plainPath are the names of object.a.b, or of object.a['b'].
func plainPath(e ast.Expr) (names []string, ok bool) {
	for {
		switch e.Kind() {
		case ast.IdentKind:
			return names, len(names) > 0 && e.AsIdent() == "object"
		case ast.SelectKind:
			s := e.AsSelect()
			if s.IsTestOnly() {
				return nil, false
			}
			names, e = append([]string{s.FieldName()}, names...), s.Operand()
		case ast.CallKind:
			c := e.AsCall()
			if c.FunctionName() != operators.Index {
				return nil, false
			}
			name, ok := stringLiteral(c.Args()[1])
			if !ok {
				return nil, false
			}
			names, e = append([]string{name}, names...), c.Args()[0]
		default:
			return nil, false
		}
	}
}

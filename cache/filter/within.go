package filter

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/informerd/informerd/cache/rawjson"
)

// maxWithin is how many steps a path has at most.
const maxWithin = 32

// within are paths outside of which an expression reads nothing of object; ok is false if it
// takes object as a whole. A variable of a loop that is called object, too, is taken for it.
func within(e ast.Expr) (paths []rawjson.Path, ok bool) {
	if path, steps := selected(e); steps > 0 {
		return []rawjson.Path{path}, steps <= maxWithin
	}
	if e.Kind() == ast.IdentKind {
		return nil, !isObject(e)
	}
	all := parts(e)
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		all = []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	for _, part := range all {
		more, ok := within(part)
		if !ok {
			return nil, false
		}
		paths = append(paths, more...)
	}
	return paths, true
}

func isObject(e ast.Expr) bool { return strings.TrimPrefix(e.AsIdent(), ".") == "object" }

// selected is the path of object.a.b, of object["a"].b and of object.?a.?b, with how many
// steps it has: 0 if it is none, or object alone.
func selected(e ast.Expr) (path rawjson.Path, steps int) {
	operand, name, ok := nameSelected(e)
	if !ok {
		return path, 0
	}
	if operand.Kind() == ast.IdentKind {
		if !isObject(operand) {
			return path, 0
		}
		return path.Field(name), 1
	}
	if path, steps = selected(operand); steps == 0 {
		return path, 0
	}
	return path.Field(name), steps + 1
}

// nameSelected is what an expression selects, by a name that is known.
func nameSelected(e ast.Expr) (operand ast.Expr, name string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	case ast.CallKind:
		call := e.AsCall()
		if f := call.FunctionName(); f != "_?._" && f != "_[_]" && f != "_[?_]" || len(call.Args()) != 2 {
			return nil, "", false
		}
		if call.Args()[1].Kind() != ast.LiteralKind {
			return nil, "", false
		}
		text, ok := call.Args()[1].AsLiteral().(types.String)
		return call.Args()[0], string(text), ok
	}
	return nil, "", false
}

package filter

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/informerd/informerd/cache/rawjson"
)

// maxWithin is how many steps a path has at most.
const maxWithin = 32

// within are paths outside of which an expression reads nothing of object; ok is false if it
// takes object as a whole, or calls a variable of a loop object, too.
func within(e ast.Expr) (paths []rawjson.Path, ok bool) {
	var w withiner
	if !w.read(e, nil) {
		return nil, false
	}
	return w.paths, true
}

// withiner collects what an expression reads.
type withiner struct {
	paths []rawjson.Path
}

func (w *withiner) add(p rawjson.Path) {
	if !slices.Contains(w.paths, p) {
		w.paths = append(w.paths, p)
	}
}

// variables are those of the loops around an expression, by name. Each stands for the elements
// at a path; one that stands for anything else is of the zero Path.
type variables map[string]rawjson.Path

// read reports whether it is known what the expression reads.
func (w *withiner) read(e ast.Expr, in variables) bool {
	if path, steps := selected(e, in); steps > 0 {
		w.add(path)
		return steps <= maxWithin
	}
	switch e.Kind() {
	case ast.IdentKind:
		path, own := in[e.AsIdent()]
		if !path.IsZero() {
			w.add(path)
		}
		return own || !isObject(e)
	case ast.ComprehensionKind:
		return w.loop(e.AsComprehension(), in)
	}
	for _, part := range parts(e) {
		if !w.read(part, in) {
			return false
		}
	}
	return true
}

// loop is read of a loop: of a list no more is read than of its elements.
func (w *withiner) loop(c ast.ComprehensionExpr, in variables) bool {
	if slices.Contains([]string{c.IterVar(), c.IterVar2(), c.AccuVar()}, "object") || !w.read(c.AccuInit(), in) {
		return false
	}
	result := maps.Clone(in)
	if result == nil {
		result = variables{}
	}
	result[c.AccuVar()] = rawjson.Path{}
	step := maps.Clone(result)
	step[c.IterVar()] = rawjson.Path{}
	element := cmp.Or(c.IterVar2(), c.IterVar())
	list, steps := selected(c.IterRange(), in)
	switch {
	case steps == 0 && !w.read(c.IterRange(), in) || steps >= maxWithin:
		return false
	case steps > 0:
		step[element] = list.Elements()
	default:
		step[element] = rawjson.Path{}
	}
	inner := withiner{}
	if !inner.read(c.LoopCondition(), step) || !inner.read(c.LoopStep(), step) || !inner.read(c.Result(), result) {
		return false
	}
	if steps > 0 {
		if !slices.ContainsFunc(inner.paths, func(p rawjson.Path) bool { _, below := p.Below(list); return below }) {
			w.add(list) // how many elements there are is read, and nothing of them
		}
	}
	for _, p := range inner.paths {
		w.add(p)
	}
	return true
}

func isObject(e ast.Expr) bool { return strings.TrimPrefix(e.AsIdent(), ".") == "object" }

// selected is the path of object.a.b, of object["a"].b, of object.?a.?b, and of the same of a
// variable, with how many steps it has: 0 if it is none, or object or a variable alone.
func selected(e ast.Expr, in variables) (path rawjson.Path, steps int) {
	operand, name, ok := nameSelected(e)
	if !ok {
		return path, 0
	}
	if operand.Kind() == ast.IdentKind {
		of, own := in[operand.AsIdent()]
		if own && of.IsZero() || !own && !isObject(operand) {
			return path, 0
		}
		return of.Field(name), of.Len() + 1
	}
	if path, steps = selected(operand, in); steps == 0 {
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

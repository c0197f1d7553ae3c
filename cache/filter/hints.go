package filter

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// hintsOf finds conditions on single paths that hold whenever the expression is
// true, where now is the value of the variable now. An evaluation error is no
// match, so what would be one need not be looked at.
func hintsOf(e ast.Expr, now types.Timestamp) cache.Hints {
	h := hinter{now: now}
	h.add(e)
	return h.hints
}

// hinter walks the part of a syntax tree that must be true for the whole to be.
type hinter struct {
	hints cache.Hints
	scope scope
	now   types.Timestamp
}

// scope maps the variables of comprehensions to the paths of their elements.
type scope map[string]string

func (h *hinter) add(e ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		h.call(e.AsCall())
	case ast.SelectKind:
		h.selected(e.AsSelect())
	case ast.ComprehensionKind:
		h.exists(e.AsComprehension())
	}
}

func (h *hinter) call(c ast.CallExpr) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd:
		h.add(args[0])
		h.add(args[1])
	case operators.LogicalOr:
		h.either(args[0], args[1])
	case operators.Equals:
		if !h.compare(selection.Equals, args[0], args[1]) && !h.compare(selection.Equals, args[1], args[0]) {
			h.ordered(operators.Equals, args[0], args[1])
		}
	case operators.NotEquals:
		if !h.compare(selection.NotEquals, args[0], args[1]) {
			h.compare(selection.NotEquals, args[1], args[0])
		}
	case operators.In:
		h.in(args[0], args[1])
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		h.ordered(c.FunctionName(), args[0], args[1])
	default:
		if c.IsMemberFunction() {
			h.member(c)
		}
	}
}

// compare takes up path == "value" and path != "value".
func (h *hinter) compare(op selection.Operator, left, right ast.Expr) bool {
	value, ok := literal(right)
	if !ok {
		return false
	}
	path, ok := h.pathOr(left, value)
	if !ok || op == selection.NotEquals && (literalInJSON(value) || strings.Contains(path, "[*]")) {
		return false
	}
	h.require(path, op, value)
	return true
}

// in takes up path in ["a", "b"] and "key" in object.metadata.labels.
func (h *hinter) in(left, right ast.Expr) {
	if key, ok := literal(left); ok {
		if path, ok := h.path(right); ok && path == labelsPath {
			h.label(key, selection.Exists)
		}
		return
	}
	if right.Kind() != ast.ListKind || right.AsList().Size() == 0 {
		return
	}
	var values []string
	for _, e := range right.AsList().Elements() {
		v, ok := literal(e)
		if !ok {
			h.inNumbers(left, right.AsList().Elements())
			return
		}
		values = append(values, v)
	}
	if path, ok := h.pathOr(left, values...); ok {
		h.require(path, selection.In, values...)
	}
}

// pathOr is path, also for path.orValue("default") unless the default is among
// the values it is compared with: then what has no value counts, too.
func (h *hinter) pathOr(e ast.Expr, values ...string) (string, bool) {
	if !isOrValue(e) {
		return h.path(e)
	}
	fallback, ok := fallbackOf(e)
	if !ok || slices.Contains(values, fallback) {
		return "", false
	}
	return h.path(e.AsCall().Target())
}

func isOrValue(e ast.Expr) bool {
	return e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "orValue" && e.AsCall().IsMemberFunction()
}

// fallbackOf is the default of path.orValue("default").
func fallbackOf(e ast.Expr) (string, bool) {
	if !isOrValue(e) {
		return "", false
	}
	return literal(e.AsCall().Args()[0])
}

// either takes up a || b where both sides ask for values at the same path.
func (h *hinter) either(a, b ast.Expr) {
	left, right := hinter{scope: h.scope, now: h.now}, hinter{scope: h.scope, now: h.now}
	left.add(a)
	right.add(b)
	if x, y := left.hints.Ranges, right.hints.Ranges; len(x) == 1 && len(y) == 1 && x[0].Path == y[0].Path {
		h.within(x[0].Path.String(), slices.Concat(x[0].Ranges, y[0].Ranges)...)
	}
	if len(left.hints.Fields) != 1 || len(right.hints.Fields) != 1 {
		return
	}
	x, y := left.hints.Fields[0], right.hints.Fields[0]
	if x.Path != y.Path || x.Operator == selection.NotEquals || y.Operator == selection.NotEquals {
		return
	}
	h.require(x.Path.String(), selection.In, append(append([]string(nil), x.Values...), y.Values...)...)
}

// selected takes up has(object.metadata.labels.key).
func (h *hinter) selected(s ast.SelectExpr) {
	if path, ok := h.path(s.Operand()); ok && s.IsTestOnly() && path == labelsPath {
		h.label(s.FieldName(), selection.Exists)
	}
}

// exists takes up list.exists(x, condition): some element meets it.
func (h *hinter) exists(c ast.ComprehensionExpr) {
	list, ok := h.path(c.IterRange())
	if !ok || c.HasIterVar2() || !isLiteral(c.AccuInit(), types.False) || c.LoopStep().Kind() != ast.CallKind {
		return
	}
	step := c.LoopStep().AsCall()
	if step.FunctionName() != operators.LogicalOr || !isVariable(step.Args()[0], c.AccuVar()) || !isVariable(c.Result(), c.AccuVar()) {
		return
	}
	inner := scope{c.IterVar(): list + "[*]"}
	for name, path := range h.scope {
		if name != c.IterVar() {
			inner[name] = path
		}
	}
	outer := h.scope
	h.scope = inner
	h.add(step.Args()[1])
	h.scope = outer
}

const labelsPath = "metadata.labels"

func (h *hinter) label(key string, op selection.Operator, values ...string) {
	if r, err := labels.NewRequirement(key, op, values); err == nil {
		h.hints.Labels = append(h.hints.Labels, *r)
	}
}

// require notes a condition. A path that ends in [*] is left out: the elements
// might turn out to be the keys of a map.
func (h *hinter) require(path string, op selection.Operator, values ...string) {
	p, err := rawjson.ParsePath(path)
	if err != nil || strings.HasSuffix(p.String(), "[*]") {
		return
	}
	if key, ok := labelKey(path); ok {
		h.label(key, op, values...)
		return
	}
	h.hints.Fields = append(h.hints.Fields, cache.FieldRequirement{Path: p, Operator: op, Values: values})
}

// labelKey is the key of a path to a label, as path writes it.
func labelKey(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, labelsPath)
	if !ok || !strings.HasPrefix(rest, "['") || !strings.HasSuffix(rest, "']") {
		return "", false
	}
	key := rest[2 : len(rest)-2]
	return key, !strings.ContainsAny(key, `'\`)
}

// path writes the chain of selections and indexings from object, or from the
// variable of a comprehension, as a field path.
func (h *hinter) path(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		if path, ok := h.scope[e.AsIdent()]; ok {
			return path, true
		}
		return "", e.AsIdent() == "object"
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			return h.step(s.Operand(), s.FieldName())
		}
	case ast.CallKind:
		switch c := e.AsCall(); c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			return h.indexed(c.Args()[0], c.Args()[1])
		}
	}
	return "", false
}

func (h *hinter) indexed(operand, key ast.Expr) (string, bool) {
	if name, ok := stringLiteral(key); ok {
		return h.step(operand, name)
	}
	base, ok := h.path(operand)
	n, isInt := intLiteral(key)
	if !ok || !isInt || n < 0 || base == "" {
		return "", false
	}
	return base + "[" + strconv.Itoa(n) + "]", true
}

var escapeName = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

func (h *hinter) step(operand ast.Expr, name string) (string, bool) {
	base, ok := h.path(operand)
	if !ok || name == "" {
		return "", false
	}
	if base == "" || base != labelsPath && plainName(name) {
		return strings.TrimPrefix(base+"."+name, "."), plainName(name)
	}
	return base + "['" + escapeName.Replace(name) + "']", true
}

func plainName(name string) bool {
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// literal is the text by which an index knows a constant. Numbers are left out:
// the same number can be written in several ways.
func literal(e ast.Expr) (string, bool) {
	if s, ok := stringLiteral(e); ok {
		return s, true
	}
	switch {
	case isLiteral(e, types.True):
		return "true", true
	case isLiteral(e, types.False):
		return "false", true
	}
	return "", false
}

// literalInJSON reports whether a text could also be that of a number or bool,
// which is not equal to the string.
func literalInJSON(s string) bool { return json.Valid([]byte(s)) }

func stringLiteral(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

func intLiteral(e ast.Expr) (int, bool) {
	if e.Kind() != ast.LiteralKind {
		return 0, false
	}
	n, ok := e.AsLiteral().(types.Int)
	return int(n), ok && n < 1<<31
}

func isLiteral(e ast.Expr, b types.Bool) bool {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	v, ok := e.AsLiteral().(types.Bool)
	return ok && v == b
}

func isVariable(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == name
}

package filter

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
)

// within notes that a value at path is within one of ranges.
func (h *hinter) within(path string, ranges ...scalar.Range) {
	if strings.HasSuffix(path, "[*]") || strings.HasPrefix(path, labelsPath) {
		return // as in require; and labels are not indexed by their path
	}
	if p, err := rawjson.ParsePath(path); err == nil {
		h.hints.Ranges = append(h.hints.Ranges, cache.FieldRange{Path: p, Ranges: ranges})
	}
}

// member takes up calls of the form target.function(argument).
func (h *hinter) member(c ast.CallExpr) {
	if len(c.Args()) != 1 {
		return
	}
	switch target, arg := c.Target(), c.Args()[0]; c.FunctionName() {
	case "startsWith":
		if prefix, ok := stringLiteral(arg); ok && prefix != "" {
			h.compared(target, scalar.Prefixed(prefix))
		}
	case "isGreaterThan":
		h.quantities(operators.Greater, target, arg)
	case "isLessThan":
		h.quantities(operators.Less, target, arg)
	}
}

// ordered takes up a comparison with a constant on either side.
func (h *hinter) ordered(op string, left, right ast.Expr) {
	if c, ok := h.constant(right); ok {
		h.orderedBy(op, left, c)
	} else if c, ok := h.constant(left); ok {
		h.orderedBy(turned(op), right, c)
	}
}

// turned is the operator with its sides exchanged.
func turned(op string) string {
	switch op {
	case operators.Less:
		return operators.Greater
	case operators.LessEquals:
		return operators.GreaterEquals
	case operators.Greater:
		return operators.Less
	case operators.GreaterEquals:
		return operators.LessEquals
	default:
		return op
	}
}

func (h *hinter) orderedBy(op string, e ast.Expr, c ref.Val) {
	switch c := c.(type) {
	case types.Int:
		if left, right, ok := compareTo(e); ok && c == 0 {
			h.quantities(op, left, right)
			return
		}
		h.compared(e, pointRange(op, scalar.IntPoint(int64(c))))
	case types.Double:
		h.compared(e, pointRange(op, scalar.FloatPoint(float64(c))))
	case types.String:
		h.compared(e, textRange(op, string(c)))
	case types.Timestamp:
		h.times(op, e, c)
	case types.Duration:
		h.since(op, e, c)
	}
}

// times takes up timestamp(path) > time, also timestamp(path) + duration > time.
func (h *hinter) times(op string, e ast.Expr, t types.Timestamp) {
	if arg, ok := converted(e, "timestamp"); ok {
		h.compared(arg, pointRange(op, scalar.TimePoint(t.Time)))
		return
	}
	left, right, ok := operands(e, operators.Add)
	if !ok {
		return
	}
	if d, ok := h.duration(right); ok {
		h.orderedBy(op, left, t.Subtract(d))
	} else if d, ok := h.duration(left); ok {
		h.orderedBy(op, right, t.Subtract(d))
	}
}

func (h *hinter) duration(e ast.Expr) (types.Duration, bool) {
	c, _ := h.constant(e)
	d, ok := c.(types.Duration)
	return d, ok
}

// since takes up now - timestamp(path) > duration.
func (h *hinter) since(op string, e ast.Expr, d types.Duration) {
	left, right, ok := operands(e, operators.Subtract)
	if !ok {
		return
	}
	from, _ := h.constant(left)
	if t, ok := from.(types.Timestamp); ok {
		h.orderedBy(turned(op), right, t.Subtract(d))
	}
}

// operands are the two sides of an operator.
func operands(e ast.Expr, operator string) (left, right ast.Expr, ok bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operator || len(e.AsCall().Args()) != 2 {
		return nil, nil, false
	}
	args := e.AsCall().Args()
	return args[0], args[1], true
}

// compareTo takes apart left.compareTo(right).
func compareTo(e ast.Expr) (left, right ast.Expr, ok bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != "compareTo" || !e.AsCall().IsMemberFunction() || len(e.AsCall().Args()) != 1 {
		return nil, nil, false
	}
	return e.AsCall().Target(), e.AsCall().Args()[0], true
}

// quantities takes up a comparison of quantity(path) with quantity("1Gi").
func (h *hinter) quantities(op string, left, right ast.Expr) {
	a, ok := converted(left, "quantity")
	b, isToo := converted(right, "quantity")
	if !ok || !isToo {
		return
	}
	if text, ok := stringLiteral(b); ok {
		h.compared(a, pointRange(op, scalar.QuantityPoint(text)))
	} else if text, ok := stringLiteral(a); ok {
		h.compared(b, pointRange(turned(op), scalar.QuantityPoint(text)))
	}
}

// converted is x of function(x).
func converted(e ast.Expr, function string) (ast.Expr, bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != function || len(e.AsCall().Args()) != 1 {
		return nil, false
	}
	return e.AsCall().Args()[0], true
}

// compared notes that e, a path or path.orValue(default), is within r.
func (h *hinter) compared(e ast.Expr, r scalar.Range) {
	if r.Class == scalar.Unsure {
		return
	}
	path, ok := h.path(e)
	if isOrValue(e) {
		if fallback := e.AsCall().Args()[0]; h.mayMeet(r, fallback) {
			return // what has no value may match, too
		}
		path, ok = h.path(e.AsCall().Target())
	}
	if ok {
		h.within(path, r)
	}
}

// mayMeet reports whether a default may be within r.
func (h *hinter) mayMeet(r scalar.Range, fallback ast.Expr) bool {
	c, ok := h.constant(fallback)
	if !ok {
		return true
	}
	switch c := c.(type) {
	case types.String:
		return r.Class == scalar.Texts && r.HasText(string(c)) || r.Class != scalar.Texts && mayHave(r, scalar.PointOf(string(c)))
	case types.Int:
		return mayHave(r, scalar.IntPoint(int64(c)))
	case types.Double:
		return mayHave(r, scalar.FloatPoint(float64(c)))
	default:
		return true
	}
}

// mayHave is true of a Point in another class: it may be read as r wants it.
func mayHave(r scalar.Range, p scalar.Point) bool {
	return r.Class != scalar.Texts && (p.Class() != r.Class || r.Has(p))
}

func pointRange(op string, p scalar.Point) scalar.Range {
	return between(op, p.Class(), scalar.Bound{Point: p})
}

func textRange(op, text string) scalar.Range {
	return between(op, scalar.Texts, scalar.Bound{Text: text})
}

func between(op string, c scalar.Class, b scalar.Bound) scalar.Range {
	r := scalar.Range{Class: c}
	b.Open = op == operators.Less || op == operators.Greater
	if op != operators.Less && op != operators.LessEquals {
		r.Low = &b
	}
	if op != operators.Greater && op != operators.GreaterEquals {
		r.High = &b
	}
	return r
}

// inNumbers takes up path in [1, 2.5].
func (h *hinter) inNumbers(left ast.Expr, elements []ast.Expr) {
	var ranges []scalar.Range
	for _, e := range elements {
		one := hinter{scope: h.scope, now: h.now}
		if c, ok := h.constant(e); ok {
			one.orderedBy(operators.Equals, left, c)
		}
		if len(one.hints.Ranges) != 1 {
			return
		}
		ranges = append(ranges, one.hints.Ranges[0].Ranges...)
	}
	if path, ok := h.pathOf(left); ok {
		h.within(path, ranges...)
	}
}

// pathOf is the path of e or of the x in x.orValue(default).
func (h *hinter) pathOf(e ast.Expr) (string, bool) {
	if isOrValue(e) {
		e = e.AsCall().Target()
	}
	return h.path(e)
}

// constant is the value of an expression in which the object does not occur, as
// far as comparisons are made with such.
func (h *hinter) constant(e ast.Expr) (ref.Val, bool) {
	switch e.Kind() {
	case ast.LiteralKind:
		return e.AsLiteral(), true
	case ast.IdentKind:
		if _, shadowed := h.scope["now"]; e.AsIdent() == "now" && !shadowed {
			return h.now, true
		}
	case ast.CallKind:
		if v := h.computed(e.AsCall()); v != nil && !types.IsError(v) {
			return v, true
		}
	}
	return nil, false
}

// computed is the value of a call with constants, nil if it is not one of those
// that are known here.
func (h *hinter) computed(c ast.CallExpr) ref.Val {
	var args []ref.Val
	for _, e := range c.Args() {
		v, ok := h.constant(e)
		if !ok {
			return nil
		}
		args = append(args, v)
	}
	switch name := c.FunctionName(); {
	case name == "timestamp" && len(args) == 1:
		return args[0].ConvertToType(types.TimestampType)
	case name == "duration" && len(args) == 1:
		return args[0].ConvertToType(types.DurationType)
	case name == operators.Add && len(args) == 2:
		if a, ok := args[0].(traits.Adder); ok {
			return a.Add(args[1])
		}
	case name == operators.Subtract && len(args) == 2:
		if a, ok := args[0].(traits.Subtractor); ok {
			return a.Subtract(args[1])
		}
	}
	return nil
}

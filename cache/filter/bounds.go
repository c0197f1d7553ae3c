package filter

import (
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// Kubernetes' cost model charges a call after it was made, and some by the size of
// their input only: replace() may make gigabytes of a few bytes, and comparing lists
// whose elements are the same list again takes time that doubles with each level. What
// can do that is asked beforehand how much work it would be, and refused if that alone
// is more than an evaluation may cost. Afterwards it is charged as much.

// work is an upper bound of what a call costs, in units of the cost model, each about
// a tenth of a microsecond or ten bytes. Beyond MaxCost it need not be exact.
type work func(args []ref.Val) uint64

// works are those of functions that cost more than their arguments look like.
var works = map[string]work{
	operators.Equals:        equalWork,
	operators.NotEquals:     equalWork,
	operators.In:            elementWork,
	operators.Add:           addWork,
	"replace":               replaceWork,
	"split":                 splitWork,
	"join":                  joinWork,
	"format":                formatWork,
	"indexOf":               indexWork,
	"lastIndexOf":           indexWork,
	"size":                  sizeWork,
	"substring":             allWork,
	"charAt":                allWork,
	"trim":                  allWork,
	"reverse":               allWork,
	"lowerAscii":            allWork,
	"upperAscii":            allWork,
	"strings.quote":         allWork,
	"string":                allWork,
	"bytes":                 allWork,
	"flatten":               allWork,
	"sort":                  allWork,
	"@sortByAssociatedKeys": allWork,
	"isSorted":              allWork,
	"sum":                   allWork,
	"min":                   allWork,
	"max":                   allWork,
	"lists.range":           rangeWork,
	"distinct":              distinctWork,
	"sets.contains":         setsWork,
	"sets.equivalent":       setsWork,
	"sets.intersects":       setsWork,
	"validate":              validateWork,
	"health":                judgeWork,
	"healthReason":          judgeWork,
}

func allWork(args []ref.Val) uint64 {
	total := uint64(1)
	for _, a := range args {
		total += weight(a)
	}
	return total
}

// equalWork: two values are compared as far as the smaller one goes.
func equalWork(args []ref.Val) uint64 { return min(weight(args[0]), weight(args[1])) }

// elementWork is that of x in y: of a list, each element is compared with x.
func elementWork(args []ref.Val) uint64 {
	if l, ok := args[1].(traits.Lister); ok {
		return 1 + weight(l)
	}
	return 1
}

// addWork: lists are joined without looking at their elements.
func addWork(args []ref.Val) uint64 {
	if isContainer(args[0]) {
		return 1
	}
	return weight(args[0]) + weight(args[1])
}

func replaceWork(args []ref.Val) uint64 {
	s, old, with := textLen(args[0]), textLen(args[1]), textLen(args[2])
	times := times(s, old)
	if len(args) > 3 {
		times = limited(times, args[3])
	}
	return charged(s) + charged(times*with)
}

func splitWork(args []ref.Val) uint64 {
	s := textLen(args[0])
	pieces := times(s, textLen(args[1]))
	if len(args) > 2 {
		pieces = limited(pieces, args[2])
	}
	return charged(s) + 4*pieces
}

// times is how often a text can occur in another, the empty one between all characters.
func times(s, part uint64) uint64 {
	if part == 0 {
		return s + 1
	}
	return s / part
}

// limited is n, or the limit that a call gives.
func limited(n uint64, limit ref.Val) uint64 {
	if l, ok := limit.(types.Int); ok && l >= 0 {
		return min(n, uint64(l))
	}
	return n
}

func joinWork(args []ref.Val) uint64 {
	total := weight(args[0])
	if l, ok := args[0].(traits.Lister); ok && len(args) > 1 && total <= MaxCost {
		total += charged(sizeOf(l) * textLen(args[1]))
	}
	return total
}

// formatWork: numbers are written with as many digits as is asked for.
func formatWork(args []ref.Val) uint64 {
	total := weight(args[0]) + 8*weight(args[1])
	digits := uint64(0)
	text, _ := args[0].(types.String)
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9' && digits <= MaxCost:
			digits = digits*10 + uint64(c-'0')
		case c < '0' || c > '9':
			total += charged(digits)
			digits = 0
		}
	}
	return total
}

// indexWork: texts are compared at every place, lists element by element.
func indexWork(args []ref.Val) uint64 {
	if isContainer(args[0]) {
		return 1 + weight(args[0])
	}
	s, part := textLen(args[0]), textLen(args[1])
	return charged(s) + charged(part) + s*min(part, s)/100
}

func sizeWork(args []ref.Val) uint64 {
	if isContainer(args[0]) {
		return 1
	}
	return weight(args[0])
}

func rangeWork(args []ref.Val) uint64 {
	if n, ok := args[0].(types.Int); ok && n > 0 {
		return 1 + uint64(n)
	}
	return 1
}

// distinctWork: each element is compared with all before it.
func distinctWork(args []ref.Val) uint64 {
	return product(args[0], args[0])
}

func setsWork(args []ref.Val) uint64 {
	return min(beyond, product(args[0], args[1])+product(args[1], args[0]))
}

// product is the work of comparing each element of a list with all of another. Most
// comparisons take less than a unit.
func product(a, b ref.Val) uint64 {
	l, ok := a.(traits.Lister)
	if !ok {
		return 1
	}
	n, w := sizeOf(l), weight(b)
	if n > 0 && w > 10*beyond/n {
		return beyond
	}
	return 1 + n*w/10
}

// validateWork is that of a named format: a regular expression of some hundred steps.
func validateWork(args []ref.Val) uint64 { return 1 + 5*textLen(args[1]) }

// costs is Kubernetes' cost model, but for works.
type costs struct{ library.CostEstimator }

// CallCost implements interpreter.ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if w := works[function]; w != nil {
		cost := w(args)
		return &cost
	}
	return c.CostEstimator.CallCost(function, overload, args, result)
}

// boundedCall is a call that is not made if it is too much work.
type boundedCall struct {
	interpreter.InterpretableCall
	args []interpreter.InterpretableV2
	work work
	make func([]ref.Val) ref.Val
}

// Args implements interpreter.InterpretableCall.
func (b *boundedCall) Args() []interpreter.InterpretableV2 { return b.args }

// Eval implements interpreter.Interpretable.
func (b *boundedCall) Eval(vars interpreter.Activation) ref.Val {
	return b.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (b *boundedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var few [4]ref.Val
	args := few[:0]
	for _, a := range b.args {
		v := a.Exec(frame)
		if types.IsUnknownOrError(v) {
			return v
		}
		args = append(args, v)
	}
	switch w := b.work(args); {
	case w > MaxCost:
		tooExpensive()
	case w > muchWork:
		yield(frame)
	}
	return b.make(args)
}

// tooExpensive ends an evaluation as its cost limit does.
func tooExpensive() {
	panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "a call would exceed the cost limit"})
}

// bounded returns a decorator that puts bounds on calls.
func bounded(implementations map[string]functions.FunctionOp) interpreter.InterpretableDecoratorV2 {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok {
			return i, nil
		}
		if isRegexp(call.Function()) {
			return boundRegexp(call)
		}
		w := works[call.Function()]
		if w == nil {
			return i, nil
		}
		b := &boundedCall{InterpretableCall: call, args: call.Args(), work: w}
		switch call.Function() {
		case operators.Equals:
			b.make = func(args []ref.Val) ref.Val { return types.Equal(args[0], args[1]) }
		case operators.NotEquals:
			b.make = func(args []ref.Val) ref.Val { return types.Bool(types.Equal(args[0], args[1]) != types.True) }
		default:
			impl := implementations[call.OverloadID()]
			if impl == nil {
				impl = implementations[call.Function()]
			}
			if impl == nil {
				return i, nil
			}
			b.make = func(args []ref.Val) ref.Val { return impl(args...) }
		}
		return b, nil
	}
}

package filter

import (
	"encoding/json"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/informerd/informerd/cache/health"
)

// healthFunctions are health(object), which is good, progressing, bad or unknown, and
// healthReason(object), a word. Both are of a time, so that each stands for a call with
// the time of the question.
func healthFunctions() []cel.EnvOption {
	var all []cel.EnvOption
	for name, of := range map[string]func(health.Health) string{
		"health":       func(h health.Health) string { return h.Status.String() },
		"healthReason": func(h health.Health) string { return h.Reason },
	} {
		judge := func(object, now ref.Val) ref.Val { return judged(object, now, of) }
		all = append(all,
			cel.Macros(cel.GlobalMacro(name, 1, func(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
				return f.NewCall(name, args[0], f.NewIdent("now")), nil
			})),
			cel.Function(name, cel.Overload(name+"_dyn_timestamp", []*cel.Type{cel.DynType, cel.TimestampType}, cel.StringType, cel.BinaryBinding(judge))),
		)
	}
	return all
}

// judged is what the verdict on an object is called.
func judged(object, now ref.Val, of func(health.Health) string) ref.Val {
	at, ok := now.(types.Timestamp)
	if !ok {
		return types.MaybeNoSuchOverloadErr(now)
	}
	var raw []byte
	switch v := object.(type) {
	case *jsonMap:
		if v.lookup("kind") == nil {
			return types.NewErr("this is a part of an object and has no health: write health(object)")
		}
		raw = v.raw
	default:
		native, err := json.Marshal(v.Value())
		if decoded, isMap := v.Value().(map[string]any); err != nil || !isMap || decoded["kind"] == nil {
			return types.NewErr("this is a part of an object and has no health: write health(object)")
		}
		raw = native
	}
	return types.String(of(health.Of(raw, at.Time)))
}

// judgeWork: an object is gone through about once, much faster than by an expression.
func judgeWork(args []ref.Val) uint64 {
	if m, ok := args[0].(*jsonMap); ok {
		return 1 + charged(uint64(len(m.raw)))/4
	}
	return weight(args[0])
}

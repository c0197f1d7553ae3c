package filter

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// languageVersion is the Kubernetes version whose CEL is spoken.
var languageVersion = version.MajorMinor(1, 36)

// implementations are the functions of the language, by overload and by name.
var implementations = sync.OnceValues(func() (map[string]functions.FunctionOp, error) {
	env, err := language()
	if err != nil {
		return nil, err
	}
	all := map[string]functions.FunctionOp{}
	for _, f := range env.Functions() {
		overloads, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		for _, o := range overloads {
			all[o.Operator] = callOf(o)
		}
	}
	return all, nil
})

// callOf calls an overload with any number of arguments.
func callOf(o *functions.Overload) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		switch {
		case len(args) == 1 && o.Unary != nil:
			return o.Unary(args[0])
		case len(args) == 2 && o.Binary != nil:
			return o.Binary(args[0], args[1])
		case o.Function != nil:
			return o.Function(args...)
		}
		return types.NoSuchOverloadErr()
	}
}

// language is the environment of every expression; making it takes some
// milliseconds.
var language = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(languageVersion).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: append([]cel.EnvOption{
			cel.Variable("object", cel.DynType),
			cel.Variable("now", cel.TimestampType),
			cel.Macros(cel.GlobalMacro("age", 1, expandAge)),
			quantityFunction(),
			isQuantityFunction(),
		}, healthFunctions()...),
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
})

// changeLanguage is that of conditions on a change, which know what was before.
var changeLanguage = sync.OnceValues(func() (*cel.Env, error) {
	env, err := language()
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.Variable("old", cel.DynType))
})

// expandAge writes age(x) as now - timestamp(x.metadata.creationTimestamp).
func expandAge(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	created := f.NewSelect(f.NewSelect(args[0], "metadata"), "creationTimestamp")
	return f.NewCall(operators.Subtract, f.NewIdent("now"), f.NewCall("timestamp", created)), nil
}

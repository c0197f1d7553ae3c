package filter

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// languageVersion is the Kubernetes version whose CEL is spoken.
var languageVersion = version.MajorMinor(1, 36)

// language is the environment of every expression; making it takes some
// milliseconds.
var language = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(languageVersion).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("object", cel.DynType),
			cel.Variable("now", cel.TimestampType),
			cel.Macros(cel.GlobalMacro("age", 1, expandAge)),
			quantityFunction(),
		},
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
})

// expandAge writes age(x) as now - timestamp(x.metadata.creationTimestamp).
func expandAge(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	created := f.NewSelect(f.NewSelect(args[0], "metadata"), "creationTimestamp")
	return f.NewCall(operators.Subtract, f.NewIdent("now"), f.NewCall("timestamp", created)), nil
}

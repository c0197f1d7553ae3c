package filter

import (
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// ofIdentity reports whether an expression reads nothing of object but what
// cache.OfIdentity is about, and that by name: what is found in another way, such as
// object["metadata"], may be anything. A variable of a loop that is called object, too, is
// taken for it.
func ofIdentity(e ast.Expr) bool {
	if e.Kind() == ast.SelectKind {
		if path, ok := memberPath(e); ok && cache.IdentityOf([]rawjson.Path{path}) != 0 {
			return true
		}
	}
	if e.Kind() == ast.IdentKind {
		return strings.TrimPrefix(e.AsIdent(), ".") != "object"
	}
	all := parts(e)
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		all = []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	for _, part := range all {
		if !ofIdentity(part) {
			return false
		}
	}
	return true
}

// memberPath is the path of object.a.b, ok if it is one.
func memberPath(e ast.Expr) (_ rawjson.Path, ok bool) {
	var names []string
	for ; e.Kind() == ast.SelectKind; e = e.AsSelect().Operand() {
		names = append([]string{e.AsSelect().FieldName()}, names...)
	}
	if e.Kind() != ast.IdentKind || strings.TrimPrefix(e.AsIdent(), ".") != "object" {
		return rawjson.Path{}, false
	}
	path, err := rawjson.ParsePath(strings.Join(names, "."))
	return path, err == nil
}

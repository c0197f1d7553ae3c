package filter

import (
	"cmp"
	"slices"

	"github.com/google/cel-go/common/ast"
)

// reads reports whether an expression reads a variable that it is given.
func reads(e ast.Expr, variable string) bool { return read(e, variable) != nil }

// read returns where an expression reads a variable that it is given, nil if it does not. One
// of a loop that has the same name is another.
func read(e ast.Expr, variable string) ast.Expr {
	switch e.Kind() {
	case ast.IdentKind:
		if e.AsIdent() == variable || e.AsIdent() == "."+variable {
			return e
		}
	case ast.ComprehensionKind:
		return readByLoop(e.AsComprehension(), variable)
	}
	for _, part := range parts(e) {
		if at := read(part, variable); at != nil {
			return at
		}
	}
	return nil
}

// readByLoop is read of a loop: its variables are there in what is done with each element,
// and what it adds up also in its result.
func readByLoop(c ast.ComprehensionExpr, variable string) ast.Expr {
	// What is written as .now is the one that is given, whatever a loop calls its own.
	within := func(own ...string) string {
		if slices.Contains(own, variable) {
			return "." + variable
		}
		return variable
	}
	step := within(c.IterVar(), c.IterVar2(), c.AccuVar())
	return cmp.Or(read(c.IterRange(), variable), read(c.AccuInit(), variable),
		read(c.LoopCondition(), step), read(c.LoopStep(), step), read(c.Result(), within(c.AccuVar())))
}

// parts are the expressions of which another one is made, but for those of a loop.
func parts(e ast.Expr) (all []ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			all = []ast.Expr{e.AsCall().Target()}
		}
		all = append(all, e.AsCall().Args()...)
	case ast.ListKind:
		all = e.AsList().Elements()
	case ast.SelectKind:
		all = []ast.Expr{e.AsSelect().Operand()}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			all = append(all, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			all = append(all, field.AsStructField().Value())
		}
	}
	return all
}

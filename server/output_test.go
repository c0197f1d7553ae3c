package server

import (
	"strings"
	"testing"
)

// TestNotFormula: a spreadsheet runs what begins like a formula, and leaves numbers be.
func TestNotFormula(t *testing.T) {
	for cell, want := range map[string]string{
		"": "", "web": "web", "-5": "-5", "+1.5e3": "+1.5e3", "=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "-1+cmd|' /C calc'!A0": "'-1+cmd|' /C calc'!A0",
		"-x": "'-x", "\t=1": "'\t=1", "\r=1": "'\r=1", "a=1": "a=1",
	} {
		if got := notFormula(cell); got != want {
			t.Errorf("notFormula(%q) = %q, want %q", cell, got, want)
		}
	}
}

// TestOneLine: a table is shown in a terminal, which takes orders from characters.
func TestOneLine(t *testing.T) {
	const orders = "\x1b[2J\u009b31m\a\u202e\u2066\n\t\x7f"
	if got := oneLine("a" + orders + "b"); strings.ContainsAny(got, orders[:1]+"\u009b\a\u202e\u2066\n\t\x7f") || !strings.HasPrefix(got, "a ") || !strings.HasSuffix(got, " b") {
		t.Errorf("%q", got)
	}
	if got := oneLine("naïve 名前 ☸"); got != "naïve 名前 ☸" {
		t.Errorf("%q", got)
	}
}

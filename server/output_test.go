package server

import (
	"fmt"
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

// TestFormulasInOutput: in CSV they are made harmless, line by line, and for people they are left
// as they are.
func TestFormulasInOutput(t *testing.T) {
	w := newWorld(t)
	var all []string
	for i, text := range []string{"=1+1", "plain", "@SUM(A1)"} {
		all = append(all, strings.Replace(pod("a", fmt.Sprint("p", i), "web", "n1", i+1), `"status":{`, fmt.Sprintf(`"status":{"text":%q,`, text), 1))
	}
	w.pods.replace(t, "9", all...)
	const q = "/v1/query?resources=pods&fields=metadata.name,status.text&output="
	if got, want := w.get(t, q+"csv").Body.String(), "metadata.name,status.text\r\np0,'=1+1\r\np1,plain\r\np2,'@SUM(A1)\r\n"; got != want {
		t.Errorf("as CSV: %q, want %q", got, want)
	}
	if got := w.get(t, q+"table").Body.String(); !strings.Contains(got, " =1+1\n") || !strings.Contains(got, " @SUM(A1)\n") {
		t.Errorf("as text: %s", got)
	}
}

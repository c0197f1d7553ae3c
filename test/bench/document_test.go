package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInsert(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# Before\n" + docBegin + "old\n" + docEnd + "\nafter\n")
	for range 2 { // again: nothing piles up
		if err := testReport().insert(file); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	testReport().print(&table)
	if want := "# Before\n" + docBegin + table.String() + docEnd + "\nafter\n"; string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	write("no marks\n")
	if err := testReport().insert(file); err == nil {
		t.Error("a document without marks is accepted")
	}
}

// A report that was saved is read as it was, so that it can be drawn again.
func TestReadReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.json")
	if err := testReport().save(file); err != nil {
		t.Fatal(err)
	}
	r, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	var got, want strings.Builder
	r.print(&got)
	testReport().print(&want)
	if got.String() != want.String() {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want.String())
	}
	if string(r.picture()) != string(testReport().picture()) {
		t.Error("the picture is another one")
	}
}

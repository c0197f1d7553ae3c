package main

import (
	"bytes"
	"fmt"
	"os"
)

// The marks in a document between which its table is.
const (
	docBegin = "<!-- bench:begin: the output of make bench -->\n"
	docEnd   = "<!-- bench:end -->"
)

// insert replaces the table in a document.
func (r *report) insert(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("update document: %w", err)
	}
	before, rest, begins := bytes.Cut(text, []byte(docBegin))
	_, after, ends := bytes.Cut(rest, []byte(docEnd))
	if !begins || !ends {
		return fmt.Errorf("update document: %s has no marks for the table", file)
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(docBegin)
	r.print(&out)
	out.WriteString(docEnd)
	out.Write(after)
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("update document: %w", err)
	}
	logf("table written into %s", file)
	return nil
}

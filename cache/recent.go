package cache

import (
	"sync"

	"github.com/informerd/informerd/cache/rawjson"
)

// maxRecent is how many terms of an object are remembered for the next one.
const maxRecent = 64

// recent reads one object after the other, and knows the terms of the one before: objects of a
// list that follow each other have most of them in common, and to look up what is known is a
// fraction of what it takes to intern it. It belongs to one goroutine at a time.
type recent struct {
	doc      rawjson.Document
	siblings rawjson.Siblings
	terms    []recentTerm
	common   *commonTerms // of the object before
	text     []byte       // reused
	handles  []handle     // reused
}

// recentTerm is a term and what it is of.
type recentTerm struct {
	of     Term
	handle handle
}

var recents = sync.Pool{New: func() any { return new(recent) }}

// intern is the term in place i of an object.
func (r *recent) intern(i int, index string, value []byte) handle {
	if i < len(r.terms) && r.terms[i].of.Index == index && r.terms[i].of.Value == string(value) {
		return r.terms[i].handle
	}
	h := intern(index, string(value))
	switch t := (recentTerm{h.Value(), h}); {
	case i < len(r.terms):
		r.terms[i] = t
	case i == len(r.terms) && i < maxRecent:
		r.terms = append(r.terms, t)
	}
	return h
}

package cache

import (
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
)

// verdictsKept is for how many questions a column keeps what they found out.
const verdictsKept = 4

// verdicts are what one question has found out of the texts of a column, so that who asks it
// again, as a page does that is looked at, is not told by testing them again. Any goroutine may
// use it.
type verdicts struct {
	question string
	bits     []atomic.Uint32 // for each text two: whether it is known, and whether it matches
}

// perWord is how many texts one word of bits is of.
const perWord = 16

func newVerdicts(question string, texts int) *verdicts {
	return &verdicts{question, make([]atomic.Uint32, texts/perWord+1)}
}

// of is what is known of a text.
func (v *verdicts) of(code uint32) (found outcome, known bool) {
	if int(code/perWord) >= len(v.bits) {
		return other, false
	}
	word := v.bits[code/perWord].Load() >> (code % perWord * 2)
	if word&2 != 0 {
		found = matches
	}
	return found, word&1 != 0
}

// note enters what was found out of a text, if there is a place for it.
func (v *verdicts) note(code uint32, found outcome) {
	if code == 0 || found == faulted || int(code/perWord) >= len(v.bits) {
		return
	}
	word := uint32(1)
	if found == matches {
		word |= 2
	}
	v.bits[code/perWord].Or(word << (code % perWord * 2))
}

// count is how many texts are known, and how many of them match.
func (v *verdicts) count() (known, matching int) {
	const each = 0x55555555 // of two bits the first
	for i := range v.bits {
		word := v.bits[i].Load()
		known += bits.OnesCount32(word & each)
		matching += bits.OnesCount32(word >> 1 & each)
	}
	return known, matching
}

// grown has room for so many texts.
func (v *verdicts) grown(texts int) *verdicts {
	if texts/perWord < len(v.bits) {
		return v
	}
	larger := newVerdicts(v.question, texts+texts/4)
	for i := range v.bits {
		larger.bits[i].Store(v.bits[i].Load())
	}
	return larger
}

// verdicts are those of a question; nil: the texts have other numbers now.
func (at *columnAt) verdicts(question string) *verdicts {
	c := at.column
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbering != at.numbering {
		return nil
	}
	i := slices.IndexFunc(c.known, func(v *verdicts) bool { return v.question == question })
	var v *verdicts
	if i < 0 {
		v = newVerdicts(question, at.texts.len())
		c.known = c.known[:min(len(c.known), verdictsKept-1)]
	} else {
		v = c.known[i].grown(at.texts.len())
		c.known = slices.Delete(c.known, i, i+1)
	}
	c.known = slices.Insert(c.known, 0, v)
	return v
}

// question tells scanners apart of which each always finds out the same of the same text;
// empty: it does not, or is not told apart.
func (s scanner) question() string {
	requirements := FieldSelector{s.requirements}.String()
	switch {
	case len(s.terms) > 0 || s.filter != nil && s.filter.Clock():
		return ""
	case s.filter == nil:
		return requirements
	default:
		return fmt.Sprintf("%q %q", requirements, s.filter)
	}
}

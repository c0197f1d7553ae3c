package rawjson

import (
	"bytes"
	"slices"
)

// label notes a label; a value that is no string is nil until uniquePairs.
func (d *Document) label(key []byte, value, end int) {
	var text []byte
	switch d.src[value] {
	case '"':
		text = d.text(d.src[value+1:end-1], false)
	case 'n':
		text = d.src[value:value]
	}
	d.Labels = append(d.Labels, Pair{Key: key, Value: text})
}

// uniquePairs leaves of each key the last pair, and nothing at all if one of
// those has no text.
func uniquePairs(pairs []Pair) []Pair {
	const few = 24
	var out []Pair
	if len(pairs) <= few {
		out = uniqueFew(pairs)
	} else {
		out = uniqueMany(pairs)
	}
	for _, p := range out {
		if p.Value == nil {
			return out[:0]
		}
	}
	return out
}

func uniqueFew(pairs []Pair) []Pair {
	return slices.DeleteFunc(pairs, func() func(Pair) bool {
		i := -1
		return func(p Pair) bool {
			i++
			for _, q := range pairs[i+1:] {
				if bytes.Equal(p.Key, q.Key) {
					return true
				}
			}
			return false
		}
	}())
}

func uniqueMany(pairs []Pair) []Pair {
	at := make(map[string]int, len(pairs))
	for i, p := range pairs {
		at[string(p.Key)] = i
	}
	if len(at) == len(pairs) {
		return pairs
	}
	out := pairs[:0]
	for i, p := range pairs {
		if at[string(p.Key)] == i {
			out = append(out, p)
		}
	}
	return out
}

// allStrings reports whether the object in [i,end), which has been read, holds
// only strings and nulls once the last of each key is taken.
func (d *Document) allStrings(i, end int) bool {
	labels := d.Labels
	d.Labels = nil
	for i = skipSpace(d.src, i+1); i < end-1; {
		key := i
		i = skipString(d.src, i+1)
		name := d.text(d.src[key+1:i-1], false)
		i = skipColon(d.src, i)
		value := i
		i = skipValue(d.src, i, 0)
		d.label(name, value, i)
		i = skipSpace(d.src, i)
		i = skipSpace(d.src, i+1)
	}
	ok := len(uniquePairs(d.Labels)) > 0
	d.Labels = labels
	return ok
}

package cache

import "bytes"

// counterpart is what is held under the key of o, which has been decoded: by the Store that s is a
// Successor of, or, if o is of a list, by s. nil: nothing, or it is not asked for.
func (s *Store) counterpart(o *Object, listed bool) *Object {
	of := s.forerunner.Load()
	if of == nil && listed {
		of = s
	}
	if of == nil {
		return nil
	}
	of.mu.RLock()
	defer of.mu.RUnlock()
	return of.contents.find(o)
}

// borrow has o, of which nobody else knows yet, have what it has in common with held in the memory
// of that. It reports whether that is the JSON, too, which is to be plain, so that nothing is left
// to pack.
func (o *Object) borrow(held *Object, plain []byte) bool {
	if o.text == held.text {
		o.text = held.text // the memory
	}
	if o.repeats(held) {
		o.common = held.common
	}
	if sameHandles(o.terms().own, held.terms().own) {
		o.own = held.own
	}
	if !o.sameIdentity(held) || !held.hasJSON(plain) {
		return false
	}
	o.setData(held.data(), held.dict)
	return true
}

// hasJSON reports whether plain is the JSON of o as it is held.
func (o *Object) hasJSON(plain []byte) bool {
	if int(o.size) != len(plain) {
		return false
	}
	buf := buffers.get()
	json, err := o.appendData((*buf)[:0])
	defer buffers.put(buf, json)
	return err == nil && bytes.Equal(json, plain)
}

package cache

import "bytes"

// counterpart is what is held under the key of o, which has been decoded: if it is of a list, by s, or
// else by the Store that s is a Successor of; nil: nothing, or it is not asked for. packed says
// whether what it is packed with may be used by s.
func (s *Store) counterpart(o *Object, listed bool) (held *Object, packed bool) {
	if listed {
		if held = s.heldIn(o); held != nil {
			return held, true
		}
	}
	if before := s.forerunner.Load(); before != nil {
		return before.heldIn(o), s.lends
	}
	return nil, false
}

// heldIn is what is held under the key of o.
func (s *Store) heldIn(o *Object) *Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contents.find(o)
}

// borrow has o, of which nobody else knows yet, have what it has in common with held in the memory
// of that. It reports whether that is the JSON, too, which is to be plain, so that nothing is left
// to pack. packed: also where it is packed with something.
func (o *Object) borrow(held *Object, plain []byte, packed bool) bool {
	if o.text == held.text {
		o.text = held.text // the memory
	}
	if o.repeats(held) {
		o.common = held.common
	}
	if sameHandles(o.terms().own, held.terms().own) {
		o.own = held.own
	}
	if !packed && held.dict != nil || !o.sameIdentity(held) || !held.hasJSON(plain) {
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

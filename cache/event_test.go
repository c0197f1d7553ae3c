package cache

import "testing"

func TestThrough(t *testing.T) {
	s := newStore(t, thingSpec)
	in, in2 := decodeSimple(t, s, "a", "x", 1), decodeSimple(t, s, "a", "x", 2)
	out, out2 := decodeSimple(t, s, "a", "x", 11), decodeSimple(t, s, "a", "x", 12)
	match := func(o *Object) (bool, error) { return len(o.ResourceVersion()) == 1, nil }
	for name, c := range map[string]struct {
		event  Event
		typ    EventType
		object *Object
	}{
		"new":            {Event{Type: Added, Object: in}, Added, in},
		"new elsewhere":  {Event{Type: Added, Object: out}, "", nil},
		"stays":          {Event{Type: Modified, Old: in, Object: in2}, Modified, in2},
		"enters":         {Event{Type: Modified, Old: out, Object: in}, Added, in},
		"leaves":         {Event{Type: Modified, Old: in, Object: out}, Deleted, in},
		"stays out":      {Event{Type: Modified, Old: out, Object: out2}, "", nil},
		"goes":           {Event{Type: Deleted, Old: in, Object: in2}, Deleted, in2},
		"goes, found so": {Event{Type: Deleted, Object: in}, Deleted, in},
		"was out, goes":  {Event{Type: Deleted, Old: out, Object: in}, "", nil},
	} {
		typ, o, err := c.event.Through(match)
		if typ != c.typ || o != c.object || err != nil {
			t.Errorf("%s: %s %v, %v", name, typ, o, err)
		}
	}
}

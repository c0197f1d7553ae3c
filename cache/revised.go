package cache

import (
	"math"
	"slices"

	"github.com/informerd/informerd/cache/rawjson"
)

// at returns o as it is told with another resourceVersion: that of its deletion,
// which no server sent. Identity and JSON carry that version. The JSON as held is
// shared with o, and changed only for who reads it. An object that has no version
// stays as it is, and so does every object for version "".
func (o *Object) at(version string) *Object {
	was := o.heldVersion()
	if version == "" || was == "" || version == o.ResourceVersion() || len(was) > math.MaxUint8 {
		return o
	}
	c := *o
	c.setIdentity(identity{o.Namespace(), o.Name(), o.UID(), version + was})
	c.was = uint8(len(was))
	return &c
}

// heldVersion is the resourceVersion in the JSON as held.
func (o *Object) heldVersion() string {
	if o.was > 0 {
		return o.text[len(o.text)-int(o.was):]
	}
	return o.ResourceVersion()
}

// appendRevised appends the plain JSON with the object's resourceVersion instead
// of the one it is held with.
func (o *Object) appendRevised(dst []byte) ([]byte, error) {
	before := len(dst)
	dst, err := o.appendData(slices.Grow(dst, max(o.Size(), int(o.size))))
	if err != nil {
		return dst[:before], err
	}
	plain := dst[before:]
	start, end, ok := rawjson.Member(plain, "metadata", "resourceVersion")
	if !ok || string(plain[start:end]) != `"`+o.heldVersion()+`"` {
		return dst, nil // written in escapes, which no API server does
	}
	return slices.Replace(dst, before+start+1, before+end-1, []byte(o.ResourceVersion())...), nil
}

// sharesData reports whether a and b refer to the same bytes.
func sharesData(a, b *Object) bool {
	return a.packedLen > 0 && b.packedLen > 0 && a.packed == b.packed
}

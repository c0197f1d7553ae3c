package cache

const (
	// againLongest is the longest JSON that Again remembers: what is read of objects is much
	// shorter than they are where many have the same.
	againLongest = 512
	// againBytes is how much JSON it remembers, with againEntry for what holds each: many may
	// ask at once.
	againBytes = 1 << 20
	againEntry = 64
	// againTried is after how many lookups it gives up if less than an eighth were of use:
	// objects come in the order of names, and those of one name share less than others do.
	againTried = 4096
)

// Again remembers what was made of the JSON of the objects before: of as much of it as a
// question is about, such as nodes and phases, many objects have the same. What is made of it
// must depend on nothing else. The zero value is ready, and belongs to one goroutine.
type Again[V any] struct {
	known       map[string]V
	bytes       int
	asked, hits int
	off         bool
}

// Get is what was made of the same JSON before.
func (a *Again[V]) Get(json []byte) (v V, ok bool) {
	if a.off || len(json) > againLongest {
		return v, false
	}
	v, ok = a.known[string(json)]
	if ok {
		a.hits++
	}
	if a.asked++; a.asked%againTried == 0 && 8*a.hits < a.asked {
		a.off, a.known = true, nil
	}
	return v, ok
}

// Put remembers v, if there is room. It is of use after Get has found nothing.
func (a *Again[V]) Put(json []byte, v V) {
	if !a.Wants(json) {
		return
	}
	if a.known == nil {
		a.known = map[string]V{}
	}
	a.known[string(json)] = v
	a.bytes += len(json) + againEntry
}

// Wants reports whether Put would remember something.
func (a *Again[V]) Wants(json []byte) bool {
	return !a.off && len(json) <= againLongest && a.bytes < againBytes
}

package cache

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"weak"
)

// part is what a Scope sees that does not see all. It is immutable, and one for all
// Scopes that see the same.
type part struct {
	namespaces map[string]struct{} // seen whole
	// names are seen one by one, by namespace. Those of "" are names in every
	// namespace, and of objects at cluster scope: a ClusterRole with resourceNames
	// that is bound for the whole cluster grants just that.
	names  map[string]map[string]struct{}
	digest string // of all above

	// handles are what indexes know the namespaces by. To find them takes longer than to
	// look them up, so that it is done once for all Stores.
	handles func() []handle
}

// nothing is the part of a Scope that sees nothing.
var nothing = newPart(nil, nil)

func newPart(namespaces []string, names map[string][]string) *part {
	p := &part{}
	for _, ns := range namespaces {
		if p.namespaces == nil {
			p.namespaces = make(map[string]struct{}, len(namespaces))
		}
		p.namespaces[ns] = struct{}{}
	}
	for ns, list := range names {
		for _, name := range list {
			if p.names == nil {
				p.names = map[string]map[string]struct{}{}
			}
			if p.names[ns] == nil {
				p.names[ns] = make(map[string]struct{}, len(list))
			}
			p.names[ns][name] = struct{}{}
		}
	}
	p.shorten()
	p.digest = p.sum()
	p.handles = sync.OnceValue(p.intern)
	return p
}

// shorten leaves out names of what is seen anyway.
func (p *part) shorten() {
	for ns, list := range p.names {
		whole := ns != "" && p.whole(ns) // names of "" are names elsewhere, too
		maps.DeleteFunc(list, func(name string, _ struct{}) bool {
			_, everywhere := p.names[""][name]
			return whole || ns != "" && everywhere
		})
		if len(list) == 0 {
			delete(p.names, ns)
		}
	}
}

func (p *part) empty() bool { return len(p.namespaces) == 0 && len(p.names) == 0 }

func (p *part) whole(namespace string) bool {
	_, ok := p.namespaces[namespace]
	return ok
}

func (p *part) sees(k Key) bool {
	if p.whole(k.Namespace) {
		return true
	}
	if len(p.names) == 0 {
		return false
	}
	if _, ok := p.names[k.Namespace][k.Name]; ok {
		return true
	}
	_, ok := p.names[""][k.Name]
	return ok
}

func (p *part) intern() []handle {
	handles := make([]handle, 0, len(p.namespaces))
	for ns := range p.namespaces {
		handles = append(handles, intern(NamespaceIndex, ns))
	}
	return handles
}

// sum is of texts that each say how long they are: nobody checks the resourceNames of a
// role, so that a name may look like the end of one and the beginning of the next.
func (p *part) sum() string {
	var b []byte
	add := func(kind byte, text string) {
		b = append(b, kind)
		b = strconv.AppendInt(b, int64(len(text)), 10)
		b = append(append(b, ':'), text...)
	}
	for _, ns := range slices.Sorted(maps.Keys(p.namespaces)) {
		add('s', ns)
	}
	for _, ns := range slices.Sorted(maps.Keys(p.names)) {
		add('n', ns)
		for _, name := range slices.Sorted(maps.Keys(p.names[ns])) {
			add('o', name)
		}
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// parts are those that somebody holds. Most resources are granted in the same namespaces,
// and what may be seen of each is asked anew all the time: without them a Store for each
// resource would hold a thousand namespaces of its own for each reader.
var parts sharedParts

// sharedParts are parts by their digests. They go when nobody holds them.
type sharedParts struct {
	mu       sync.Mutex // guards byDigest
	byDigest map[string]weak.Pointer[part]
}

// share is the part that stands for all that see the same as p.
func (s *sharedParts) share(p *part) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.byDigest[p.digest].Value(); held != nil {
		return held
	}
	if s.byDigest == nil {
		s.byDigest = map[string]weak.Pointer[part]{}
	}
	s.byDigest[p.digest] = weak.Make(p)
	runtime.AddCleanup(p, s.drop, p.digest)
	return p
}

// drop forgets a part that is gone, unless another one has taken its place.
func (s *sharedParts) drop(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byDigest[digest].Value() == nil {
		delete(s.byDigest, digest)
	}
}

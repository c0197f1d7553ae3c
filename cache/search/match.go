package search

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
)

// match is which objects have all words so far, and their points.
type match struct {
	*state
	points  []uint16 // by docID; 0: no match
	scratch []uint16 // of the word at hand
	words   int
	scopes  []cache.Scope // what is seen, by kind
}

func newMatch(s *state) *match {
	n := s.docs.End()
	both := make([]uint16, 2*n)
	return &match{state: s, points: both[:n], scratch: both[n:]}
}

// require leaves only the objects that have a term.
func (m *match) require(t Term) error {
	clear(m.scratch)
	switch t.Field {
	case Kind:
		if err := m.ofKind(t.Text); err != nil {
			return err
		}
	case Namespace:
		m.inNamespace(t.Text)
	default:
		m.withWord(t)
	}
	for id := range m.points {
		switch {
		case m.scratch[id] == 0:
			m.points[id] = 0
		case m.words == 0 || m.points[id] > 0:
			m.points[id] += m.scratch[id]
		}
	}
	m.words++
	return nil
}

// give raises what the word at hand gives to the objects that have a value.
func (m *match) give(v *value, points uint16) {
	var one, alone [1]uint32
	for _, h := range v.holders.List(&one) {
		if id, is := holder(h).doc(); is {
			m.scratch[id] = max(m.scratch[id], points)
			continue
		}
		for _, id := range m.set(holder(h).set()).docs.List(&alone) {
			m.scratch[id] = max(m.scratch[id], points)
		}
	}
}

// ofKind takes the objects of the kinds called so: by a name that kubectl
// takes, or by a glob over the names of resources.
func (m *match) ofKind(name string) error {
	found := false
	wanted := make([]bool, len(m.kinds))
	for i, k := range m.kinds {
		glob, _ := path.Match(name, k.view.Spec.Name())
		wanted[i] = k.known && (glob || k.called(name))
		found = found || wanted[i]
	}
	if !found {
		return &cache.InvalidError{Parameter: "q", Message: fmt.Sprintf("no kind is called %q%s", name, m.suggest(name))}
	}
	m.giveKinds(func(k kindID) uint16 {
		if wanted[k] {
			return 1
		}
		return 0
	})
	return nil
}

func (m *match) giveKinds(points func(kindID) uint16) {
	for id := range m.docs.End() {
		if d := m.doc(docID(id)); d.live {
			m.scratch[id] = max(m.scratch[id], points(d.kind))
		}
	}
}

// suggest names kinds that contain the name, or says how they are named.
func (m *match) suggest(name string) string {
	var near []string
	for _, k := range m.kinds {
		if k.known && (strings.Contains(k.view.Spec.Name(), name) || strings.HasPrefix(name, strings.ToLower(k.view.Spec.Kind))) {
			near = append(near, k.view.Spec.Name())
		}
	}
	if slices.Sort(near); len(near) > 0 {
		return "; did you mean " + strings.Join(near[:min(len(near), 5)], ", ") + "?"
	}
	return "; name one as kubectl does: pods, deploy, deployments.apps, Deployment"
}

// called reports whether kubectl would take name, in lower case, for the kind.
func (k *kind) called(name string) bool {
	spec := &k.view.Spec
	name, group, grouped := strings.Cut(name, ".")
	if grouped && group != spec.GVR.Group && group != spec.GVR.Version+"."+spec.GVR.Group {
		return false
	}
	return name == spec.GVR.Resource || name == strings.ToLower(spec.Kind) || name == spec.Singular && name != "" ||
		slices.Contains(spec.ShortNames, name)
}

// inNamespace takes the objects of namespaces that a glob matches, and the
// namespaces themselves.
func (m *match) inNamespace(glob string) {
	for id := range m.byText[Namespace].All() {
		v := m.value(valueID(id))
		if ok, _ := path.Match(glob, v.text); ok || v.text == glob {
			m.give(v, 1)
		}
	}
}

// withWord takes the objects that have a word in the field, or in any.
func (m *match) withWord(t Term) {
	for id := range m.tokens.candidates(t.Text) {
		value := m.value(valueID(id))
		if (t.Field == Any || t.Field == value.field) && has(value.text, t.Text) {
			m.give(value, value.field.points(value.text, t.Text))
		}
	}
	if t.Field == Any {
		m.withKind(t.Text)
	}
}

// minKind is how much of a kind's name must be typed.
const minKind = 3

// withKind takes the objects of kinds that a word means, or begins.
func (m *match) withKind(word string) {
	known := false
	points := make([]uint16, len(m.kinds))
	for i, k := range m.kinds {
		switch {
		case !k.known:
		case k.called(word):
			points[i] = exactPlace
		case len(word) >= minKind && (strings.HasPrefix(k.view.Spec.GVR.Resource, word) || strings.HasPrefix(strings.ToLower(k.view.Spec.Kind), word)):
			points[i] = placeStart
		}
		known = known || points[i] > 0
	}
	if known {
		m.giveKinds(func(k kindID) uint16 { return points[k] })
	}
}

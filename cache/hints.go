package cache

import "k8s.io/apimachinery/pkg/labels"

// hint makes tests of what f demands and indexes can answer. JSON in which a
// key may occur twice has another opinion about its values than the indexes.
func (m *Matcher) hint(f Filter, e *extraction) {
	if f == nil || !e.unique {
		return
	}
	h := f.Hints()
	for _, r := range h.Fields {
		t := newFieldTest(r, e)
		m.noteUnindexed(t)
		if t.identity != nil || t.handles != nil {
			m.fields = append(m.fields, t)
		}
	}
	for _, r := range h.Ranges {
		m.addRange(r, e)
	}
	if len(h.Labels) == 0 {
		return
	}
	if m.labels == nil {
		m.labels = labels.NewSelector()
	}
	m.labels = m.labels.Add(h.Labels...)
}

package cache

import (
	"slices"

	"github.com/informerd/informerd/cache/rawjson"
	"k8s.io/apimachinery/pkg/selection"
)

// hides returns an *InvalidError if r asks for what the Spec takes out of objects: it
// would be answered as if no object had it. That a key is there can be asked where
// redacting leaves the keys.
func (e *extraction) hides(r FieldRequirement) error {
	if by, ok := leadsInto(r.Path, e.drop, -1); ok {
		return e.hidden(r.Path, "drops", by)
	}
	kept := -1
	if r.Operator == selection.Exists || r.Operator == selection.DoesNotExist {
		kept = 1
	}
	if by, ok := leadsInto(r.Path, e.redact, kept); ok {
		return e.hidden(r.Path, "redacts", by)
	}
	return nil
}

// hidesAll is hides for paths that a Filter reads.
func (e *extraction) hidesAll(f Filter) error {
	reader, ok := f.(interface{ Reads() []rawjson.Path })
	if !ok {
		return nil
	}
	for _, path := range reader.Reads() {
		if err := e.hides(FieldRequirement{Path: path, Operator: selection.Equals}); err != nil {
			return err
		}
	}
	return nil
}

// leadsInto finds the one of removed that path leads into, by more than kept steps.
func leadsInto(path rawjson.Path, removed []rawjson.Path, kept int) (by rawjson.Path, ok bool) {
	i := slices.IndexFunc(removed, func(p rawjson.Path) bool {
		steps, ok := path.Below(p)
		return ok && steps > kept
	})
	if i < 0 {
		return rawjson.Path{}, false
	}
	return removed[i], true
}

func (e *extraction) hidden(path rawjson.Path, verb string, by rawjson.Path) error {
	return invalidf("fieldSelector", "%s cannot be selected by: the rule of %s %s %s", path, e.spec.Name(), verb, by)
}

package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/informerd/informerd/cache/rawjson"
)

// scanner tests requirements, terms and a filter on the JSON of objects. It is
// immutable; its zero value lets all pass.
type scanner struct {
	requirements []FieldRequirement
	terms        []string // values wanted of the paths after those of requirements
	extractor    *rawjson.Extractor
	filter       Filter
	unique       bool // no key occurs twice
	spec         *Spec
	identity     bool           // AppendIdentity has all that is read
	reads        []rawjson.Path // all that is read of objects; nil: that is not known
	// excerpts are of reads, for a filter, which is slower than to take an excerpt: of many objects
	// it is the same, and then what the filter says of one of them is good for all (Again).
	// nil: the filter is given the whole.
	excerpts *excerpts
}

func newScanner(requirements []FieldRequirement, terms []termTest, filter Filter, e *extraction) (scanner, error) {
	s := scanner{requirements: requirements, filter: filter, unique: e.unique, spec: &e.spec}
	var paths []rawjson.Path
	for _, r := range requirements {
		paths = append(paths, r.Path)
	}
	for _, t := range terms {
		paths = append(paths, t.path)
		s.terms = append(s.terms, t.Value)
	}
	s.identity = (filter == nil || filter.OfIdentity()) && (len(paths) == 0 || IdentityOf(paths) != 0)
	if s.reads = paths; filter != nil {
		if read, ok := filter.Within(); ok {
			s.reads = slices.Concat(paths, read)
		} else {
			s.reads = nil
		}
		if n := len(s.reads); e.unique && !s.identity && n > 0 && n <= columnPaths {
			s.excerpts = newExcerpts(s.reads)
		}
	}
	if len(paths) == 0 {
		return s, nil
	}
	var err error
	if s.extractor, err = rawjson.CompileExtractor(paths); err != nil {
		return scanner{}, err
	}
	if e.unique {
		s.extractor = s.extractor.Unique()
	}
	return s, nil
}

// appendRead appends of an object the JSON to match, or as much of it as is read.
func (s scanner) appendRead(dst []byte, o *Object) ([]byte, error) {
	if s.identity {
		if json, ok := s.spec.AppendIdentity(dst, o, WholeIdentity); ok {
			return json, nil
		}
	}
	if s.excerpts == nil {
		return o.AppendJSON(dst)
	}
	dst, _, err := s.excerpts.append(dst, o)
	return dst, err
}

// columnPaths are what a column would have to have of the objects; nil: there is no use in one.
func (s scanner) columnPaths() []rawjson.Path {
	if s.identity {
		return nil
	}
	return s.reads
}

func (s scanner) empty() bool { return s.extractor == nil && s.filter == nil }

// match tests the JSON of an object and says what the filter cost, too.
func (s scanner) match(ctx context.Context, plain []byte) (ok bool, cost uint64, err error) {
	if ok, err = s.matchFields(plain); !ok || err != nil || s.filter == nil {
		return ok, 0, err
	}
	return s.matchFilter(ctx, plain)
}

func (s scanner) matchFilter(ctx context.Context, plain []byte) (ok bool, cost uint64, err error) {
	if !s.unique {
		if plain, err = uniqueKeys(plain); err != nil {
			return false, 0, err
		}
	}
	return s.filter.Match(ctx, plain)
}

// uniqueKeys leaves of a key that occurs twice the last one.
func uniqueKeys(plain []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// found is what is known of one requirement while values go by.
type found struct {
	any    bool // there was a value
	exists bool // one of them was not null
	hit    bool // one of them is wanted
}

func (s scanner) matchFields(plain []byte) (bool, error) {
	if s.extractor == nil {
		return true, nil
	}
	var few [8]found
	state := few[:]
	if n := len(s.requirements) + len(s.terms); n > len(few) {
		state = make([]found, n)
	}
	err := s.extractor.Each(plain, func(v rawjson.Value) bool {
		f := &state[v.Path]
		f.any = true
		f.exists = f.exists || v.Kind != rawjson.Null
		f.hit = f.hit || s.wants(v)
		return true
	})
	return err == nil && s.decide(state), err
}
func (s scanner) wants(v rawjson.Value) bool {
	if i := v.Path - len(s.requirements); i >= 0 {
		return indexable(v) && string(v.Text) == s.terms[i]
	}
	return s.requirements[v.Path].wants(v)
}

func (s scanner) decide(state []found) bool {
	for i, r := range s.requirements {
		f := state[i]
		if !r.result(f.exists, f.hit || !f.any && slices.Contains(r.Values, "")) {
			return false
		}
	}
	for i := range s.terms {
		if !state[len(s.requirements)+i].hit {
			return false
		}
	}
	return true
}

func (r FieldRequirement) wants(v rawjson.Value) bool {
	switch v.Kind {
	case rawjson.String, rawjson.Number, rawjson.Bool:
		for _, want := range r.Values {
			if string(v.Text) == want {
				return true
			}
		}
		return false
	case rawjson.Null:
		return slices.Contains(r.Values, "")
	default:
		return false
	}
}

package cache

import (
	"context"
	"errors"
	"slices"
)

// PageAt is the first Page of the objects as they were at version, which the
// Store must have reached, for WaitVersion to ensure. The error is ErrExpired
// when the changes since are no longer remembered. The objects are in the order of
// keys, whatever q.Sort says.
func (s *Store) PageAt(ctx context.Context, q Query, limit int, version string) (*Page, error) {
	return s.whole().PageAt(ctx, q, limit, version)
}

// selectAt is Select as of version.
func (s *Store) selectAt(ctx context.Context, q Query, scope Scope, version string) (*Result, error) {
	m, now, before, err := s.undo(q, scope, version)
	if err != nil {
		return nil, err
	}
	var objs []*Object
	now.Scan(func(e entry) bool {
		if _, changed := before[e.obj.Key()]; !changed {
			objs = append(objs, e.obj)
		}
		return true
	})
	kept, err := m.filter(ctx, located{objects: objs})
	if err != nil {
		return nil, err
	}
	result := &Result{Version: version, Objects: kept.objects, Faults: kept.faults}
	for _, o := range before {
		if o == nil {
			continue
		}
		ok, err := m.Match(ctx, o)
		if fault, isFault := errors.AsType[*EvalError](err); isFault {
			result.Faults.add(o.Key(), fault)
			continue
		}
		if err != nil {
			return nil, err
		}
		if ok {
			result.Objects = append(result.Objects, o)
		}
	}
	slices.SortFunc(result.Objects, compareObjects)
	return result, nil
}

// undo returns the present objects, and what those that changed since version
// were before: nil for those that did not exist.
func (s *Store) undo(q Query, scope Scope, version string) (*Matcher, *tree, map[Key]*Object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, err := newMatcher(q, scope, s.extraction.Load())
	if err == nil {
		err = s.askableLocked()
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if Newer(version, s.version) {
		return nil, nil, nil, ErrTooNew
	}
	first, ok := s.ring.seek(version, s.version)
	if !ok && version != s.version || s.gaps.within(version) {
		return nil, nil, nil, ErrExpired
	}
	before := map[Key]*Object{}
	for seq := first; ok && seq < s.ring.next; seq++ {
		e := s.ring.at(seq)
		if _, seen := before[e.Object.Key()]; !seen {
			before[e.Object.Key()] = e.before()
		}
	}
	return m, s.treeLocked(), before, nil
}

// Oldest is the version before which changes are no longer remembered, "" for a
// Store that has none to remember yet.
func (s *Store) Oldest() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ring.start
}

// Watches reports whether the Store watches a namespace, or, with "", all of
// them. Other than for Covers, a selector may leave out objects of it.
func (s *Store) Watches(namespace string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if namespace == "" {
		return s.sources[""] != nil && len(s.extraction.Load().filter) == 0
	}
	return s.sourceOf(namespace) != nil && s.filter.match(namespace)
}

package cache

import (
	"fmt"
	"slices"
)

// retell is about what s still shows of its past when from takes over: a rule may be
// meant to take something out of sight, and then no event of before and no former
// state may show it any more.
//
// It returns what s is to remember of its events, and changes those of the takeover.
// Under another selection it is none of the former: who has not read all of them has
// to list. Under the rule that drops or redacts otherwise they stay, with objects as
// from would hold them. What a selection of a reader is held against stays as the
// reader was shown it, so that it is told if an object is not in the selection any
// more. The caller holds writing of both.
func (s *Store) retell(from *Store, events []Event) ([]ringEntry, error) {
	remembered := s.ring.entriesNow()
	was, is := s.extraction.Load().spec, from.extraction.Load().spec
	selection := !was.SameSelection(is)
	switch {
	case selection:
		remembered = nil
	case slices.Equal(was.Drop, is.Drop) && slices.Equal(was.Redact, is.Redact):
		return remembered, nil
	}
	told := make([]*Event, 0, len(remembered)+len(events))
	for i := range remembered {
		told = append(told, &remembered[i].Event)
	}
	for i := range events {
		told = append(told, &events[i])
	}
	err := parallel(len(told), func(i int) error { return from.show(told[i]) })
	for i := range remembered {
		e := &remembered[i]
		e.bytes = e.held()
	}
	return remembered, err
}

// show makes e show objects as s would hold them.
func (s *Store) show(e *Event) (err error) {
	if !s.extraction.Load().made(e.Object) {
		if e.Object, err = s.reduced(e.Object); err != nil {
			return err
		}
	}
	switch old := e.before(); {
	case old == nil:
	case old.UID() == e.Object.UID() && old.ResourceVersion() == e.Object.ResourceVersion():
		e.shown = e.Object
	default:
		e.shown, err = s.reduced(old)
	}
	return err
}

// reduced is an object of another Store as s would hold it.
func (s *Store) reduced(o *Object) (*Object, error) {
	raw, err := o.JSON()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.Key(), err)
	}
	shown, plain, _, err := s.extraction.Load().object(raw, nil, "", "")
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.Key(), err)
	}
	shown.setData(s.packing.pack(plain))
	return shown, nil
}

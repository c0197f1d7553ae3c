package cache

import (
	"errors"
	"fmt"
	"testing"
)

func TestCovers(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*Spec)
		yes, no  []string
		unsynced bool
	}{
		"all":             {change: func(*Spec) {}, yes: []string{"a", "b"}},
		"before the sync": {change: func(*Spec) {}, no: []string{"a"}, unsynced: true},
		"some namespaces": {change: func(s *Spec) { s.Namespaces = []string{"a*"} }, yes: []string{"a", "ab"}, no: []string{"b", ""}},
		"by labels":       {change: func(s *Spec) { s.LabelSelector = "app" }, no: []string{"a"}},
		"by fields":       {change: func(s *Spec) { s.FieldSelector = "spec.nodeName=n" }, no: []string{"a"}},
		"cluster scope":   {change: func(s *Spec) { s.Namespaced = false }, yes: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := podSpec()
			tt.change(&spec)
			s, err := NewStore(spec, StoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !tt.unsynced {
				s.Replace("", nil, "1")
			}
			for _, ns := range tt.yes {
				if !s.Covers(ns) {
					t.Errorf("Covers(%q) = false", ns)
				}
			}
			for _, ns := range tt.no {
				if s.Covers(ns) {
					t.Errorf("Covers(%q) = true", ns)
				}
			}
		})
	}
}

// TestCoversSources: only namespaces whose own watch has synced are complete.
func TestCoversSources(t *testing.T) {
	s, err := NewStore(podSpec(), StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.SetSources([]string{"a", "b"})
	s.Replace("a", nil, "1")
	for ns, want := range map[string]bool{"a": true, "b": false, "c": false} {
		if s.Covers(ns) != want {
			t.Errorf("Covers(%q) = %v, want %v", ns, !want, want)
		}
	}
}

func TestPoll(t *testing.T) {
	s := filledStore(t, 1)
	sub, err := s.Watch("")
	if err != nil {
		t.Fatal(err)
	}
	if events, err := sub.Poll(); len(events) != 0 || err != nil {
		t.Errorf("Poll() = %v, %v before anything happened", events, err)
	}
	o, err := s.Decode(realPod(2, 50), "v1", "Pod")
	if err != nil {
		t.Fatal(err)
	}
	s.Apply("", Added, o)
	if events, err := sub.Poll(); len(events) != 1 || events[0].Object.Key() != o.Key() || events[0].Object.ResourceVersion() != o.ResourceVersion() || err != nil {
		t.Errorf("Poll() = %v, %v, want the one event", events, err)
	}
	sub.Close()
	if _, err := sub.Poll(); !errors.Is(err, ErrStopped) {
		t.Errorf("Poll() of a closed Subscription = %v, want ErrStopped", err)
	}
}

func TestOwned(t *testing.T) {
	s := filledStore(t, 1)
	for owners, want := range map[string]bool{
		``: false, `,"ownerReferences":[{"uid":"u","kind":"K","name":"n"}]`: true, `,"ownerReferences":[{"kind":"K","name":"n"}]`: false,
	} {
		o, err := s.Decode(fmt.Appendf(nil, `{"metadata":{"name":"a","namespace":"b"%s}}`, owners), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		if o.Owned() != want {
			t.Errorf("Owned() = %v with %q", !want, owners)
		}
	}
}

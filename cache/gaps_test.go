package cache

import (
	"errors"
	"fmt"
	"testing"
)

// TestPageAtWithinRelist: what a list went over in one step was never told, so
// nobody can be answered as of a version within it.
func TestPageAtWithinRelist(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 5)}, "10")
	s.Apply("", Modified, decodeSimple(t, s, "a", "x", 12))
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 15)}, "20") // 13 and 14 were missed
	s.Bookmark("", "30")
	for version, want := range map[string]string{
		"10": "a/x@5", "11": "a/x@5", "12": "a/x@12",
		"13": "", "15": "", "19": "",
		"20": "a/x@15", "25": "a/x@15", "30": "a/x@15",
	} {
		page, err := s.PageAt(t.Context(), Query{}, 0, version)
		if want == "" {
			if !errors.Is(err, ErrExpired) {
				t.Errorf("at %s: %v, want ErrExpired", version, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("at %s: %v", version, err)
			continue
		}
		if got := fmt.Sprintf("%s@%s", page.Objects[0].Key(), page.Objects[0].ResourceVersion()); got != want {
			t.Errorf("at %s: %s, want %s", version, got, want)
		}
	}
}

// TestGapsAreBounded: what is forgotten is not taken for known.
func TestGapsAreBounded(t *testing.T) {
	var g gaps
	for n := range 2 * maxGaps {
		g.add(fmt.Sprint(100+10*n), fmt.Sprint(105+10*n))
	}
	for version, want := range map[string]bool{"103": true, "109": true, "1370": false, "1373": true, "1375": false, "9999": false} {
		if g.within(version) != want {
			t.Errorf("within(%s) = %v, want %v", version, !want, want)
		}
	}
}

// TestFutureWithinRelist: a reader of another process, which was further, waits for
// this one, which then lists: what came and went between was never told here.
func TestFutureWithinRelist(t *testing.T) {
	s := newStore(t, thingSpec)
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 5)}, "10")
	waiting, further := watch(t, s, "14"), watch(t, s, "20")
	s.Replace("", []*Object{decodeSimple(t, s, "a", "x", 15)}, "20")
	if events, err := waiting.Poll(); !errors.Is(err, ErrExpired) {
		t.Errorf("a reader at 14 is told %s, %v; want ErrExpired", say(events), err)
	}
	if events, err := further.Poll(); err != nil || len(events) > 0 {
		t.Errorf("a reader at 20 is told %s, %v; want nothing", say(events), err)
	}
}

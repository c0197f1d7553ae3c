package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// someRecords are of several batches, and of a part of one.
func someRecords() []Record {
	all := make([]Record, 3*restoreBatch+restoreBatch/2)
	for i := range all {
		all[i] = Record{
			Key: Key{Namespace: fmt.Sprintf("ns%02d", i%7), Name: fmt.Sprintf("x%05d", i)}, UID: fmt.Sprint("u", i), ResourceVersion: fmt.Sprint(i + 1),
			Terms: []handle{intern(NamespaceIndex, fmt.Sprintf("ns%02d", i%7))}, Size: 2, Data: []byte("{}"),
		}
	}
	return all
}

// TestRestoring: objects are those of the records, in the order of their keys, however these
// came, and however many there are.
func TestRestoring(t *testing.T) {
	want := someRecords()
	slices.SortFunc(want, func(a, b Record) int { return a.Key.Compare(b.Key) })
	for _, n := range []int{0, 1, restoreBatch - 1, restoreBatch, restoreBatch + 1, len(want)} {
		records := slices.Clone(want[:n])
		rand.New(rand.NewPCG(51, uint64(n))).Shuffle(n, func(i, j int) { records[i], records[j] = records[j], records[i] })
		s := newStore(t, thingSpec)
		loaded := NewRestoring()
		for _, r := range records {
			if err := loaded.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.RestoreFrom(Saved{Spec: thingSpec, Terms: termsVersion, ResourceVersions: map[string]string{"": "9999"}}, loaded); err != nil {
			t.Fatal(err)
		}
		checkContents(t, s)
		got := s.objectsOf("")
		if len(got) != n {
			t.Fatalf("%d objects of %d records", len(got), n)
		}
		for i, o := range got {
			if r := o.record(); r.Key != want[i].Key || r.UID != want[i].UID || r.ResourceVersion != want[i].ResourceVersion || !slices.Equal(r.Terms, want[i].Terms) {
				t.Fatalf("object %d is %+v, want %+v", i, r, want[i])
			}
		}
	}
}

// TestRestoringRefuses: one bad record among many, wherever it is, leaves nothing behind; nor
// does what is given up.
func TestRestoringRefuses(t *testing.T) {
	for _, bad := range []int{0, restoreBatch, 3*restoreBatch + 1} {
		s := newStore(t, thingSpec)
		loaded := NewRestoring()
		for i, r := range someRecords() {
			if i == bad {
				r.Name = ""
			}
			if loaded.Add(r) != nil && i <= bad {
				t.Errorf("an error of record %d, %d is bad", i, bad)
			}
		}
		err := s.RestoreFrom(Saved{Spec: thingSpec, Terms: termsVersion}, loaded)
		if err == nil || !strings.Contains(err.Error(), "is no valid key") || s.Len() != 0 {
			t.Errorf("record %d is bad: error %v, %d objects", bad, err, s.Len())
		}
	}
	loaded := NewRestoring()
	for _, r := range someRecords() {
		if err := loaded.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	loaded.Close()
}

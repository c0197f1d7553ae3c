package cache

import (
	"bytes"
	"testing"
)

// TestSound: what is known of an object at a glance stays with it however it is held, and is
// that of its own JSON, as it is kept; nothing is known of what is foreign or was restored.
func TestSound(t *testing.T) {
	spec := thingSpec
	spec.Namespaces, spec.Drop = []string{"a"}, []string{"spec.hidden"}
	asked := 0
	store, err := NewStore(spec, StoreOptions{Sound: func(json []byte) bool {
		asked++
		return !bytes.Contains(json, []byte("bad"))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	decode := func(raw string) *Object {
		o, err := store.Decode([]byte(raw), "example.com/v1", "Thing")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	good := decode(`{"metadata":{"name":"x","namespace":"a","uid":"1","resourceVersion":"7"},"spec":{"hidden":"bad"}}`)
	bad := decode(`{"metadata":{"name":"y","namespace":"a","uid":"2","resourceVersion":"7"},"spec":{"shown":"bad"}}`)
	if !good.Sound() || bad.Sound() {
		t.Errorf("sound: %v and %v, want the first alone, whose JSON as it is kept is good", good.Sound(), bad.Sound())
	}
	for what, o := range map[string]*Object{
		"packed": good.repacked(nil, nil), "indexed anew": good.reindexed(nil, nil, 0), "at its deletion": good.at("9"),
	} {
		if !o.Sound() {
			t.Errorf("%s it is not sound any more", what)
		}
	}
	before := asked
	if o := decode(`{"metadata":{"name":"z","namespace":"b","uid":"3","resourceVersion":"7"}}`); o.Sound() || !o.Foreign() || asked != before {
		t.Error("what is foreign is judged")
	}
	record := good.record()
	if o, err := restoreObject(&record, nil); err != nil || o.Sound() {
		t.Errorf("what a snapshot had is sound (%v)", err)
	}
	if o, err := newStore(t, thingSpec).Decode([]byte(`{"metadata":{"name":"x","namespace":"a","resourceVersion":"7"}}`), "example.com/v1", "Thing"); err != nil || o.Sound() {
		t.Errorf("sound although nobody was asked (%v)", err)
	}
}

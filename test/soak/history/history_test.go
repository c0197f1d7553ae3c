package history

import (
	"bytes"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var things = Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "things"}, Prefix: "/registry/things/", Kind: "Thing", Namespaced: true}

func change(version int64, uid string) Change {
	return Change{Object: Object{Version: version, UID: uid}, Seen: time.Unix(version, 0)}
}

func TestEpoch(t *testing.T) {
	e := NewLog().Now()
	e.Add("things", "a", change(5, "u1"))
	e.Add("things", "a", Change{Object: Object{Version: 7}, Deleted: true, Seen: time.Unix(7, 0)})
	e.Add("things", "a", change(9, "u2"))
	e.Add("things", "a", change(9, "twice"))
	for version, uid := range map[int64]string{4: "", 5: "u1", 6: "u1", 7: "", 8: "", 9: "u2", 99: "u2"} {
		if o, _ := e.At("things", "a", version); o.UID != uid {
			t.Errorf("at %d it is %q, want %q", version, o.UID, uid)
		}
		if n := len(e.State("things", version, nil)); n != 1 && uid != "" || n != 0 && uid == "" {
			t.Errorf("at %d there are %d", version, n)
		}
	}
	if d := e.Deleted("u1"); d != 7 {
		t.Errorf("u1 was deleted at %d", d)
	}
	if n := len(e.Between("things", 5, 9)); n != 2 {
		t.Errorf("%d changes after 5 and up to 9, want 2", n)
	}
	if v := e.Before("things", time.Unix(8, 0)); v != 7 {
		t.Errorf("the last change before is %d, want 7", v)
	}
}

func TestFork(t *testing.T) {
	l := NewLog()
	first := l.Now()
	for v := int64(1); v <= 10; v++ {
		first.Add("things", "a", change(v, "u"))
	}
	second := l.Fork(first, 6)
	second.Add("things", "a", change(5, "told again"))
	second.Add("things", "a", change(7, "other"))
	third := l.Fork(first, 3)
	fourth := l.Fork(second, 7)
	if o, _ := second.At("things", "a", 5); o.UID != "u" {
		t.Errorf("the past is %+v", o)
	}
	if o, _ := second.At("things", "a", 20); o.UID != "other" {
		t.Errorf("the present is %+v", o)
	}
	for _, c := range []struct {
		a, b *Epoch
		want int64
	}{{first, first, math.MaxInt64}, {first, second, 6}, {second, first, 6}, {second, third, 3}, {fourth, second, 7}, {fourth, first, 6}, {fourth, third, 3}} {
		if got := Common(c.a, c.b); got != c.want {
			t.Errorf("histories %d and %d have %d in common, want %d", c.a.Number, c.b.Number, got, c.want)
		}
	}
}

func TestHash(t *testing.T) {
	read := func(text string) Object {
		t.Helper()
		_, o, err := Read(things, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	stored := read(`{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","labels":{"tier":"red"},"managedFields":[{}]},"data":{"x":1}}`)
	served := read(`{"data":{"x":1},"metadata":{"namespace":"n","uid":"u","name":"a","labels":{"tier":"red"},"resourceVersion":"5"}}`)
	other := read(`{"data":{"x":2},"metadata":{"namespace":"n","uid":"u","name":"a","labels":{"tier":"red"},"resourceVersion":"5"}}`)
	if stored.Hash != served.Hash || served.Version != 5 || served.Tier != "red" {
		t.Errorf("stored %+v, served %+v", stored, served)
	}
	if other.Hash == served.Hash {
		t.Error("other content has the same hash")
	}
}

func TestRead(t *testing.T) {
	e := NewLog().Now()
	err := read(bytes.NewBufferString(`{"head":9}
{"key":"/registry/things/n/a","revision":5,"object":{"metadata":{"name":"a","namespace":"n","uid":"u"}}}
{"key":"/registry/things/b","revision":6,"object":{"metadata":{"name":"b"}}}
{"key":"/registry/things/n/a","revision":7,"deleted":true}
{"progress":9}
`), []Resource{things}, e)
	if err == nil || e.Size() != 2 {
		t.Errorf("%d changes, %v; want 2 and the end", e.Size(), err)
	}
	if head, _ := e.Head(); head != 9 {
		t.Errorf("head is %d", head)
	}
}

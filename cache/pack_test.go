package cache

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// samePod reports whether o holds pod i, less its managedFields.
func samePod(t *testing.T, o *Object, i, version int) {
	t.Helper()
	var want, got map[string]any
	if err := json.Unmarshal(realPod(i, version), &want); err != nil {
		t.Fatal(err)
	}
	delete(want["metadata"].(map[string]any), "managedFields")
	plain, err := o.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(plain, &got); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	if !bytes.Equal(a, b) {
		t.Errorf("pod %d = %s, want %s", i, b, a)
	}
}

// TestPackColdSync: a large first list is compressed while it arrives, the
// objects decoded before the dictionary included.
func TestPackColdSync(t *testing.T) {
	s := filledStore(t, 500)
	for i, o := range s.objectsOf("") {
		if o.dict == nil {
			t.Fatalf("object %d is plain", i)
		}
	}
	o, ok := s.Get(Key{"team-01", podName(21)})
	if !ok {
		t.Fatalf("no %s", podName(21))
	}
	samePod(t, o, 21, 22)
	if stats := s.Stats(); stats.Bytes*4 > stats.RawBytes {
		t.Errorf("%d bytes for %d of JSON", stats.Bytes, stats.RawBytes)
	}
	checkContents(t, s)
}

func podName(i int) string {
	var pod struct{ Metadata struct{ Name string } }
	if err := json.Unmarshal(realPod(i, 1), &pod); err != nil {
		panic(err)
	}
	return pod.Metadata.Name
}

// TestPackGrown: a resource that starts small and grows is compressed once it is
// worth it, in place, without an event, and saved anew.
func TestPackGrown(t *testing.T) {
	s, err := NewStore(podSpec(), StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Replace("", nil, "1")
	s.TakeChanges()
	const n = 400
	for i := range n {
		o, err := s.Decode(realPod(i, i+2), "", "")
		if err != nil {
			t.Fatal(err)
		}
		s.Apply("", Added, o)
		if o.dict != nil {
			t.Fatal("a change waited for a dictionary")
		}
	}
	s.TakeChanges()
	s.Repack(t.Context())
	if s.Stats().Events != uint64(n) {
		t.Errorf("%d events for %d pods", s.Stats().Events, n)
	}
	for _, o := range s.objectsOf("") {
		if o.dict == nil {
			t.Errorf("%s is plain", o.Key())
		}
	}
	checkContents(t, s)
	b, _ := s.TakeChanges()
	if b.Reset || b.Len() != n || len(b.Saved.Dictionaries) != 1+s.Stats().Templates {
		t.Errorf("saved anew: %v, %d records, %d dictionaries", b.Reset, b.Len(), len(b.Saved.Dictionaries))
	}
}

// TestPackOdd: samples that teach nothing leave objects plain, never broken.
func TestPackOdd(t *testing.T) {
	for name, body := range map[string]func(i int) string{
		"equal":  func(int) string { return strings.Repeat("x", 5000) },
		"tiny":   func(i int) string { return "" },
		"random": func(i int) string { return fmt.Sprintf("%x", realPod(i, i)[i%50:i%50+9]) },
		"large":  func(i int) string { return strings.Repeat(strconv.Itoa(i), 20000) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, thingSpec)
			var objs []*Object
			var raws [][]byte
			for i := range 330 {
				raw := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"T","metadata":{"name":"x%d","resourceVersion":"%d"},"body":%q}`, i, i+1, body(i))
				o, err := s.Decode(raw, "", "")
				if err != nil {
					t.Fatal(err)
				}
				objs, raws = append(objs, o), append(raws, raw)
			}
			s.Replace("", objs, "1000")
			for i, raw := range raws {
				o, _ := s.Get(Key{Name: "x" + strconv.Itoa(i)})
				if got, err := o.JSON(); err != nil || !bytes.Equal(got, raw) {
					t.Fatalf("object %d: %d bytes, want %d (%v)", i, len(got), len(raw), err)
				}
			}
		})
	}
}

func TestDecodeConcurrently(t *testing.T) {
	s, err := NewStore(podSpec(), StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w * 150; i < (w+1)*150; i++ {
				o, err := s.Decode(realPod(i, 1), "", "")
				if err != nil {
					t.Error(err)
					return
				}
				if i%10 == 0 {
					samePod(t, o, i, 1)
				}
			}
		})
	}
	wg.Wait()
}

func TestDecodeRefuses(t *testing.T) {
	s := newStore(t, thingSpec)
	for name, raw := range map[string]string{
		"no JSON":   `{"metadata":`,
		"no object": `[]`,
		"no name":   `{"metadata":{"resourceVersion":"5"}}`,
		"too long":  `{"metadata":{"name":"` + strings.Repeat("x", 1<<16) + `"}}`,
	} {
		if _, err := s.Decode([]byte(raw), "", ""); err == nil {
			t.Errorf("%s is decoded", name)
		}
	}
}

// TestUnextracted: values that cannot be indexed are counted and left out.
func TestUnextracted(t *testing.T) {
	spec := thingSpec
	spec.Indexes = map[string]string{"v": "spec.v[*]"}
	s := newStore(t, spec)
	o, err := s.Decode(fmt.Appendf(nil, `{"metadata":{"name":"x"},"spec":{"v":["ok",null,{"a":1},[2],%q,true,1.50]}}`, strings.Repeat("x", maxIndexedValue+1)), "", "")
	if err != nil {
		t.Fatal(err)
	}
	s.Replace("", []*Object{o}, "1")
	values, _, _ := s.IndexValues("v", "", 0)
	if got := fmt.Sprint(values); got != "[{1.50 1} {ok 1} {true 1}]" {
		t.Errorf("index values %s", got)
	}
	if got := s.Stats().Unextracted; got != 3 {
		t.Errorf("Unextracted = %d, want 3", got)
	}
}

// TestTrainOnLargeObjects: objects of more than the trainer's block neither stop
// it nor are lost by what it made.
func TestTrainOnLargeObjects(t *testing.T) {
	var samples [][]byte
	for n := range trainMinObjects {
		samples = append(samples, fmt.Appendf(nil, `{"kind":"ConfigMap","metadata":{"name":"small-%d","labels":{"app":"shop"}},"data":{"key":"value-%d"}}`, n, n))
	}
	large := []byte(`{"kind":"ConfigMap","metadata":{"name":"large"},"data":{"text":"` + strings.Repeat("grüße, 世界 ", 1<<16) + `"}}`)
	for range 4 {
		samples = append(samples, large)
	}
	d, err := train(newDictionaryID(), samples)
	if err != nil {
		t.Fatal(err)
	}
	for _, plain := range samples {
		packed := d.compress(plain, dense)
		if packed == nil {
			continue
		}
		got, err := d.decompress(nil, packed, len(plain))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, plain) {
			t.Errorf("%d bytes come back as %d other ones", len(plain), len(got))
		}
	}
}

// TestCoding: few objects are packed quickly, many densely, and both are read alike. What
// counts is how many the Store has, and what was packed since it changed.
func TestCoding(t *testing.T) {
	s := filledStore(t, 1000)
	if s.packing.dict.Load() == nil {
		t.Fatal("there is no dictionary")
	}
	sizes := map[coding]int{}
	pack := func(objects int, want coding) {
		t.Helper()
		s.packing.objects.set(objects)
		if got := s.packing.coding(); got != want {
			t.Fatalf("%d objects: %v", objects, got)
		}
		for _, o := range s.objectsOf("") {
			plain, err := o.JSON()
			if err != nil {
				t.Fatal(err)
			}
			data, d := packWith(s.packing.dict.Load(), plain, s.packing.coding())
			again, err := d.decompress(nil, data, len(plain))
			if err != nil || !bytes.Equal(again, plain) {
				t.Fatalf("%v: %.100s, %v", want, again, err)
			}
			sizes[want] += len(data)
		}
	}
	pack(quickObjects, quick)
	pack(quickObjects+1, dense)
	if sizes[dense] >= sizes[quick] {
		t.Errorf("densely %d bytes, quickly %d", sizes[dense], sizes[quick])
	}
	for range 3 {
		if _, err := s.Decode(realPod(1, 9000), "v1", "Pod"); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.packing.objects.all(); got != quickObjects+4 {
		t.Errorf("%d objects before the Store has changed", got)
	}
	o, err := s.Decode(realPod(1, 9001), "v1", "Pod")
	if err != nil {
		t.Fatal(err)
	}
	s.Apply("", Modified, o)
	if got := s.packing.objects.all(); got != int64(s.Len()) {
		t.Errorf("%d objects of %d after it has", got, s.Len())
	}
}

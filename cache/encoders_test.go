package cache

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"
)

// dictionaries are n of objects that have something else in common each, and such an object
// of each.
func dictionaries(t *testing.T, n int) (dicts []*dictionary, plain [][]byte) {
	t.Helper()
	for k := range n {
		var samples [][]byte
		for i := range 60 {
			samples = append(samples, fmt.Appendf(nil, `{"metadata":{"name":"of-%d-%d","labels":{"kind-%d":"%032x"}},"data":"%s"}`,
				k, i, k, i*7919, bytes.Repeat(fmt.Appendf(nil, "%x-", k*104729), 20)))
		}
		d, err := train(newDictionaryID(), samples)
		if err != nil {
			t.Fatal(err)
		}
		dicts, plain = append(dicts, d), append(plain, samples[len(samples)/2])
	}
	return dicts, plain
}

// TestEncoderPoolMixed: an encoder that has learned another dictionary, or coding, packs what
// that one unpacks, however many use more dictionaries than there may be encoders.
func TestEncoderPoolMixed(t *testing.T) {
	p := encoderPool{kept: 3, idle: time.Minute}
	dicts, plain := dictionaries(t, 5)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 400 {
				k := (i*3 + worker + i/7) % len(dicts)
				c := coding(i%5 == 0)
				e, err := p.get(dicts[k], c)
				if err != nil {
					t.Error(err)
					return
				}
				data := e.EncodeAll(plain[k], nil)
				if e.dict != dicts[k] || e.coding != c {
					t.Errorf("an encoder of another dictionary or coding")
				}
				p.put(e)
				if out, err := dicts[k].decompress(nil, data, len(plain[k])); err != nil || !bytes.Equal(out, plain[k]) {
					t.Errorf("packed %q, unpacked %q, %v", plain[k], out, err)
				}
				if want := dicts[k].compressNew(t, plain[k], c); len(data) != len(want) {
					t.Errorf("%d bytes, %d of a new encoder", len(data), len(want))
				}
			}
		})
	}
	wg.Wait()
	if n := len(p.waiting); n == 0 || n > p.kept {
		t.Errorf("%d encoders wait, at most %d may", n, p.kept)
	}
}

// compressNew packs with an encoder that has packed nothing before.
func (d *dictionary) compressNew(t *testing.T, plain []byte, c coding) []byte {
	e, err := d.newEncoder(c)
	if err != nil {
		t.Error(err)
		return nil
	}
	return e.EncodeAll(plain, nil)
}

// TestEncoderPoolForgets: encoders are used again while they are used, and gone when nobody
// does, or when their first list is over.
func TestEncoderPoolForgets(t *testing.T) {
	p := encoderPool{kept: 3, idle: 50 * time.Millisecond}
	dicts, _ := dictionaries(t, 2)
	waiting := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.waiting)
	}
	get := func(d *dictionary) *pooledEncoder {
		e, err := p.get(d, quick)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	a, b := get(dicts[0]), get(dicts[1])
	p.put(a)
	p.put(b)
	if get(dicts[0]) != a {
		t.Fatal("another encoder although one waits")
	}
	p.put(a)
	p.forget(dicts[0])
	if n := waiting(); n != 1 || p.waiting[0] != b {
		t.Fatalf("%d wait", n)
	}
	for deadline := time.Now().Add(10 * time.Second); waiting() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("an encoder waits for ever")
		}
	}
	p.put(get(dicts[0])) // and again, after all were gone
	for deadline := time.Now().Add(10 * time.Second); waiting() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("an encoder waits for ever the second time")
		}
	}
}

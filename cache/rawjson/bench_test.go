package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"
)

func podProgram(t testing.TB) *Program {
	return compile(t, specOf(t, "spec.nodeName,status.phase,spec.containers[*].image", "metadata.managedFields", ""))
}

func BenchmarkRun(b *testing.B) {
	src, p := testPod(), podProgram(b)
	var d Document
	var out []byte
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Run(src, &d); err != nil {
			b.Fatal(err)
		}
		out = d.AppendJSON(out[:0], "v1", "Pod")
	}
}

func BenchmarkSiblings(b *testing.B) {
	src, p := testPod(), podProgram(b)
	all := [][]byte{src, bytes.ReplaceAll(src, []byte("x2v9k"), []byte("abcde"))}
	var s Siblings
	var d Document
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := s.Run(p, all[i%2], &d); err != nil {
			b.Fatal(err)
		}
	}
}

func stored(t testing.TB) []byte {
	var d Document
	if err := podProgram(t).Run(testPod(), &d); err != nil {
		t.Fatal(err)
	}
	return d.AppendJSON(nil, "v1", "Pod")
}

func BenchmarkExtract(b *testing.B) {
	src := stored(b)
	e, err := CompileExtractor(paths(b, "spec.nodeName", "metadata.name"))
	if err != nil {
		b.Fatal(err)
	}
	for name, e := range map[string]*Extractor{"whole": e, "unique": e.Unique()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = 0
				if err := e.Each(src, func(Value) bool { n++; return true }); err != nil {
					b.Fatal(err)
				}
			}
			if n != 2 {
				b.Fatal(n)
			}
		})
	}
}

func BenchmarkProjection(b *testing.B) {
	src := stored(b)
	p, err := CompileProjection(paths(b, "metadata.name", "metadata.namespace", "status.phase", "spec.containers[*].image"))
	if err != nil {
		b.Fatal(err)
	}
	var out []byte
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if out, err = p.Append(out[:0], src); err != nil {
			b.Fatal(err)
		}
	}
}

func podStream(n int) []byte {
	var b bytes.Buffer
	for range n {
		fmt.Fprintf(&b, `{"type":"ADDED","object":%s}`+"\n", testPod())
	}
	return b.Bytes()
}

func BenchmarkFrames(b *testing.B) {
	stream := podStream(64)
	p := make([]byte, 16<<10)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		f := NewFrameReader(io.NopCloser(bytes.NewReader(stream)), 0)
		for {
			n, err := f.Read(p)
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := ParseWatchEvent(p[:n]); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkList(b *testing.B) {
	list := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
	for i := range 64 {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, testPod()...)
	}
	list = append(list, "]}\n"...)
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	for b.Loop() {
		l := NewListReader(bytes.NewReader(list), 0)
		for {
			if _, err := l.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkYardstick(b *testing.B) {
	src := testPod()
	b.Run("valid", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			json.Valid(src)
		}
	})
	b.Run("map", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		for b.Loop() {
			var m map[string]any
			if err := json.Unmarshal(src, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestAllocs(t *testing.T) {
	src, p := testPod(), podProgram(t)
	if len(src) < 7000 || len(src) > 8200 {
		t.Errorf("the test pod has %d bytes", len(src))
	}
	var d Document
	var out []byte
	run := func() {
		if err := p.Run(src, &d); err != nil {
			t.Fatal(err)
		}
		out = d.AppendJSON(out[:0], "v1", "Pod")
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("Run and AppendJSON allocate %v times", n)
	}
}

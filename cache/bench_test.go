package cache

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// benchPods is how many pods benchmarks ask about: few, where it is only tried that they
// run.
func benchPods() int {
	if testing.Short() {
		return 1000
	}
	return 20_000
}

// filledStore returns a Store that holds n pods after a cold sync.
func filledStore(tb testing.TB, n int) *Store {
	tb.Helper()
	s, err := NewStore(podSpec(), StoreOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	objs := make([]*Object, n)
	for i := range objs {
		if objs[i], err = s.Decode(realPod(i, i+1), "v1", "Pod"); err != nil {
			tb.Fatal(err)
		}
	}
	s.Replace("", objs, strconv.Itoa(n))
	return s
}

func heap() uint64 {
	for range 4 { // pools are emptied by the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkHeapPerObject(b *testing.B) {

	for b.Loop() {
		before := heap()
		s := filledStore(b, benchPods())
		after := heap()
		b.ReportMetric(float64(after-before)/float64(benchPods()), "heap-bytes/object")
		b.ReportMetric(float64(s.Stats().Bytes)/float64(benchPods()), "stats-bytes/object")
		b.ReportMetric(float64(s.Stats().RawBytes)/float64(benchPods()), "raw-bytes/object")
		b.ReportMetric(float64(len(realPod(1, 1))), "json-bytes/object")
		runtime.KeepAlive(s)
	}
}

func BenchmarkDecode(b *testing.B) {
	s := filledStore(b, 1000)
	pods := make([][]byte, 64)
	for i := range pods {
		pods[i] = realPod(5000+i, i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := s.Decode(pods[i%len(pods)], "v1", "Pod"); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkUnpack(b *testing.B) {
	s := filledStore(b, 1000)
	objs := s.objectsOf("")
	var buf []byte
	var err error
	i := 0
	for b.Loop() {
		if buf, err = objs[i%len(objs)].AppendJSON(buf[:0]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkApply updates pods that are not decoded within the measurement.
func BenchmarkApply(b *testing.B) {
	s := filledStore(b, benchPods())
	b.ReportAllocs()
	var pods []*Object
	i, version := 0, benchPods()
	for b.Loop() {
		if i == len(pods) {
			b.StopTimer()
			pods = pods[:0]
			for range 1000 {
				version++
				o, err := s.Decode(realPod(version*7919%benchPods(), version), "v1", "Pod")
				if err != nil {
					b.Fatal(err)
				}
				pods = append(pods, o)
			}
			i = 0
			b.StartTimer()
		}
		s.Apply("", Modified, pods[i])
		i++
	}
}

func benchSelect(b *testing.B, q Query) {
	s := filledStore(b, benchPods())
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		r, err := s.Select(context.Background(), q)
		if err != nil {
			b.Fatal(err)
		}
		n = len(r.Objects)
	}
	b.ReportMetric(float64(n), "objects")
}

func mustFields(tb testing.TB, s string) FieldSelector {
	tb.Helper()
	f, err := ParseFieldSelector(s)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func BenchmarkSelectIndexed(b *testing.B) {
	benchSelect(b, Query{Fields: mustFields(b, "spec.nodeName=node-007")})
}

func BenchmarkSelectLabels(b *testing.B) {
	l, err := labels.Parse("tier=tier-1,app.kubernetes.io/component,app!=app-0001")
	if err != nil {
		b.Fatal(err)
	}
	benchSelect(b, Query{Labels: l})
}

func BenchmarkSelectScan(b *testing.B) {
	benchSelect(b, Query{Fields: mustFields(b, "status.containerStatuses[*].restartCount in (3)")})
}

func BenchmarkSelectAll(b *testing.B) { benchSelect(b, Query{}) }

func BenchmarkRestore(b *testing.B) {
	from := filledStore(b, benchPods())
	batch, _ := from.TakeChanges()
	records := slices.Collect(batch.Records())
	for b.Loop() {
		s, err := NewStore(podSpec(), StoreOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Restore(batch.Saved, records); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplace relists without a difference.
func BenchmarkReplace(b *testing.B) {
	s := filledStore(b, benchPods())
	objs := s.objectsOf("")
	for i, o := range objs {
		objs[i] = o.repacked(slices.Clone(o.data()), o.dict)
	}
	for b.Loop() {
		s.Replace("", objs, strconv.Itoa(benchPods()))
	}
}

// BenchmarkReplaceUnpacked relists without a difference objects that are held with
// another dictionary than those of the list are packed with.
func BenchmarkReplaceUnpacked(b *testing.B) {
	s, other := filledStore(b, benchPods()), filledStore(b, benchPods())
	objs := other.objectsOf("")
	for i, o := range objs {
		again := *o
		again.generation = s.extraction.Load().generation
		objs[i] = &again
	}
	for b.Loop() {
		if stats := s.Replace("", objs, strconv.Itoa(benchPods())); stats != (ReplaceStats{}) {
			b.Fatal(stats)
		}
	}
}

// BenchmarkMayFollow looks at a list without a difference, as every relist does
// before its Replace.
func BenchmarkMayFollow(b *testing.B) {
	s := filledStore(b, benchPods())
	objs := s.objectsOf("")
	for i, o := range objs {
		objs[i] = o.repacked(slices.Clone(o.data()), o.dict)
	}
	for b.Loop() {
		if err := s.MayFollow("", objs, strconv.Itoa(benchPods())); err != nil {
			b.Fatal(err)
		}
	}
}

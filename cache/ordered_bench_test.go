package cache_test

import (
	"context"
	"testing"

	"github.com/informerd/informerd/cache"
)

// Ranges by an index and, for comparison, without one.
func BenchmarkRangeCreated(b *testing.B) { benchFilter(b, `age(object) < duration("1500h")`) }

func BenchmarkRangeCreatedScan(b *testing.B) {
	benchFilter(b, `now - timestamp(object.status.startTime) < duration("1500h")`)
}

func BenchmarkPrefix(b *testing.B) { benchFilter(b, `object.spec.nodeName.startsWith("node-00")`) }

func BenchmarkPrefixScan(b *testing.B) {
	benchFilter(b, `object.spec.serviceAccountName.startsWith("app-001")`)
}

func BenchmarkPrefixList(b *testing.B) {
	benchFilter(b, `object.spec.containers.exists(c, c.image.startsWith("registry.example.com/team-01/"))`)
}

// benchFirstPage reads the first ten of a sorted list of 20,000.
func benchFirstPage(b *testing.B, sort string) {
	order, err := cache.ParseOrder(sort)
	if err != nil {
		b.Fatal(err)
	}
	s := cache.FilledStore(b, cache.BenchPods())
	b.ReportAllocs()
	for b.Loop() {
		p, err := s.Page(context.Background(), cache.Query{Sort: order}, 10, "")
		if err != nil || p.Remaining != cache.BenchPods()-10 {
			b.Fatal(p, err)
		}
	}
}

func BenchmarkFirstPageCreated(b *testing.B) { benchFirstPage(b, "-metadata.creationTimestamp") }
func BenchmarkFirstPageIndexed(b *testing.B) { benchFirstPage(b, "-spec.nodeName") }
func BenchmarkFirstPageScan(b *testing.B)    { benchFirstPage(b, "-status.startTime") }

// BenchmarkSortIndexed sorts all of a list by values that an index has.
func BenchmarkSortIndexed(b *testing.B) {
	order, err := cache.ParseOrder("spec.nodeName,-status.phase")
	if err != nil {
		b.Fatal(err)
	}
	s := cache.FilledStore(b, cache.BenchPods())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Select(context.Background(), cache.Query{Sort: order}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIndexValues(b *testing.B) {
	s := cache.FilledStore(b, 20_000) // of fewer, none has twenty images
	b.ReportAllocs()
	for b.Loop() {
		values, _, err := s.IndexValues("image", "registry.example.com/team-01/", 20)
		if err != nil || len(values) != 20 {
			b.Fatal(len(values), err)
		}
	}
}

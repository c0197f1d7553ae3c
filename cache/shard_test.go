package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	parser "k8s.io/apiserver/pkg/sharding"
)

// shards part all hashes into n.
func shards(t testing.TB, key string, n int) []*Shard {
	t.Helper()
	var all []*Shard
	for i := range n {
		start, end := fmt.Sprintf("0x%016x", uint64(i)*(1<<63/uint64(n))*2), "0x10000000000000000"
		if i < n-1 {
			end = fmt.Sprintf("0x%016x", uint64(i+1)*(1<<63/uint64(n))*2)
		}
		all = append(all, shardOf(t, fmt.Sprintf("shardRange(%s, '%s', '%s')", key, start, end)))
	}
	return all
}

func shardOf(t testing.TB, text string) *Shard {
	t.Helper()
	selector, err := parser.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewShard(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestShardAsKubernetes: what is in a Shard is what Kubernetes' own selector matches.
func TestShardAsKubernetes(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	s := newStore(t, thingSpec)
	for range 300 {
		var parts []string
		key := []string{"object.metadata.uid", "object.metadata.namespace"}[r.IntN(2)]
		for range 1 + r.IntN(6) {
			start := r.Uint64()
			end := start + 1 + r.Uint64N(1<<61)
			text := fmt.Sprintf("0x%016x", end)
			if end <= start {
				text = "0x10000000000000000"
			}
			parts = append(parts, fmt.Sprintf("shardRange(%s, '0x%016x', '%s')", key, start, text))
		}
		text := strings.Join(parts, " || ")
		selector, err := parser.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		shard := shardOf(t, text)
		if shard.String() != text {
			t.Errorf("%s is written as %s", text, shard)
		}
		for range 20 {
			uid, namespace := fmt.Sprint(r.Uint64()), []string{"a", "b", "c", fmt.Sprint(r.Uint64())}[r.IntN(4)]
			o, err := s.Decode(simple(namespace, "x", uid, "5"), "example.com/v1", "Thing")
			if err != nil {
				t.Fatal(err)
			}
			want, err := selector.Matches(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, UID: types.UID(uid)}})
			if err != nil || shard.has(o) != want {
				t.Errorf("%s of %s in %s: %v, want %v (%v)", text, uid, namespace, shard.has(o), want, err)
			}
		}
	}
}

// TestShardEnds: the first hash of a range is part of it, and its end is not.
func TestShardEnds(t *testing.T) {
	s := newStore(t, thingSpec)
	o := decodeSimple(t, s, "a", "x", 5) // its UID is uid-x
	hash := "0x" + sharding.HashField("uid-x")
	var n uint64
	if _, err := fmt.Sscanf(hash, "0x%x", &n); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		fmt.Sprintf("'%s', '0x10000000000000000'", hash):     true,
		fmt.Sprintf("'%s', '0x%016x'", hash, n+1):            true,
		fmt.Sprintf("'0x0000000000000000', '%s'", hash):      false,
		fmt.Sprintf("'0x%016x', '0x10000000000000000'", n+1): false,
		"'0x0000000000000000', '0x10000000000000000'":        true,
	} {
		if got := shardOf(t, "shardRange(object.metadata.uid, "+text+")").has(o); got != want {
			t.Errorf("%s has %s: %v", text, hash, got)
		}
	}
}

// TestShardsOfQueries: whatever else is asked for, the Shards of a question have its answer among
// them, each object once; so do their pages, and a continue token of one is none of another.
func TestShardsOfQueries(t *testing.T) {
	s := newStore(t, thingSpec)
	var objs []*Object
	for i := range 200 {
		objs = append(objs, decodeSimple(t, s, fmt.Sprint("n", i%7), fmt.Sprint("x", i), 5+i))
	}
	slices.SortFunc(objs, compareObjects)
	s.Replace("", objs, "1000")
	names := func(objects []*Object) (all []string) {
		for _, o := range objects {
			all = append(all, o.Key().String())
		}
		return all
	}
	for _, key := range []string{"object.metadata.uid", "object.metadata.namespace"} {
		for _, q := range []Query{{}, {Namespaces: []string{"n1", "n2"}}, {Namespaces: []string{"n3"}}} {
			whole, err := s.Select(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			var parts []string
			for _, shard := range shards(t, key, 3) {
				q.Shard = shard
				part, err := s.Select(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, names(part.Objects)...)
				var paged []string
				for token := ""; ; {
					page, err := s.Page(t.Context(), q, 7, token)
					if err != nil {
						t.Fatal(err)
					}
					paged = append(paged, names(page.Objects)...)
					if token = page.Continue; token == "" {
						break
					}
					other := q
					other.Shard = nil
					if _, err := s.Page(t.Context(), other, 7, token); err == nil {
						t.Error("a token of a shard is one of all objects")
					}
				}
				if !slices.Equal(paged, names(part.Objects)) {
					t.Errorf("pages of %s have %v, want %v", shard, paged, names(part.Objects))
				}
			}
			want := names(whole.Objects)
			slices.Sort(parts)
			slices.Sort(want)
			if !slices.Equal(parts, want) {
				t.Errorf("shards by %s have %d objects, want %d", key, len(parts), len(want))
			}
		}
	}
}

// TestNoShard: what selects everything is no Shard, and what cannot be read is refused.
func TestNoShard(t *testing.T) {
	for _, s := range []sharding.Selector{nil, sharding.Everything()} {
		if shard, err := NewShard(s); shard != nil || err != nil {
			t.Errorf("%v: %v, %v", s, shard, err)
		}
	}
	whole := sharding.ShardRangeRequirement{Key: "object.metadata.uid", Start: "0x0000000000000000", End: "0x10000000000000000"}
	for name, change := range map[string]func(r *sharding.ShardRangeRequirement){
		"fields":  func(r *sharding.ShardRangeRequirement) { r.Key = "object.metadata.name" },
		"no hash": func(r *sharding.ShardRangeRequirement) { r.Start = "0xg" },
		"no end":  func(r *sharding.ShardRangeRequirement) { r.End = "0x0000000000000000" },
	} {
		r := whole
		change(&r)
		if _, err := NewShard(sharding.NewSelector(whole, r)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v, want something about %s", r, err, name)
		}
	}
}

func BenchmarkShard(b *testing.B) {
	s := newStore(b, thingSpec)
	o := decodeSimple(b, s, "a", "x", 5)
	shard := shards(b, "object.metadata.uid", 2)[0]
	b.ReportAllocs()
	for b.Loop() {
		shard.has(o)
	}
}

// TestStoreOfShard: a Store that is to have one shard has that alone of what an API server that
// knows no shards tells, in lists, events and snapshots, and is as far as all of it.
func TestStoreOfShard(t *testing.T) {
	spec := thingSpec
	spec.ShardSelector = shards(t, "object.metadata.uid", 2)[1].String()
	s, other := newStore(t, spec), newStore(t, thingSpec)
	selector, err := parser.Parse(spec.ShardSelector)
	if err != nil {
		t.Fatal(err)
	}
	mine := func(uid string) bool {
		in, err := selector.Matches(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}})
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	uidOf := func(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012d", n*0x9e3779b1&0xffffffff, n) }
	decode := func(s *Store, n, version int) *Object {
		o, err := s.Decode(simple("a", fmt.Sprint("x", n), uidOf(n), fmt.Sprint(version)), "example.com/v1", "Thing")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	var listed, all []*Object
	for n := range 50 {
		listed, all = append(listed, decode(s, n, 10)), append(all, decode(other, n, 10))
	}
	s.Replace("", listed, "100")
	other.Replace("", all, "100")
	for n := range 100 {
		s.Apply("", Modified, decode(s, n, 101+n))
		other.Apply("", Modified, decode(other, n, 101+n))
	}
	for n := range 10 {
		s.Apply("", Deleted, decode(s, n, 300+n))
		other.Apply("", Deleted, decode(other, n, 300+n))
	}
	batch, _ := other.TakeChanges()
	restored := newStore(t, spec)
	if err := restored.Restore(batch.Saved, slices.Collect(batch.Records())); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]*Store{"told": s, "restored": restored} {
		held := 0
		for n := range 100 {
			uid := uidOf(n)
			_, ok := s.Get(Key{Namespace: "a", Name: fmt.Sprint("x", n)})
			if want := n >= 10 && mine(uid); ok != want || s.Selects("a", uid) != mine(uid) {
				t.Errorf("%s: object %d is held: %v, want %v; it is selected: %v", what, n, ok, want, s.Selects("a", uid))
			} else if ok {
				held++
			}
		}
		if b, ok := s.TakeChanges(); !ok || b.Saved.ResourceVersions[""] != "309" || held < 10 || held > 80 {
			t.Errorf("%s: %d objects of %+v", what, held, b.Saved)
		}
		if s.Covers("a") {
			t.Errorf("%s: it is said to have all objects", what)
		}
	}
}

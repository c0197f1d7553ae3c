package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache/rawjson"
)

// asideThing is an object with values of all kinds: some of which few objects have the same, some of
// which many, and some that are long.
func asideThing(t *testing.T, s *Store, r *rand.Rand, i, version int) *Object {
	t.Helper()
	some := []string{`"500m"`, `"1"`, `"1Gi"`, "2", "0.1", `"100n"`}
	times := []string{`"2026-01-02T00:00:00Z"`, `"2025-12-31T23:59:59Z"`, `"10"`, `"b"`}
	spec := []string{
		fmt.Sprintf(`"ofSets":"set-%d"`, i/40*7919%9973), fmt.Sprintf(`"own":"own-%d"`, i*7919%99991),
		fmt.Sprintf(`"list":[{"v":%s,"w":"%d"},{"v":%s}]`, pick(r, some...), i, pick(r, some...)),
		fmt.Sprintf(`"long":%q`, strings.Repeat(pick(r, "x", "y"), 2*asideLong)),
	}
	if r.IntN(5) > 0 {
		spec = append(spec, fmt.Sprintf(`"few":%s`, pick(r, some...)), fmt.Sprintf(`"mixed":%s`, pick(r, times...)))
	}
	return decodedThing(t, s, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"team-%d","name":"thing-%06d","resourceVersion":"%d"},
		"spec":{%s}}`, i%3, i, version, strings.Join(spec, ",")))
}

func asideStore(t *testing.T, r *rand.Rand, count int) (*Store, []*Object) {
	t.Helper()
	s := newStore(t, Spec{Resource: podResource, Kind: "Thing", Namespaced: true, Indexes: map[string]string{"sets": "spec.ofSets"}})
	objects := make([]*Object, count)
	for i := range objects {
		objects[i] = asideThing(t, s, r, i, i+1)
	}
	s.Replace("", objects, fmt.Sprint(count))
	slices.SortFunc(objects, compareObjects)
	return s, objects
}

// TestRankAside: where no column has what is sorted by, objects are put in order by their texts if
// many have the same and they are short, and then as their values are; if not, nobody goes on with
// it, and holds all of them.
func TestRankAside(t *testing.T) {
	const count = 4 * asideFrom
	r := rand.New(rand.NewPCG(5, 1))
	_, objects := asideStore(t, r, count)
	for path, shared := range map[string]bool{
		"spec.few": true, "-spec.ofSets": true, "spec.none": true, "spec.few,-spec.mixed": true, "spec.list[*].v": true, "-spec.list[*].v": true,
		"spec.own": false, "spec.long": false, "spec.list": false, "spec.list[0].v": false, "spec": false,
	} {
		order, err := ParseOrder(path)
		if err != nil {
			t.Fatal(err)
		}
		var paths []rawjson.Path
		for _, k := range order {
			paths = append(paths, k.Path)
		}
		ranked, err := order.rankAside(t.Context(), &located{objects: objects}, paths, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !shared {
			if ranked != nil {
				t.Errorf("%s: what %d objects have was kept and compared", path, count)
			}
			continue
		}
		want := sortedPlainly(t, order, objects)
		if len(ranked) != count {
			t.Errorf("%s: nothing is in order", path)
			continue
		}
		for i, n := range ranked {
			if objects[n] != want[i] {
				t.Errorf("%s: object %d is %s, want %s", path, i, objects[n].Key(), want[i].Key())
				break
			}
		}
	}
	few, err := ParseOrder("spec.few")
	if err != nil {
		t.Fatal(err)
	}
	if ranked, err := few.rankAside(t.Context(), &located{objects: objects[:asideFrom-1]}, []rawjson.Path{few[0].Path}, nil); ranked != nil || err != nil {
		t.Errorf("few objects are worth while: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if ranked, err := few.rankAside(cancelled, &located{objects: objects}, []rawjson.Path{few[0].Path}, nil); ranked != nil || err == nil {
		t.Error("it goes on for nobody")
	}
}

func sortedPlainly(t *testing.T, order Order, objects []*Object) []*Object {
	t.Helper()
	want := slices.Clone(objects)
	slices.SortFunc(want, compareObjects)
	if err := order.Sort(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	return want
}

// TestSortAside: whoever asks, and whatever a column has of it, objects are in the order that their
// values have among each other, while they change.
func TestSortAside(t *testing.T) {
	const count = 3 * asideFrom
	r := rand.New(rand.NewPCG(6, 1))
	s, _ := asideStore(t, r, count)
	scopes := []Scope{WholeScope(), NewScope([]string{"team-0", "team-1"}, nil)}
	version := count
	for range 80 {
		for range r.IntN(40) {
			version++
			s.Apply("", Modified, asideThing(t, s, r, r.IntN(count), version))
		}
		order, err := ParseOrder(pick(r, "spec.few", "-spec.mixed", "spec.few,-spec.mixed", "-spec.list[*].v", "spec.own", "spec.ofSets", "spec.few,spec.ofSets"))
		if err != nil {
			t.Fatal(err)
		}
		reader := &Reader{store: s, scope: scopes[r.IntN(len(scopes))]}
		found, err := reader.Select(t.Context(), Query{Sort: order})
		if err != nil {
			t.Fatal(err)
		}
		if want := sortedPlainly(t, order, found.Objects); !slices.Equal(found.Objects, want) {
			t.Fatalf("order %s of %d objects is another one", order, len(want))
		}
	}
}

// TestAsideMost: however many objects there are of each text, all texts together take no more
// memory than they may.
func TestAsideMost(t *testing.T) {
	var a aside
	for i := range 2 * asideMost / asideLong {
		if _, err := a.code(fmt.Appendf(nil, "%0*d", asideLong, i), 100); err != nil {
			break
		}
	}
	if a.texts.held > asideMost+textBlock {
		t.Errorf("texts hold %d bytes", a.texts.held)
	}
	if a.texts.len() < asideMost/asideLong/2 {
		t.Errorf("there are %d texts only", a.texts.len())
	}
}

package cache

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var valuesSpec = Spec{
	Resource: Resource{Cluster: "c", GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}},
	Kind:     "Thing", Namespaced: true, Watch: true,
	Indexes: map[string]string{"value": "spec.values[*]", "other": "spec.others[*]"},
}

// valued returns an object with labels and values, quoted or not.
func valued(t testing.TB, s *Store, name string, version int, labels, values, others []byte) *Object {
	t.Helper()
	raw := fmt.Appendf(nil, `{"metadata":{"namespace":"x","name":%q,"uid":%q,"resourceVersion":"%d","labels":{%s}},"spec":{"values":[%s],"others":[%s]}}`,
		name, name, version, labels, values, others)
	o, err := s.Decode(raw, "example.com/v1", "Thing")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// enumerate writes format with the numbers from first on, n of them.
func enumerate(format string, first, n int) (list []byte) {
	for i := first; i < first+n; i++ {
		if len(list) > 0 {
			list = append(list, ',')
		}
		list = fmt.Appendf(list, format, i)
	}
	return list
}

// TestManyValuesReplaced: an update costs in the number of values of its object,
// or a little more; in the square of it or its cube, this would not come to an
// end, and the Store would be locked meanwhile.
func TestManyValuesReplaced(t *testing.T) {
	const n = 20_000
	s := newStore(t, valuesSpec)
	s.Replace("", nil, "1")
	for version, first := range []int{0, n, n / 2, 0} {
		s.Apply("", Modified, valued(t, s, "a", version+2, nil, enumerate("%d", first, n), nil))
	}
	s.Apply("", Modified, valued(t, s, "a", 10, enumerate(`"l%d":"x"`, 0, n), nil, nil))
	s.Apply("", Modified, valued(t, s, "a", 11, enumerate(`"l%d":"y"`, 1, n), nil, enumerate("%d", 0, 1)))
	for name, want := range map[string]struct{ values, groups int }{
		"value": {0, 0}, "other": {1, 1}, LabelIndex: {n, n},
	} {
		idx := s.contents.indexes[name]
		if len(idx.postings) != want.values || len(idx.groups) != want.groups {
			t.Errorf("index %s: %d values in %d groups, want %d in %d", name, len(idx.postings), len(idx.groups), want.values, want.groups)
		}
	}
}

// TestGroups: groups are right whatever leaves an object, comes to it or stays,
// few or many.
func TestGroups(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			some := func(format string) []byte {
				return enumerate(format, r.IntN(40), pick(r, 0, 1, 3, r.IntN(30), r.IntN(120)))
			}
			s := newStore(t, valuesSpec)
			s.Replace("", nil, "1")
			for version := range 150 {
				name := pick(r, "a", "b", "c")
				o := valued(t, s, name, version+2, some(`"l%d":"`+pick(r, "x", "y")+`"`), some(`"v%d"`), some("%d"))
				s.Apply("", pick(r, Modified, Modified, Modified, Deleted), o)
				checkContents(t, s)
			}
		})
	}
}

package cache

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/informerd/informerd/cache/rawjson"
)

var excerptPaths = []string{"metadata.name", "status.podIP", "spec.nodeName", "spec.containers[*].resources.requests.cpu", "status.conditions", "spec.volumes[0].name", "metadata.annotations"}

// TestExcerptsOfSiblings: whatever objects are read before, and by whom, an excerpt is what is read
// of the object.
func TestExcerptsOfSiblings(t *testing.T) {
	run := newFamilyRun(t, 600, 3)
	var inOrder []*Object
	run.store.contents.tree.Scan(func(e entry) bool {
		inOrder = append(inOrder, e.obj)
		if n := len(inOrder); n%7 == 0 { // as it is told of what was deleted
			inOrder = append(inOrder, e.obj.at("999999999"))
		}
		return true
	})
	mixed := slices.Clone(inOrder)
	run.rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })

	paths := mustPaths(t, excerptPaths...)
	for _, paths := range append([][]rawjson.Path{paths}, slices.Collect(slices.Chunk(paths, 1))...) {
		x, whole := newExcerpts(paths), rawjson.NewExcerpt(paths)
		var wg sync.WaitGroup
		for _, objects := range [][]*Object{inOrder, mixed, inOrder} {
			wg.Go(func() {
				for _, o := range objects {
					plain, err := o.JSON()
					if err != nil {
						t.Error(err)
						return
					}
					got, size, err := x.append([]byte("before"), o)
					if want := whole.Append([]byte("before"), plain); err != nil || size != len(plain) || !bytes.Equal(got, want) {
						t.Errorf("%v of %s: %s (%d, %v), want %s", paths, o.Key(), got, size, err, want)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestShapesAreFollowed: of siblings in a row most but the first beside each template are cut out
// without being looked through, and those of all over the cluster are looked through.
func TestShapesAreFollowed(t *testing.T) {
	run := newFamilyRun(t, 600, 3)
	e := rawjson.NewExcerpt(mustPaths(t, excerptPaths...))
	var s templateShape
	templates, beside, cut := map[*dictionary]bool{}, 0, 0
	run.store.contents.tree.Scan(func(entry entry) bool {
		if o := entry.obj; o.dict != nil && o.dict.template != nil {
			templates[o.dict] = true
			beside++
			plain, err := o.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if !s.steps.Read(o.data()) {
				t.Fatalf("what %s differs in cannot be read", o.Key())
			}
			if s.follow(e, o.dict) {
				if _, ok := s.shape.Append(nil, plain, &s.steps); ok {
					cut++
				}
			}
		}
		return true
	})
	t.Logf("%d of %d beside %d templates", cut, beside, len(templates))
	if beside < 150 || cut < beside/2 {
		t.Errorf("%d of %d were cut out", cut, beside)
	}
	var alternating templateShape
	two := slices.Collect(maps.Keys(templates))[:2]
	for i := range 100 {
		if alternating.follow(e, two[i%2]) {
			t.Fatal("a shape is taken for one object")
		}
	}
}

// TestTallyOfExcerpts: a Tally that has nothing at hand says of each object what is in it.
func TestTallyOfExcerpts(t *testing.T) {
	run := newFamilyRun(t, 600, 4)
	result, err := run.store.Select(t.Context(), Query{})
	if err != nil {
		t.Fatal(err)
	}
	sets := [][]rawjson.Path{mustPaths(t, "spec.nodeName", "status.phase"), mustPaths(t, "spec.containers[*].image"), nil}
	tally := result.Tally(sets...)
	if tally.excerpts == nil {
		t.Fatal("objects are read as a whole")
	}
	values := func(set int, json []byte) (text string) {
		e, err := rawjson.CompileExtractor(sets[set])
		if err == nil {
			err = e.Each(json, func(v rawjson.Value) bool {
				text += fmt.Sprintf("%d=%s ", v.Path, v.Text)
				return true
			})
		}
		if err != nil {
			t.Error(err)
		}
		return text
	}
	var mu sync.Mutex
	got, want := map[string]int{}, map[string]int{}
	err = tally.Read(t.Context(), func(_, objects int, which Sets, json []byte) error {
		mu.Lock()
		defer mu.Unlock()
		for set := range sets {
			if which.Has(set) && len(sets[set]) > 0 {
				got[values(set, json)] += objects
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, plain := range run.is {
		for set := range sets[:2] {
			want[values(set, plain)]++
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

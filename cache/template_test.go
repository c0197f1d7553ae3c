package cache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// familyRun is a Store of pods that are made, changed and deleted, what each of them is, and a
// disk that is saved to.
type familyRun struct {
	*testing.T
	rng     *rand.Rand
	store   *Store
	disk    *disk
	version int
	is      map[Key][]byte // as they are kept
	pods    map[int]Key
}

func newFamilyRun(t *testing.T, pods int, seed uint64) *familyRun {
	run := &familyRun{T: t, rng: rand.New(rand.NewPCG(seed, 5)), disk: &disk{}, version: pods, is: map[Key][]byte{}, pods: map[int]Key{}}
	run.store = newStore(t, podSpec())
	var objs []*Object
	for i := range pods {
		objs = append(objs, run.decode(i, i+1))
	}
	run.store.Replace("", objs, strconv.Itoa(pods))
	return run
}

// decode is pod i at a version, which is what it is from then on.
func (run *familyRun) decode(i, version int) *Object {
	run.Helper()
	raw := realPod(i, version)
	if run.rng.IntN(8) == 0 { // unlike its siblings
		noise := make([]byte, 600)
		for n := range noise {
			noise[n] = byte(run.rng.Uint32())
		}
		raw = bytes.Replace(raw, []byte(`"annotations":{`), fmt.Appendf(nil, `"annotations":{"noise":"%x",`, noise), 1)
	}
	o, err := run.store.Decode(raw, "", "")
	if err != nil {
		run.Fatal(err)
	}
	want, _, _, err := run.store.extraction.Load().object(raw, nil, "", "")
	if err != nil || want.Key() != o.Key() {
		run.Fatal(err)
	}
	_, plain, _, _ := run.store.extraction.Load().object(raw, nil, "", "")
	run.is[o.Key()], run.pods[i] = plain, o.Key()
	return o
}

// change does what may happen to the pods, in a random order.
func (run *familyRun) change() {
	run.Helper()
	i := run.rng.IntN(440)
	run.version++
	switch _, there := run.pods[i]; {
	case there && run.rng.IntN(3) == 0:
		o := run.decode(i, run.version)
		run.store.Apply("", Deleted, o)
		delete(run.is, o.Key())
		delete(run.pods, i)
	case there:
		run.store.Apply("", Modified, run.decode(i, run.version))
	default:
		run.store.Apply("", Added, run.decode(i, run.version))
	}
}

// save commits, gives back, or commits what was given back before.
func (run *familyRun) save() {
	run.Helper()
	b, ok := run.store.TakeChanges()
	if !ok {
		return
	}
	if run.rng.IntN(3) == 0 {
		run.store.GiveBack(b)
		return
	}
	run.disk.commit(b)
	for _, r := range run.disk.records {
		if _, ok := run.disk.saved.Dictionaries[r.Dictionary]; r.Dictionary != 0 && !ok {
			run.Fatalf("%s is held beside %d, which is not saved", r.Key, r.Dictionary)
		}
	}
	needed := map[uint32]bool{}
	for _, r := range run.disk.records {
		needed[r.Dictionary] = true
	}
	for id, saved := range run.disk.saved.Dictionaries {
		if IsTemplate(saved) && !needed[id] {
			run.Fatalf("template %d is saved, and nothing is held beside it", id)
		}
	}
}

func (run *familyRun) check(s *Store) {
	run.Helper()
	checkContents(run, s)
	if s.Len() != len(run.is) {
		run.Fatalf("%d pods, want %d", s.Len(), len(run.is))
	}
	for k, want := range run.is {
		o, ok := s.Get(k)
		if !ok {
			run.Fatalf("no %s", k)
		}
		if got, err := o.JSON(); err != nil || !bytes.Equal(got, want) {
			run.Fatalf("%s is %s (%v), want %s", k, got, err, want)
		}
	}
}

// TestTemplatesRandom: whatever happens to siblings, all are what they are, the snapshot has what
// each of them is held beside and nothing else, and a restored Store goes on like that.
func TestTemplatesRandom(t *testing.T) {
	for seed := range uint64(4) {
		run := newFamilyRun(t, 400, seed)
		if n := run.store.Stats().Templates; n == 0 {
			t.Fatal("nothing is held beside a sibling")
		}
		for step := range 1500 {
			run.change()
			if step%40 == 0 {
				run.save()
			}
			if step%400 == 399 {
				run.retrain()
			}
			if step%500 == 499 {
				run.check(run.store)
				run.restart()
			}
		}
		run.check(run.store)
	}
}

// retrain has all objects packed anew with another dictionary.
func (run *familyRun) retrain() {
	run.Helper()
	p := &run.store.packing
	p.mu.Lock()
	d, err := train(newDictionaryID(), run.store.trainingSamples())
	if err != nil {
		run.Fatal(err)
	}
	p.dict.Store(d)
	p.mu.Unlock()
	run.store.repackAll(run.Context(), d)
	for _, o := range run.store.objectsOf("") {
		if o.dict.zstd() != d {
			run.Fatalf("%s is still packed with what was before", o.Key())
		}
	}
}

// restart goes on with a Store that was restored from the disk.
func (run *familyRun) restart() {
	run.Helper()
	for {
		b, ok := run.store.TakeChanges()
		if !ok {
			break
		}
		run.disk.commit(b)
	}
	next := newStore(run, podSpec())
	if err := next.Restore(run.disk.saved, run.disk.sorted()); err != nil {
		run.Fatal(err)
	}
	run.check(next)
	run.store = next
}

// TestTemplatesGo: with the last sibling the template goes, too.
func TestTemplatesGo(t *testing.T) {
	run := newFamilyRun(t, 400, 1)
	run.save()
	for i, k := range run.pods {
		run.version++
		o, _ := run.store.Get(k)
		run.store.Apply("", Deleted, o.at(strconv.Itoa(run.version)))
		delete(run.is, k)
		delete(run.pods, i)
	}
	if s := run.store.Stats(); s.Templates != 0 || s.Dictionaries != 0 || s.Bytes != 0 {
		t.Errorf("%d templates, %d dictionaries, %d bytes are left of nothing", s.Templates, s.Dictionaries, s.Bytes)
	}
	for range 20 {
		run.save()
	}
	if n := len(run.disk.saved.Dictionaries); n != 0 {
		t.Errorf("%d dictionaries are saved of nothing", n)
	}
}

// TestTemplatesAreQuick: where there are many objects, templates are packed quickly, others by themselves
// densely, and how well the dictionary fits is judged by those alone.
func TestTemplatesAreQuick(t *testing.T) {
	s := newStore(t, podSpec())
	samples := newFamilyRun(t, 400, 6)
	samples.store.Repack(t.Context())
	d := samples.store.packing.dict.Load()
	if d == nil {
		t.Fatal("there is no dictionary")
	}
	s.packing.dict.Store(d)
	s.packing.warm()
	s.packing.objects.set(quickObjects + 1)
	templates, alone, quickly := map[*dictionary]bool{}, 0, 0
	decode := func(i, version int) *Object {
		t.Helper()
		o, err := s.Decode(realPod(5000+i, version), "", "") // others than the dictionary has
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	coded := func(o *Object) (densely, quickly bool) {
		t.Helper()
		plain, err := o.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Equal(o.data(), d.compress(plain, dense)), bytes.Equal(o.data(), d.compress(plain, quick))
	}
	for i := range 400 {
		o := decode(i, i+1)
		if o.dict == nil || o.dict.template != nil {
			templates[o.dict] = true
			continue
		}
		alone++
		switch isDense, isQuick := coded(o); {
		case isQuick:
			quickly++
		case !isDense:
			t.Errorf("%s is packed otherwise", o.Key())
		}
	}
	if len(templates) < 3 || quickly != len(templates) {
		t.Fatalf("%d templates, %d of %d by themselves are packed quickly", len(templates), quickly, alone)
	}
	for held := range templates {
		plain, err := held.template.appendPlain(nil)
		if err != nil {
			t.Fatal(err)
		}
		if packed := d.compress(plain, quick); !bytes.Equal(held.template.data, packed) || len(d.compress(plain, dense)) >= len(packed) {
			t.Errorf("a template takes %d bytes, %d quickly", len(held.template.data), len(packed))
		}
	}
	if judged := s.packing.recent.objects.Load(); int(judged) != alone-quickly {
		t.Errorf("%d are judged by, of %d by themselves, %d of them packed quickly", judged, alone, quickly)
	}
}

// TestFewAreDense: of two or three siblings, where there are many objects, none is packed quickly when it has
// changed, and of two none when it is new.
func TestFewAreDense(t *testing.T) {
	for siblings := 2; siblings <= 3; siblings++ {
		s := newStore(t, podSpec())
		s.packing.dict.Store(newFamilyRun(t, 400, 6).store.packing.dict.Load())
		s.packing.warm()
		s.packing.objects.set(quickObjects + 1)
		d := s.packing.dict.Load()
		version := 0
		decode := func(i int) *Object {
			version++
			o, err := s.Decode(realPod(5000+i, version), "", "")
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		check := func(o *Object, when string) {
			t.Helper()
			plain, err := o.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if o.dict != d || !bytes.Equal(o.data(), d.compress(plain, dense)) {
				t.Errorf("%d siblings, %s: %s takes %d bytes, %d densely", siblings, when, o.Key(), len(o.data()), len(d.compress(plain, dense)))
			}
		}
		var objs []*Object
		for i := range siblings {
			o := decode(i)
			if i < 2 {
				check(o, "new")
			}
			objs = append(objs, o)
		}
		s.Replace("", objs, strconv.Itoa(version))
		s.packing.objects.set(quickObjects + 1)
		for round := range 3 {
			s.packing.families.forget()
			for i := range siblings {
				o := decode(i)
				check(o, fmt.Sprintf("changed %d times", round+1))
				s.Apply("", Modified, o)
				s.packing.objects.set(quickObjects + 1)
			}
		}
	}
}

// TestTemplatesFew: an owner of few objects has no template, however often they change: least of
// all one of what the same object was before.
func TestTemplatesFew(t *testing.T) {
	s := filledStore(t, 400)
	before := s.Stats().Templates
	version := 1000
	owned := func(i int, owner string) {
		t.Helper()
		version++
		o, err := s.Decode(bytes.ReplaceAll(realPod(1000+i, version), []byte("-aaaa-4bbb-"), []byte(owner)), "", "")
		if err != nil {
			t.Fatal(err)
		}
		s.Apply("", Modified, o)
	}
	for round := range 10 {
		owned(0, "-eeee-4bbb-")
		for i := range familyFrom - 1 {
			owned(1+i, "-ffff-4bbb-")
		}
		if n := s.Stats().Templates; n > before {
			t.Fatalf("round %d: %d templates, want %d", round, n, before)
		}
	}
	owned(familyFrom, "-ffff-4bbb-")
	if n := s.Stats().Templates; n != before+1 {
		t.Errorf("%d objects have no template", familyFrom)
	}
	checkContents(t, s)
}

// TestTemplatesAlternate: siblings of two kinds, as of a rollout, are held beside two templates,
// in whatever order they come.
func TestTemplatesAlternate(t *testing.T) {
	s := filledStore(t, 400)
	var filler strings.Builder // which no other sibling has
	for rng := rand.New(rand.NewPCG(8, 9)); filler.Len() < 4000; {
		fmt.Fprintf(&filler, `{"type":"%x"},`, rng.Uint64())
	}
	beside := 0
	for i := range 100 {
		raw := bytes.ReplaceAll(realPod(400, 1000+i), []byte("app-0020-"), fmt.Appendf(nil, "x%03d-", i))
		if i%2 == 0 {
			raw = bytes.Replace(raw, []byte(`"conditions":[`), []byte(`"conditions":[`+filler.String()), 1)
		}
		o, err := s.Decode(raw, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if o.dict.template != nil {
			beside++
		}
		before := s.Stats().Templates
		s.Apply("", Added, o)
		if n := s.Stats().Templates; i > 10 && n > before {
			t.Fatalf("sibling %d: another template", i)
		}
	}
	if beside < 85 {
		t.Errorf("%d of 100 are held beside a sibling", beside)
	}
	checkContents(t, s)
}

// TestTemplatesUnlike: objects of one owner that have hardly anything in common are held each by
// itself, and nothing else.
func TestTemplatesUnlike(t *testing.T) {
	s := newStore(t, thingSpec)
	rng := rand.New(rand.NewPCG(3, 4))
	var objs []*Object
	for i := range 600 {
		noise := make([]byte, 400)
		for n := range noise {
			noise[n] = byte(rng.Uint32())
		}
		raw := fmt.Appendf(nil, `{"metadata":{"name":"x%03d","namespace":"a","uid":"u%d","resourceVersion":"%d","ownerReferences":[{"apiVersion":"v1","kind":"T","name":"t","uid":"owner"}]},"data":"%x"}`, i, i, i+1, noise)
		o, err := s.Decode(raw, "v1", "Thing")
		if err != nil {
			t.Fatal(err)
		}
		objs = append(objs, o)
	}
	s.Replace("", objs, "1000")
	if n := s.Stats().Templates; n != 0 {
		t.Errorf("%d templates of what has nothing in common", n)
	}
	checkContents(t, s)
}

// TestTemplatesAfterRules: a Store that takes over from another one, of which the rules leave
// more out, has nothing of what its objects were held beside before.
func TestTemplatesAfterRules(t *testing.T) {
	s := filledStore(t, 400)
	spec := podSpec()
	spec.Drop = append(slices.Clone(spec.Drop), "metadata.annotations")
	from := newStore(t, spec)
	var objs []*Object
	for i := range 400 {
		o, err := from.Decode(realPod(i, 1000+i), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		objs = append(objs, o)
	}
	from.Replace("", objs, "2000")
	if _, err := s.TakeOver(from); err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		o, err := s.Decode(realPod(i, 3000+i), "v1", "Pod")
		if err != nil {
			t.Fatal(err)
		}
		s.Apply("", Modified, o)
	}
	if s.Stats().Templates == 0 {
		t.Fatal("nothing is held beside a sibling")
	}
	for d := range s.contents.templates {
		plain, err := plains.of(d)
		if err != nil || bytes.Contains(plain, []byte("cni.projectcalico.org")) {
			t.Errorf("template %d has what is dropped (%v)", d.id, err)
		}
	}
	checkContents(t, s)
}

// TestTemplateDamaged: what is no template is refused, and so is one whose dictionary is missing.
func TestTemplateDamaged(t *testing.T) {
	run := newFamilyRun(t, 400, 2)
	b, _ := run.store.TakeChanges()
	run.disk.commit(b)
	for id, saved := range run.disk.saved.Dictionaries {
		if !IsTemplate(saved) {
			continue
		}
		for what, damaged := range map[string][]byte{
			"cut":        saved[:len(templateMagic)+1],
			"nothing":    saved[:len(templateMagic)],
			"huge":       append(binary.AppendUvarint([]byte(templateMagic+"\x01"), 1<<40), saved...),
			"of another": append([]byte(templateMagic+"\x01\x10"), saved...),
			"of itself":  append(binary.AppendUvarint([]byte(templateMagic), uint64(id)), 16, 1),
		} {
			saved := run.disk.saved
			saved.Dictionaries = map[uint32][]byte{}
			for other, data := range run.disk.saved.Dictionaries {
				saved.Dictionaries[other] = data
			}
			saved.Dictionaries[id] = damaged
			if err := newStore(t, podSpec()).Restore(saved, run.disk.sorted()); err == nil {
				t.Errorf("%s: it was restored", what)
			}
		}
		return
	}
	t.Fatal("no template is saved")
}

// TestTemplateNumbers: no two templates get one number, and where none is left objects are held
// by themselves.
func TestTemplateNumbers(t *testing.T) {
	run := newFamilyRun(t, 400, 3)
	run.store.packing.families.forget()
	run.store.packing.families.numbers.last.Store(math.MaxUint32 - 1)
	seen := map[uint32]*dictionary{}
	for range 600 {
		run.change()
		for d := range run.store.contents.needed() {
			if other := seen[d.id]; other != nil && other != d {
				t.Fatalf("two are number %d", d.id)
			}
			seen[d.id] = d
		}
	}
	run.check(run.store)
}

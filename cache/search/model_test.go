package search

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// thing is an object of the model.
type thing struct {
	labels, annotations map[string]string
	images              []string
}

// model is a cluster as plain maps, searched the long way round.
type model map[string]map[string]thing // by resource, by namespace/name

// texts lists the texts of an object with what each is worth for a word; nil
// for a field that is not meant.
func (m model) texts(id string, o thing, field string) map[string]func(word, text string) int {
	fixed := func(points int) func(string, string) int { return func(string, string) int { return points } }
	all := map[string]func(string, string) int{}
	put := func(name, text string, points func(string, string) int) {
		if field == "" || field == name {
			all[name+" "+strings.ToLower(text)] = points
		}
	}
	namespace, name, _ := strings.Cut(id, "/")
	put("name", name, func(word, text string) int {
		switch {
		case word == text:
			return exactName
		case strings.HasPrefix(text, word):
			return nameStart
		}
		return nameWord
	})
	put("namespace", namespace, func(word, text string) int {
		if word == text {
			return exactPlace
		}
		return placeStart
	})
	for k, v := range o.labels {
		put("label", k+"="+v, fixed(atLabel))
	}
	for _, i := range o.images {
		put("image", i, fixed(atLabel))
	}
	for k, v := range o.annotations {
		if len(v) > maxAnnotation {
			put("annotation", k, fixed(atText))
		} else {
			put("annotation", k+"="+v, fixed(atText))
		}
	}
	return all
}

// find returns the points of every object that has all words.
func (m model) find(question string) map[string]int {
	found := map[string]int{}
	for resource, things := range m {
	next:
		for id, o := range things {
			total := 0
			for _, w := range strings.Fields(question) {
				points := m.points(resource, id, o, w)
				if points == 0 {
					continue next
				}
				total += points
			}
			found[resource+" "+id] = total
		}
	}
	return found
}

func (m model) points(resource, id string, o thing, w string) (best int) {
	field, word, ok := strings.Cut(w, ":")
	if !ok {
		field, word = "", w
	}
	namespace, _, _ := strings.Cut(id, "/")
	switch field {
	case "kind":
		if resource == word {
			return 1
		}
		return 0
	case "ns":
		if namespace == word {
			return 1
		}
		return 0
	}
	re := regexp.MustCompile(`(^|[^a-z0-9])` + regexp.QuoteMeta(word))
	for text, points := range m.texts(id, o, field) {
		_, text, _ = strings.Cut(text, " ")
		if re.MatchString(text) {
			best = max(best, points(word, text))
		}
	}
	if field == "" && resource == word {
		best = max(best, exactPlace)
	}
	return best
}

type random struct{ *rand.Rand }

func (r random) pick(options ...string) string { return options[r.IntN(len(options))] }
func (r random) word() string {
	return r.pick("web", "we", "db", "api", "a", "x1", "x", "node", "shop")
}

func (r random) name() string {
	s := r.word()
	for range r.IntN(3) {
		s += r.pick("-", ".") + r.word()
	}
	return s
}

func (r random) thing() thing {
	t := thing{labels: map[string]string{}, annotations: map[string]string{}}
	for range r.IntN(3) {
		t.labels[r.pick("app", "tier")] = r.name()
		t.annotations[r.pick("Note", "example.com/x")] = strings.Repeat(r.name()+" ", 1+r.IntN(8))
		t.images = append(t.images, "reg.example/"+r.word()+"/"+r.word()+":1."+fmt.Sprint(r.IntN(3)))
	}
	return t
}

func (r random) question() string {
	var terms []string
	for range 1 + r.IntN(3) {
		switch r.IntN(8) {
		case 0:
			terms = append(terms, "kind:"+r.pick("pods", "configmaps"))
		case 1:
			terms = append(terms, "ns:"+r.pick("a", "web"))
		case 2:
			terms = append(terms, r.pick("label:", "image:", "name:", "annotation:")+r.word())
		case 3:
			terms = append(terms, r.pick("pods", "configmaps", "label:app="+r.word(), "image:"+r.word()+":1"))
		default:
			name := r.name()
			terms = append(terms, name[:1+r.IntN(len(name))])
		}
	}
	return strings.Join(terms, " ")
}

// TestModel: after any changes any question finds what a look at every object
// would, with the same points, and the order follows the points.
func TestModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random{rand.New(rand.NewPCG(seed, 2))}
			w, m := newWorld(t, Options{}), model{"pods": {}, "configmaps": {}}
			for range 25 {
				for range 1 + r.IntN(15) {
					w.step(r, m)
				}
				for range 12 {
					w.compare(r.question(), m)
				}
			}
			followed := w.search.Stats()
			anew := w.newSearch(Options{})
			w.search.Close()
			w.search = anew
			w.compare("a", m)
			if s := anew.Stats(); s != followed {
				t.Errorf("the search that followed holds %+v, one made anew %+v", followed, s)
			}
		})
	}
}

func (w *world) step(r random, m model) {
	resource, id := r.pick("pods", "configmaps"), r.pick("a", "web", "b-shop")+"/"+r.name()
	if r.IntN(3) == 0 {
		for id = range m[resource] {
			break
		}
		if _, ok := m[resource][id]; ok {
			delete(m[resource], id)
			w.Delete(resource, id)
		}
		return
	}
	o := r.thing()
	m[resource][id] = o
	w.put(resource, id, o)
}

func (w *world) put(resource, id string, o thing) {
	images := ""
	for n, i := range o.images {
		if n > 0 {
			images += ","
		}
		images += fmt.Sprintf(`{"image":%q}`, i)
	}
	w.Put(resource, id, fmt.Sprintf(`{"metadata":{"labels":%s,"annotations":%s},"spec":{"containers":[%s]}}`, toJSON(o.labels), toJSON(o.annotations), images))
}

func toJSON(m map[string]string) string {
	var parts []string
	for k, v := range m {
		parts = append(parts, fmt.Sprintf("%q:%q", k, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (w *world) compare(question string, m model) {
	w.TB.Helper()
	w.compareAs(cache.WholeSight(), question, m)
}

// compareAs compares what a sight finds with a model of what it sees.
func (w *world) compareAs(sight cache.Sight, question string, m model) {
	w.TB.Helper()
	want := m.find(question)
	hits, a := w.findAs(sight, question)
	got := map[string]int{}
	for i, h := range a.Hits {
		got[hits[i]] = h.Points
		if i > 0 && h.Points > a.Hits[i-1].Points {
			w.TB.Errorf("%s: %s has more points than the one before", question, hits[i])
		}
	}
	if !maps.Equal(got, want) || a.Total != len(want) {
		w.TB.Fatalf("%s: total %d\n got %v\nwant %v", question, a.Total, got, want)
	}
	count := 0
	for _, f := range a.Kinds {
		count += f.Objects
	}
	if count != a.Total || !slices.IsSortedFunc(a.Kinds, func(a, b Facet) int { return b.Objects - a.Objects }) {
		w.TB.Errorf("%s: kinds %v of %d objects", question, a.Kinds, a.Total)
	}
}

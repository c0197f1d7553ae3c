package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow/followtest"
)

func shop(t testing.TB) *world {
	w := newWorld(t, Options{Texts: map[string][]string{"configmaps": {"data.note", "data.list[*]"}}})
	w.Put("namespaces", "shop", "{}")
	w.Put("namespaces", "shop-staging", "{}")
	w.Put("deployments.apps", "shop/web", `{"metadata":{"labels":{"app":"web"}},"spec":{"template":{"spec":{"containers":[{"image":"registry.example/shop/web:1.2"}]}}}}`)
	w.Put("deployments.apps", "shop/web-frontend", `{"metadata":{"labels":{"app":"frontend","team":"web"}}}`)
	w.Put("deployments.apps", "pay/api-web", `{}`)
	w.Put("deployments.apps", "pay/cobweb", `{}`)
	w.Put("deployments.apps", "pay/api", `{"metadata":{"annotations":{"docs.example.com/page":"Web guide","long":"`+strings.Repeat("web ", 20)+`"}}}`)
	w.Put("pods", "shop/web-1-x", `{"metadata":{"labels":{"app":"web"}},"spec":{"initContainers":[{"image":"busybox"}],"containers":[{"image":"registry.example/shop/web:1.2"}]}}`)
	w.Put("configmaps", "shop-staging/settings", `{"data":{"note":"Ask Ada about the WEB tier","list":["red",7]}}`)
	w.Put("services", "shop/db", `{}`)
	w.Put("clusterroles.rbac.authorization.k8s.io", "system:node-reader", `{}`)
	return w
}

func TestFind(t *testing.T) {
	w := shop(t)
	for question, want := range map[string][]string{
		// The name exactly, its beginning, a word in it, a label or image, the rest.
		"web": {"deployments.apps shop/web", "pods shop/web-1-x", "deployments.apps shop/web-frontend", "deployments.apps pay/api-web",
			"deployments.apps pay/api", "configmaps shop-staging/settings"},
		"WEB-F":                            {"deployments.apps shop/web-frontend"},
		"web- x":                           {"pods shop/web-1-x"},
		"web-1":                            {"pods shop/web-1-x"},
		"front":                            {"deployments.apps shop/web-frontend"},
		"nobody":                           nil,
		"eb":                               nil,
		"svc":                              {"services shop/db"},
		"deploy api":                       {"deployments.apps pay/api", "deployments.apps pay/api-web"},
		"kind:deploy ns:pay":               {"deployments.apps pay/api", "deployments.apps pay/cobweb", "deployments.apps pay/api-web"},
		"kind:*.apps ns:shop":              {"deployments.apps shop/web", "deployments.apps shop/web-frontend"},
		"ns:shop* kind:cm":                 {"configmaps shop-staging/settings"},
		"kind:Deployments.v1.apps ns:shop": {"deployments.apps shop/web", "deployments.apps shop/web-frontend"},
		"label:app=web":                    {"deployments.apps shop/web", "pods shop/web-1-x"},
		"label:team":                       {"deployments.apps shop/web-frontend"},
		"image:busy":                       {"pods shop/web-1-x"},
		"image:shop/web:1":                 {"deployments.apps shop/web", "pods shop/web-1-x"},
		"image:web kind:pod":               {"pods shop/web-1-x"},
		"name:web ns:pay":                  {"deployments.apps pay/api-web"},
		"annotation:guide":                 {"deployments.apps pay/api"},
		`"web guide"`:                      {"deployments.apps pay/api"},
		`"guide web"`:                      nil,
		"text:ada":                         {"configmaps shop-staging/settings"},
		"text:7":                           {"configmaps shop-staging/settings"},
		"system:node":                      {"clusterroles.rbac.authorization.k8s.io system:node-reader"},
		"namespaces shop":                  {"namespaces shop", "namespaces shop-staging"},
		"stag":                             {"namespaces shop-staging", "configmaps shop-staging/settings"},
	} {
		if got, a := w.find(question); !slices.Equal(got, want) || a.Total != len(want) {
			t.Errorf("%s: %d\n got %q\nwant %q", question, a.Total, got, want)
		}
	}
}

func TestAnswer(t *testing.T) {
	w := shop(t)
	terms, err := Parse("web")
	if err != nil {
		t.Fatal(err)
	}
	a, err := w.search.Find(t.Context(), Query{Terms: terms, Limit: 2, Sight: cache.WholeSight()})
	if err != nil {
		t.Fatal(err)
	}
	if a.Total != 6 || len(a.Hits) != 2 || a.Hits[0].Key.Name != "web" || a.Hits[0].Kind != "Deployment" || a.Hits[0].Matches != nil {
		t.Errorf("answer = %+v", a)
	}
	if want := []Facet{{"deployments.apps", 4}, {"configmaps", 1}, {"pods", 1}}; !slices.Equal(a.Kinds, want) {
		t.Errorf("kinds = %v, want %v", a.Kinds, want)
	}
	if want := []Facet{{"shop", 3}, {"pay", 2}, {"shop-staging", 1}}; !slices.Equal(a.Namespaces, want) {
		t.Errorf("namespaces = %v, want %v", a.Namespaces, want)
	}
	_, a = w.find("web kind:pod")
	if want := []Match{{"name", "web-1-x"}, {"label", "app=web"}, {"image", "registry.example/shop/web:1.2"}}; !slices.Equal(a.Hits[0].Matches, want) {
		t.Errorf("matches = %v, want %v", a.Hits[0].Matches, want)
	}
}

func TestUnknownKind(t *testing.T) {
	w := shop(t)
	for question, message := range map[string]string{
		"kind:deployment.example.com": "no kind is called",
		"kind:apps":                   "did you mean deployments.apps?",
		"kind:xyz":                    "as kubectl does",
	} {
		terms, err := Parse(question)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.search.Find(t.Context(), Query{Terms: terms, Sight: cache.WholeSight()})
		if invalid, ok := errors.AsType[*cache.InvalidError](err); !ok || invalid.Parameter != "q" || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want an InvalidError of q with %q", question, err, message)
		}
	}
}

// TestChanges: what changes is found at once, and nothing else is left.
func TestChanges(t *testing.T) {
	w := shop(t)
	check := func(question string, want ...string) {
		t.Helper()
		if got, _ := w.find(question); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", question, got, want)
		}
	}
	w.search.Stats()
	check("image:busybox", "pods shop/web-1-x")
	w.Put("pods", "shop/web-1-x", `{"metadata":{"labels":{"app":"other"}}}`)
	check("image:busybox")
	check("label:app=other", "pods shop/web-1-x")
	w.Delete("pods", "shop/web-1-x")
	check("label:app=other")

	w.Resource("configmaps").State = cache.Forbidden
	if got, a := w.find("settings"); len(got) > 0 || len(a.Unanswered) != 1 || a.Unanswered[0].Spec.Name() != "configmaps" {
		t.Errorf("found %q of a resource that cannot be read; unanswered %v", got, a.Unanswered)
	}
	w.Resource("configmaps").State = cache.Live
	check("settings", "configmaps shop-staging/settings")
	w.Resources = slices.DeleteFunc(w.Resources, func(r *followtest.Resource) bool { return r.Spec().Name() == "configmaps" })
	if got, a := w.find("settings"); len(got) > 0 || len(a.Unanswered) > 0 {
		t.Errorf("found %q of a resource that is gone; unanswered %v", got, a.Unanswered)
	}
	w.search.Close()
	if s := w.search.Stats(); s != (Stats{}) || w.Resource("services").Store().Stats().Subscribers != 0 {
		t.Errorf("after Close: %+v", s)
	}
	check("db", "services shop/db")
}

// TestCapitals: capitals count nowhere, and what has some is still found when others were read
// after it.
func TestCapitals(t *testing.T) {
	w := shop(t)
	long := strings.Repeat("Z", maxAnnotation+1)
	w.Put("clusterroles.rbac.authorization.k8s.io", "/System:Admin", `{"metadata":{"labels":{"Team":"Core"},
		"annotations":{"Docs.example.com/Who":"Ann\u0041","docs.example.com/ÄB":"c","docs.example.com/long":"`+long+`"}}}`)
	for i := range 100 {
		w.Put("services", fmt.Sprintf("shop/Other-%d", i), fmt.Sprintf(`{"metadata":{"labels":{"N":"V%d"},"annotations":{"Docs.example.com/N":"V%d"}}}`, i, i))
	}
	for _, question := range []string{"name:system:admin", "SYSTEM:ADMIN", "label:team=core", "annotation:docs.example.com/who=anna",
		"annotation:docs.example.com/äb=c", "annotation:docs.example.com/long"} {
		if got, _ := w.find(question); !slices.Equal(got, []string{"clusterroles.rbac.authorization.k8s.io System:Admin"}) {
			t.Errorf("%s: %q", question, got)
		}
	}
	if got, _ := w.find("annotation:" + strings.ToLower(long)); len(got) > 0 {
		t.Errorf("the long value was looked at: %q", got)
	}
}

func TestCancelled(t *testing.T) {
	w := shop(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.search.Find(ctx, Query{Terms: []Term{{Any, "web"}}, Sight: cache.WholeSight()}); !errors.Is(err, context.Canceled) {
		t.Errorf("Find() = %v, want context.Canceled", err)
	}
}

// TestSiblings: what siblings have in common is held once, also after each has changed, and none
// of it is left when the last one goes.
func TestSiblings(t *testing.T) {
	w := newWorld(t, Options{})
	pod := func(i int, hash string) {
		w.Put("pods", fmt.Sprintf("shop/web-%s-%d", "x", i), fmt.Sprintf(`{"metadata":{"labels":{"app":"web","hash":%q},"annotations":{"ip":"10.0.0.%d","scrape":"yes"}}}`, hash, i))
	}
	for _, hash := range []string{"a", "b"} {
		for i := range 50 {
			pod(i, hash)
			w.find("web")
		}
		if sets := w.search.sets.Len(); sets > 3 { // the first of them has its texts by itself
			t.Errorf("50 siblings of %s have %d sets of texts", hash, sets)
		}
	}
	if got, _ := w.find("label:hash=b scrape 10.0.0.7"); !slices.Equal(got, []string{"pods shop/web-x-7"}) {
		t.Errorf("found %q", got)
	}
	if got, _ := w.find("label:hash=a"); len(got) > 0 {
		t.Errorf("found %q, which have changed", got)
	}
	for i := range 50 {
		w.Delete("pods", fmt.Sprintf("shop/web-x-%d", i))
	}
	w.find("web")
	if s := w.search.state; s.docs.Len()+s.values.Len()+s.sets.Len()+s.byValues.Len()+s.tokens.len()+s.tokens.lists.Len() > 0 {
		t.Errorf("%d objects, %d texts, %d sets and %d words are left", s.docs.Len(), s.values.Len(), s.sets.Len(), s.tokens.len())
	}
}

// TestWithinUnreadable: objects whose resource cannot be read any more are not
// asked for.
func TestWithinUnreadable(t *testing.T) {
	w := shop(t)
	w.find("settings")
	for _, k := range w.search.kinds {
		k.view.Hold(nil)
	}
	m := newMatch(w.search.state)
	if err := m.require(Term{Any, "settings"}); err != nil {
		t.Fatal(err)
	}
	m.see(cache.WholeSight())
	if _, err := m.within(t.Context(), &cache.Query{}); err != nil {
		t.Fatal(err)
	}
	if a := m.answer(&Query{}); a.Total != 0 {
		t.Errorf("found %d objects of what cannot be read", a.Total)
	}
}

func TestBadTexts(t *testing.T) {
	if _, err := New(nil, Options{Texts: map[string][]string{"pods": {"a..b"}}}); err == nil {
		t.Error("New() accepts a path that cannot be read")
	}
}

func TestParse(t *testing.T) {
	for question, want := range map[string]string{
		"  Web\tDB ":           "any:web any:db",
		"NS:Shop kind:Pod":     "namespace:shop kind:pod",
		`label:"a b" "c d"e`:   "label:a b any:c de",
		`"ns:shop"`:            "any:ns:shop",
		`ns\:shop`:             "any:ns:shop",
		"web:1.2 :x a:b":       "any:web:1.2 any:x any:a:b",
		"--web- .x":            "any:web- any:x",
		"image:/web":           "image:web",
		"ärger":                "any:ärger",
		"ns:shop-* kind:*.app": "namespace:shop-* kind:*.app",
	} {
		terms, err := Parse(question)
		var got []string
		for _, term := range terms {
			got = append(got, term.Field.String()+":"+term.Text)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("Parse(%q) = %q, %v, want %q", question, got, err, want)
		}
	}
	for question, message := range map[string]string{
		"":                       "column 1: no word",
		" \t ":                   "column 1: no word",
		"web -":                  `column 5: "-" has no letter`,
		"ns:":                    "column 4: ns: names a namespace",
		"web kind: x":            "column 10: kind: names a kind",
		"label:":                 `column 1: "label:" has no letter`,
		`a "b`:                   "column 3: the quote is not closed",
		`a \`:                    "column 3: nothing after",
		"ns:[":                   "column 1: ns:[ is not a glob",
		"a\xff":                  "column 1: not valid UTF-8",
		strings.Repeat("a ", 13): "column 25: more than 12 words",
		strings.Repeat("a", 513): "column 513: longer than 512",
	} {
		_, err := Parse(question)
		if invalid, ok := errors.AsType[*cache.InvalidError](err); !ok || invalid.Parameter != "q" || !strings.Contains(err.Error(), message) {
			t.Errorf("Parse(%q) = %v, want an InvalidError of q with %q", question, err, message)
		}
	}
}

// FuzzParse: what is accepted can be asked, and means the same when written
// out.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"web", `ns:a "b c" kind:p* image:x:1`, `\"`, "label:ä=", "a\x00b", `"a"b"c"`, "kind:[a-z]"} {
		f.Add(s)
	}
	w := shop(f)
	f.Fuzz(func(t *testing.T, question string) {
		terms, err := Parse(question)
		if err != nil {
			if _, ok := errors.AsType[*cache.InvalidError](err); !ok {
				t.Fatalf("Parse(%q) = %v", question, err)
			}
			return
		}
		if len(terms) == 0 || len(terms) > maxTerms {
			t.Fatalf("Parse(%q) = %v", question, terms)
		}
		var again strings.Builder
		for _, term := range terms {
			if term.Field != Any {
				again.WriteString(term.Field.String() + ":")
			}
			fmt.Fprintf(&again, `"%s" `, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(term.Text))
		}
		if got, err := Parse(again.String()); again.Len() <= maxQuestion && (err != nil || !slices.Equal(got, terms)) {
			t.Fatalf("Parse(%q) = %v, written out %q: %v, %v", question, terms, again.String(), got, err)
		}
		_, err = w.search.Find(context.Background(), Query{Terms: terms, Highlights: true, Sight: cache.WholeSight()})
		if _, ok := errors.AsType[*cache.InvalidError](err); err != nil && !ok {
			t.Fatalf("Find(%q): %v", question, err)
		}
	})
}

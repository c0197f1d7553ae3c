package server

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// questions are about every route that answers with objects, or with what is made of
// them. Each is of pods of all namespaces.
var questions = []string{
	"/v1/resources", "/v1/resources/pods", "/v1/resources/nodes",
	"/v1/resources/pods/objects", "/v1/resources/pods/objects?limit=1", "/v1/resources/pods/objects?count=false&limit=1",
	"/v1/resources/pods/objects?sort=-metadata.creationTimestamp&limit=1", "/v1/resources/pods/objects?sort=spec.nodeName&limit=1&explain=true",
	"/v1/resources/pods/objects?sort=-status.phase", "/v1/resources/pods/objects?namespace=*",
	"/v1/resources/pods/objects?filter=object.spec.tier==1", "/v1/resources/pods/objects?filter=object.spec.tier==1&explain=true",
	"/v1/resources/pods/objects?filter=object.spec.nodeName>='n2'&explain=true",
	"/v1/resources/pods/objects?labelSelector=app!=x&explain=true", "/v1/resources/pods/objects?index=node:n1",
	"/v1/resources/pods/objects?facets=spec.nodeName,metadata.namespace", "/v1/resources/pods/objects?groupBy=metadata.namespace&agg=count(),max(spec.nodeName)",
	"/v1/resources/pods/objects?view=table", "/v1/resources/pods/objects?output=csv", "/v1/resources/pods/objects?view=metadata",
	"/v1/resources/pods/objects/a/one", "/v1/resources/pods/objects/hidden/one", "/v1/resources/pods/objects/hidden/never",
	"/v1/resources/pods/indexes", "/v1/resources/pods/indexes/node", "/v1/resources/pods/indexes/namespace", "/v1/resources/pods/indexes/label?limit=2", "/v1/resources/pods/columns",
	"/v1/resources/pods/indexes/node/n9", "/v1/resources/pods/indexes/node/n1?explain=true",
	"/v1/query", "/v1/query?resources=pods,nodes", "/v1/query?resources=*&limit=1", "/v1/query?resources=pods&explain=true",
	"/v1/query?groupBy=metadata.namespace", "/v1/query?facets=metadata.namespace&view=table",
	"/v1/complete?for=resources", "/v1/search?q=one", "/v1/search?q=web&highlights=true", "/v1/graph/pods/a/one?depth=5", "/v1/graph/pods/hidden/one", "/v1/graph/dangling", "/v1/complete?for=paths&resource=pods", "/v1/complete?for=values&resource=pods&path=spec.nodeName",
	"/v1/health", "/v1/health?all&status=bad,progressing,unknown,good", "/v1/health?namespace=*&limit=1", "/v1/health?labelSelector=app&resources=pods",
	"/v1/health/pods/a/one", "/v1/health/pods/hidden/one", "/v1/health/pods/hidden/never",
	"/v1/resources/pods/objects?filter=health(object)=='progressing'",
	"/v1/complete?for=values&resource=pods&path=metadata.namespace", "/v1/complete?for=values&resource=pods&path=metadata.name",
	"/api/v1/pods", "/api/v1/pods?visible=true", "/api/v1/pods?visible=true&limit=1", "/api/v1/namespaces/a/pods?limit=1", "/api/v1/namespaces/hidden/pods",
	"/api/v1/namespaces/hidden/pods?visible=true", "/api/v1/pods?visible=true&labelSelector=app", "/api/v1/namespaces/a/pods/one", "/api/v1/namespaces/hidden/pods/one",
	"/api/v1/pods?visible=true&resourceVersion=105&resourceVersionMatch=Exact", "/apis", "/api/v1",
}

// streams are asked for, and then pods change.
var streams = []string{
	"/v1/resources/pods/objects?watch=true&timeoutSeconds=5", "/v1/resources/pods/objects?watch=true&timeoutSeconds=5&resourceVersion=103",
	"/v1/resources/pods/objects?watch=true&timeoutSeconds=5&facets=metadata.namespace", "/v1/resources/pods/objects?watch=true&timeoutSeconds=5&groupBy=metadata.namespace",
	"/v1/resources/pods/indexes/node/n9?watch=true&timeoutSeconds=5", "/v1/query?watch=true&timeoutSeconds=5", "/v1/query?watch=true&timeoutSeconds=5&groupBy=spec.nodeName",
	"/v1/health?watch=true&timeoutSeconds=5", "/v1/health?watch=true&timeoutSeconds=5&status=good,progressing&all",
	"/api/v1/pods?visible=true&watch=true&timeoutSeconds=5&allowWatchBookmarks=true", "/api/v1/pods?watch=true&timeoutSeconds=5",
	"/api/v1/pods?visible=true&watch=true&timeoutSeconds=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
	"/api/v1/watch/namespaces/a/pods?timeoutSeconds=5&resourceVersion=104", "/api/v1/watch/pods?visible=true&timeoutSeconds=5",
}

// What happens in a namespace that is not seen: pods come and stay, the same pod comes and
// goes as often, or nothing, while the API server says how far it is.
const (
	come, comeAndGo, quiet = "pods come", "a pod comes and goes", "nothing happens"
)

// answers are those of all questions and streams, while something happens in a namespace
// that is not seen.
func answers(t *testing.T, user access.Asker, hidden string) map[string]string {
	w := newGuarded(t, user)
	w.Options.RequestTimeout = time.Minute
	all := map[string]string{}
	version, n := 100, 0
	next := func(typ cache.EventType, name string) {
		version++
		switch hidden {
		case quiet:
			w.pods.store.Bookmark("", strconv.Itoa(version))
			synctest.Wait()
			return
		case comeAndGo:
			typ, name = []cache.EventType{cache.Added, cache.Deleted}[n%2], "gone"
			n++
		}
		w.pods.apply(t, typ, pod("hidden", name, "hush", "n9", version))
		synctest.Wait()
	}
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		next(cache.Added, name)
	}
	for _, q := range questions {
		rec := w.get(t, q)
		all[q] = w.plain(rec)
		for n := 0; rec.Code == http.StatusOK && strings.Contains(rec.Body.String(), `"continue":"`) && n < 5; n++ {
			token := continued.FindStringSubmatch(rec.Body.String())[1]
			at := q + "?continue=" + token
			if strings.Contains(q, "?") {
				at = q + "&continue=" + token
			}
			if strings.Contains(q, "explain") || strings.Contains(q, "/indexes/label") && n > 3 {
				break
			}
			rec = w.get(t, at)
			all[fmt.Sprint(q, " page ", n)] = w.plain(rec)
		}
	}
	recorders := map[string]*httptest.ResponseRecorder{}
	done := make(chan struct{})
	for _, q := range streams {
		rec := httptest.NewRecorder()
		recorders[q] = rec
		go func() {
			defer func() { done <- struct{}{} }()
			r := httptest.NewRequest(http.MethodGet, q, nil)
			r.Host = "localhost:8080"
			w.Handler().ServeHTTP(rec, r)
		}()
	}
	synctest.Wait()
	for n := range 6 {
		next(cache.Modified, []string{"one", "two"}[n%2])
		version++
		w.pods.apply(t, cache.Modified, pod("a", "one", "web", fmt.Sprint("n", n), version))
		time.Sleep(time.Second / 3)
	}
	for range streams {
		<-done
	}
	for q, rec := range recorders {
		all[q] = w.plain(rec)
	}
	return all
}

var continued = regexp.MustCompile(`"continue":"([^"]+)"`)

// plain is an answer less what is drawn at random for each Store and Server.
func (w *world) plain(rec *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintln(&b, rec.Code)
	for _, name := range slices.Sorted(maps.Keys(rec.Header())) {
		fmt.Fprintln(&b, name, rec.Header()[name])
	}
	body := continued.ReplaceAllStringFunc(rec.Body.String(), func(text string) string {
		token := continued.FindStringSubmatch(text)[1]
		if raw, err := base64.RawURLEncoding.DecodeString(token); err == nil {
			return string(raw)
		}
		return text
	})
	b.WriteString(body)
	text := drawn.ReplaceAllString(b.String(), `"e":"epoch","c":0`)
	for _, res := range w.caches.resources {
		if res.store != nil {
			text = strings.ReplaceAll(text, res.store.Epoch(), "epoch")
		}
	}
	return kindsTags.ReplaceAllString(partTags.ReplaceAllString(text, "$1"), "$1")
}

var (
	// drawn are the parts of continue tokens.
	drawn = regexp.MustCompile(`"e":"[A-Z2-7]{26}","c":\d+`)
	// partTags have a number of what is seen that is drawn, kindsTags are made of Epochs
	// and of such.
	partTags  = regexp.MustCompile(`(Etag \[W/"epoch-)\d+`)
	kindsTags = regexp.MustCompile(`(Etag \[W/")[0-9a-f]+-`)
)

// TestUnseenIsNotThere: objects of a namespace that somebody may not see change nothing
// that they are told, byte for byte.
func TestUnseenIsNotThere(t *testing.T) {
	var without map[string]string
	synctest.Test(t, func(t *testing.T) { without = answers(t, jane().GrantPaths(), quiet) })
	for _, hidden := range []string{come, comeAndGo} {
		var with map[string]string
		synctest.Test(t, func(t *testing.T) { with = answers(t, jane().GrantPaths(), hidden) })
		for q, got := range with {
			if d := cmp.Diff(without[q], got); d != "" {
				t.Errorf("%s: %s (-without +with):\n%s", hidden, q, d)
			}
			if text := strings.ReplaceAll(got, "namespaces/hidden", ""); strings.Contains(text, "hush") || strings.Contains(text, "n9") {
				t.Errorf("%s tells what is hidden:\n%s", q, got)
			}
		}
		if len(with) != len(without) {
			t.Errorf("%d answers, and %d", len(with), len(without))
		}
	}
}

// TestSummariesShowNothingHidden: what is made of objects is made of those that may be
// seen (Argo CD's CVE-2025-55190, where a summary had what its objects did not show).
func TestSummariesShowNothingHidden(t *testing.T) {
	w := newGuarded(t, jane())
	for target, want := range map[string]string{
		"/v1/resources/pods":                                            `"objects":2,`,
		"/v1/resources/nodes":                                           `"objects":0,"bytes":0,"rawBytes":0,"indexes"`,
		"/v1/resources/pods/objects?facets=spec.nodeName":               `"values":[{"value":"n1","objects":1},{"value":"n2","objects":1}]`,
		"/v1/resources/pods/objects?groupBy=spec.nodeName":              `{"group":{"spec.nodeName":"n1"},"values":{"count()":1}}`,
		"/v1/resources/pods/objects?explain=true":                       `"objects":2,"indexes":[],"candidates":2,"scanned":0,"matched":2`,
		"/v1/resources/pods/objects?explain=true&index=node:n1":         `"objects":2,"indexes":["node"],"candidates":1,"scanned":0,"matched":1`,
		"/v1/resources/pods/objects?explain=true&filter=object.x==1":    `"scanned":2,"matched":0,"filterErrors":{"count":2,"object":"a/one"`,
		"/v1/resources/pods/objects?limit=1":                            `"remainingItemCount":1`,
		"/v1/resources/pods/indexes/namespace":                          `"items":[{"value":"a","objects":2}]`,
		"/v1/resources/pods/indexes/node":                               `"items":[{"value":"n1","objects":1},{"value":"n2","objects":1}]`,
		"/v1/resources/pods/indexes":                                    `{"name":"namespace","values":1}`,
		"/v1/complete?for=resources&prefix=pods":                        `"objects":2`,
		"/v1/complete?for=values&resource=pods&path=metadata.namespace": `"items":[{"value":"a","objects":2}]`,
		"/v1/complete?for=values&resource=pods&path=metadata.name":      `"sampled":{"objects":2,"of":2}`,
		"/v1/query?explain=true":                                        `"matched":2`,
		"/v1/query?groupBy=metadata.namespace":                          `"items":[{"group":{"metadata.namespace":"a"},"values":{"count()":2}}]`,
		"/api/v1/pods?visible=true&limit=1":                             `"remainingItemCount":1`,
	} {
		rec := w.get(t, target)
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s = %d %s, want %s", target, rec.Code, rec.Body, want)
		}
	}
}

// TestMissingNamespacesAreNotNamed: that there is no data of a namespace is told to those
// who may see something of it.
func TestMissingNamespacesAreNotNamed(t *testing.T) {
	w := newGuarded(t, jane())
	w.pods.status.Missing = []cache.MissingNamespace{{Namespace: "hush", State: cache.Forbidden, Reason: "hush"}}
	w.pods.status.Reason = "pods of hush are forbidden"
	for _, target := range []string{"/v1/resources", "/v1/resources/pods", "/v1/resources/pods/objects", "/v1/query", "/api/v1/pods?visible=true"} {
		rec := w.get(t, target)
		if text := fmt.Sprint(rec.Header(), rec.Body); rec.Code != http.StatusOK || strings.Contains(text, "hush") {
			t.Errorf("%s: %d %s", target, rec.Code, text)
		}
	}
}

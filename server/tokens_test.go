package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
)

// TestTagsAreOfRights: an answer that somebody had by other rights is not the one they
// get now.
func TestTagsAreOfRights(t *testing.T) {
	user := jane()
	w := newGuarded(t, user)
	for _, target := range []string{"/v1/resources/pods/objects", "/v1/query?resources=pods", "/v1/resources/pods/indexes/node", "/v1/resources/pods/indexes", "/v1/resources/pods"} {
		user.Grant(podsResource, inA)
		tag := w.get(t, target).Header().Get("ETag")
		if rec := w.get(t, target, "If-None-Match", tag); tag == "" || rec.Code != http.StatusNotModified {
			t.Errorf("%s: %d for tag %s", target, rec.Code, tag)
		}
		user.Grant(podsResource, cache.NewScope([]string{"a", "b"}, nil))
		if rec := w.get(t, target, "If-None-Match", tag); rec.Code != http.StatusOK {
			t.Errorf("%s by other rights: %d", target, rec.Code)
		}
	}
}

// TestManyTokens: a reader's continue tokens outlive all lists that another begins, and
// are good for nobody else.
func TestManyTokens(t *testing.T) {
	var user access.Asker
	w := newWorld(t, func(o *Options) {
		o.Access = func(*http.Request) (access.Asker, error) { return user, nil }
	})
	for _, target := range []string{"/v1/resources/pods/objects?limit=1", "/v1/query?resources=pods&limit=1", "/api/v1/namespaces/a/pods?limit=1"} {
		user = jane()
		token := continued.FindStringSubmatch(w.get(t, target).Body.String())[1]
		user = accesstest.NewUser("mallory").Grant(podsResource, inA)
		for range 260 {
			w.get(t, target)
		}
		if rec := w.get(t, target+"&continue="+token); rec.Code != http.StatusGone {
			t.Errorf("%s: jane's token is good for mallory: %d %s", target, rec.Code, rec.Body)
		}
		user = jane()
		if rec := w.get(t, target+"&continue="+token); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "uid-a-two") {
			t.Errorf("%s: jane's token: %d %s", target, rec.Code, rec.Body)
		}
		user = jane().Grant(podsResource, cache.NewScope([]string{"a", "b"}, nil))
		if rec := w.get(t, target+"&continue="+token); rec.Code != http.StatusGone {
			t.Errorf("%s: a token of other rights: %d %s", target, rec.Code, rec.Body)
		}
	}
}

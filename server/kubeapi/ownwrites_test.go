package kubeapi

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access/accesstest"
)

// wroteAt makes the upstream answer writes with a pod at version, and tell that it is at
// present; "" is not to be asked.
func (w *world) wroteAt(version, present string) {
	w.upstream.set(func(r *http.Request) *http.Response {
		switch {
		case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/pods") && version != "":
			return jsonResponse(200, version)
		case r.Method == http.MethodDelete:
			return jsonResponse(200, `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"uid":"uid-a-one"}}`)
		case r.Method != http.MethodGet:
			return jsonResponse(200, fmt.Sprintf(`{"kind":"Pod","metadata":{"resourceVersion":%q}}`, version))
		case present == "" || r.URL.Query().Get("watch") != "":
			return nil
		}
		return jsonResponse(200, fmt.Sprintf(`{"metadata":{"resourceVersion":%q}}`, present))
	})
}

// TestOwnWrites: a cached read waits for what the same user has passed on, and for nobody
// else's writes.
func TestOwnWrites(t *testing.T) {
	pods := "/api/v1/namespaces/a/pods"
	for name, test := range map[string]struct {
		write   func(w *world)
		answer  string // at which version a write is answered
		present string // "": must not be asked
		want    string // "": it does not wait
	}{
		"create":         {func(w *world) { w.do("POST", pods) }, "101", "", "new one two three"},
		"patch":          {func(w *world) { w.do("PATCH", pods+"/one") }, "101", "", "new one two three"},
		"status":         {func(w *world) { w.do("PUT", pods+"/one/status") }, "101", "", "new one two three"},
		"other version":  {func(w *world) { w.do("POST", "/api/v2/namespaces/a/pods") }, "101", "", "new one two three"},
		"delete":         {func(w *world) { w.do("DELETE", pods+"/one") }, "", "", "new two three"},
		"delete another": {func(w *world) { w.do("DELETE", "/api/v1/namespaces/b/pods/one") }, "", "", ""},
		"delete many": {func(w *world) { w.do("DELETE", pods) }, `{"kind":"PodList","metadata":{"resourceVersion":"100"},"items":[` +
			`{"metadata":{"namespace":"a","name":"one","uid":"uid-a-one","resourceVersion":"10"}},` +
			`{"metadata":{"namespace":"a","name":"two","uid":"uid-a-two","resourceVersion":"20","deletionTimestamp":"2026-01-02T03:04:05Z"}}]}`, "", "new two three"},
		"delete none":    {func(w *world) { w.do("DELETE", pods) }, `{"kind":"PodList","metadata":{"resourceVersion":"100"},"items":[]}`, "", ""},
		"delete unsaid":  {func(w *world) { w.do("DELETE", pods) }, "", "102", "new two three"},
		"both":           {func(w *world) { w.do("DELETE", pods+"/one"); w.do("POST", pods) }, "101", "", "new two three"},
		"binding":        {func(w *world) { w.do("POST", "/api/v1/namespaces/a/bindings") }, "", "101", "new one two three"},
		"nothing new":    {func(w *world) { w.do("PATCH", pods+"/one") }, "100", "", ""},
		"other resource": {func(w *world) { w.do("POST", "/api/v1/namespaces/a/configmaps") }, "101", "", ""},
		"token":          {func(w *world) { w.do("POST", "/api/v1/namespaces/a/serviceaccounts/pods/token") }, "101", "", ""},
		"read":           {func(w *world) { w.do("GET", pods+"/one/log") }, "101", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			synctest.Test(t, func(t *testing.T) {
				defer w.pods.store.Close() // who waited for it was of this bubble
				w.modes.Passthrough = PassAll
				w.wroteAt(test.answer, test.present)
				test.write(w)
				began := time.Now()
				time.AfterFunc(100*time.Millisecond, func() { w.pods.apply(t, cache.Added, pod("a", "new", "web", "n1", 101)) })
				time.AfterFunc(200*time.Millisecond, func() { w.pods.apply(t, cache.Deleted, pod("a", "one", "web", "n1", 102)) })
				var list podList
				w.into(&list, "/api/v1/pods")
				want, took := cmp.Or(test.want, "one two three"), time.Since(began)
				if list.names() != want || (took > 0) != (test.want != "") {
					t.Errorf("after %v the pods are %q, want %q", took, list.names(), want)
				}
				time.Sleep(time.Second)
				synctest.Wait()
			})
		})
	}
}

// TestOwnWritesOfOthers: who has not written does not wait.
func TestOwnWritesOfOthers(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		defer w.pods.store.Close() // who waited for it was of this bubble
		w.modes.Passthrough = PassAll
		w.wroteAt("101", "")
		w.asker = accesstest.NewUser("me")
		w.do("POST", "/api/v1/namespaces/a/pods")
		w.asker = accesstest.NewUser("other").Grant(storedAs("", "pods"), cache.WholeScope())
		var list podList
		began := time.Now()
		w.into(&list, "/api/v1/pods")
		if time.Since(began) > 0 {
			t.Errorf("another user waited %v", time.Since(began))
		}
	})
}

// TestOwnWritesUnknown: where nobody can tell which version a write is in, a read is
// refused rather than answered with what may be from before it; until then the copy has
// been proven current, or says that it is not.
func TestOwnWritesUnknown(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		defer w.pods.store.Close() // who waited for it was of this bubble
		w.modes.Passthrough = PassAll
		w.wroteAt("", "")
		w.do("DELETE", "/api/v1/namespaces/a/pods")
		w.wantStatus(w.get("/api/v1/pods"), 503, metav1.StatusReasonServiceUnavailable, "does not answer")
		w.wantStatus(w.get("/api/v1/namespaces/a/pods/one"), 503, metav1.StatusReasonServiceUnavailable, "does not answer")
		if rec := w.get("/api/v1/pods?resourceVersion=0"); rec.Code != http.StatusOK {
			t.Errorf("any version: %d %s", rec.Code, rec.Body)
		}
		time.Sleep(writesKept)
		if rec := w.get("/api/v1/pods"); rec.Code != http.StatusOK {
			t.Errorf("after %v: %d %s", writesKept, rec.Code, rec.Body)
		}
	})
}

// TestOwnWritesDry: what was deleted for a trial is there, and no reason to wait for ever.
func TestOwnWritesDry(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		defer w.pods.store.Close() // who waited for it was of this bubble
		w.modes.Passthrough = PassAll
		w.wroteAt("", "100")
		w.do("DELETE", "/api/v1/namespaces/a/pods/one?dryRun=All")
		for n, most := range []time.Duration{SuspectAfter, 0} {
			began := time.Now()
			if rec := w.get("/api/v1/pods"); rec.Code != http.StatusOK || time.Since(began) > most {
				t.Errorf("read %d: %d after %v: %s", n, rec.Code, time.Since(began), rec.Body)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
	})
}

// TestOwnWritesAway: a write that found no API server has changed nothing, and who tries it
// again and again can read all the same.
func TestOwnWritesAway(t *testing.T) {
	for _, err := range []error{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, errors.New("broken off")} {
		if neverSent(fmt.Errorf("Post: %w", err)) != strings.Contains(err.Error(), "dial") {
			t.Errorf("%v: sent or not", err)
		}
	}
}

// TestOwnWritesHeld: what there is no copy of is not remembered: there is no end of names.
func TestOwnWritesHeld(t *testing.T) {
	w := newWorld(t)
	w.modes.Passthrough = PassAll
	w.upstream.set(func(*http.Request) *http.Response { return nil })
	for n := range 10 {
		w.do("POST", fmt.Sprintf("/apis/example.com/v1/things%d", n))
	}
	if n := len(w.API.writes.last); n != 0 {
		t.Errorf("%d writes are kept", n)
	}
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(409, `{"kind":"Status"}`) })
	w.do("PUT", "/api/v1/namespaces/a/pods/one")
	if n := len(w.API.writes.last); n != 0 {
		t.Errorf("%d writes are kept of one that was refused", n)
	}
	w.do("DELETE", "/api/v1/namespaces/a/pods")
	if n := len(w.API.writes.last); n != 1 {
		t.Errorf("%d writes are kept of a deletion that was broken off", n)
	}
}

// TestWrites: the version to wait for is that of the last write, in whatever order their
// answers come, and who is beyond the bound waits for all others.
func TestWrites(t *testing.T) {
	var ws writes
	now := time.Now()
	pods := storedAs("", "pods")
	me := write{"east", "me", pods}
	at := func(version string) written { return written{at: now, version: version} }
	unknown, gone := written{at: now, unknown: true}, written{at: now, gone: []goneObject{{uid: "x"}}}
	want := func(by write, version string, gone int, unknown bool) {
		t.Helper()
		if _, got := ws.after(by, now); got.version != version || len(got.gone) != gone || got.unknown != unknown {
			t.Errorf("after the writes of %v: %+v, want version %q, %d gone, unknown %v", by, got, version, gone, unknown)
		}
	}
	want(me, "", 0, false)
	ws.note(me, at("12"))
	ws.note(me, at("11"))
	want(me, "12", 0, false)
	ws.note(me, gone)
	ws.note(me, at("13"))
	want(me, "13", 1, false)
	want(write{"west", "me", pods}, "", 0, false)
	ws.note(me, unknown)
	ws.note(me, at("14"))
	want(me, "14", 0, true) // the one before may be after it
	w, _ := ws.after(me, now)
	ws.learn(w, "20")
	want(me, "20", 0, false)
	for range maxGone {
		ws.note(me, gone)
	}
	want(me, "20", maxGone, false)
	ws.note(me, gone)
	want(me, "20", 0, true)
	ws.note(write{"east", "me", storedAs("events.k8s.io", "events")}, at("14"))
	want(write{"east", "me", storedAs("", "events")}, "14", 0, false)
	for n := range maxWrites {
		ws.note(write{"east", fmt.Sprint("user-", n), pods}, at("20"))
	}
	if len(ws.last) > maxWrites+1 {
		t.Errorf("%d writes are kept", len(ws.last))
	}
	want(write{"east", fmt.Sprint("user-", maxWrites-1), pods}, "", 0, true)
	now = now.Add(writesKept)
	want(me, "", 0, false)
	ws.note(me, at("30"))
	want(me, "30", 0, false)
	if len(ws.last) != 1 {
		t.Errorf("%d writes are kept of one", len(ws.last))
	}
}

// inProtobuf is what the API server answers with.
func inProtobuf(t *testing.T, object runtime.Object) string {
	t.Helper()
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	var body bytes.Buffer
	if err := codec.Encode(object, &body); err != nil {
		t.Fatal(err)
	}
	return body.String()
}

// TestReadAnswer: the version is read where it can be, and the answer stays what it is,
// its failure included.
func TestReadAnswer(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"metadata":{"resourceVersion":"7"}}`))
	_ = z.Close()
	broken := errors.New("broken off")
	for name, test := range map[string]struct {
		body   string
		header []string
		err    error
		want   string
	}{
		"object":   {`{"kind":"Pod","metadata":{"resourceVersion":"7"}}`, []string{"Content-Type", "application/json; charset=utf-8"}, nil, "7"},
		"status":   {`{"kind":"Status","metadata":{}}`, nil, nil, ""},
		"garbage":  {`{"kind":`, nil, nil, ""},
		"empty":    {``, nil, nil, ""},
		"protobuf": {"k8s\x00...", []string{"Content-Type", "application/vnd.kubernetes.protobuf"}, nil, ""},
		"pod":      {inProtobuf(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one", ResourceVersion: "7"}}), []string{"Content-Type", runtime.ContentTypeProtobuf}, nil, "7"},
		"deleted":  {inProtobuf(t, &metav1.Status{Details: &metav1.StatusDetails{UID: "x"}}), []string{"Content-Type", runtime.ContentTypeProtobuf}, nil, "gone x"},
		"list":     {inProtobuf(t, &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "x", ResourceVersion: "7"}}}}), []string{"Content-Type", runtime.ContentTypeProtobuf}, nil, "a/b x of 7"},
		"packed":   {packed.String(), []string{"Content-Encoding", "gzip"}, nil, ""},
		"long":     {`{"metadata":{"resourceVersion":"7"},"x":"` + strings.Repeat("x", maxWritten) + `"}`, nil, nil, ""},
		"cut":      {`{"metadata":{"resourceVersion":"7"}}`, nil, broken, ""},
	} {
		answer := jsonResponse(200, "", test.header...)
		answer.Body = io.NopCloser(strings.NewReader(test.body))
		if test.err != nil {
			answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(test.body), failing{test.err}))
		}
		known := readAnswer(answer)
		got := known.Metadata.ResourceVersion
		if known.Details.UID != "" {
			got += "gone " + known.Details.UID
		}
		for _, o := range known.deleted() {
			got += fmt.Sprint(o.key, " ", o.uid, " of ", o.version)
		}
		body, err := io.ReadAll(answer.Body)
		if got != test.want || string(body) != test.body || !errors.Is(err, test.err) {
			t.Errorf("%s: version %q, want %q; %d bytes of %d, %v", name, got, test.want, len(body), len(test.body), err)
		}
	}
}

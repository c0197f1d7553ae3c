package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestReadYourWrites: who asks with the resourceVersion of their write sees it;
// a version that never comes is 504, one that is forgotten 410.
func TestReadYourWrites(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	ns := fmt.Sprintf("writes-%d", fresh())
	createNamespace(t, c, ns)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	for n := range 30 {
		name := fmt.Sprintf("w-%d", n)
		created := createConfigMap(t, c, ns, name, nil, nil)
		o := harness.Object{}
		if err := i.Read(fmt.Sprintf("/v1/resources/configmaps/objects/%s/%s?resourceVersion=%s&timeout=30s", ns, name, created.GetResourceVersion()), &o); err != nil {
			t.Fatal(err)
		}
		if o.UID() != string(created.GetUID()) {
			t.Errorf("object %s is %v", name, o)
		}
		patched := patchConfigMap(t, c, ns, name, `{"metadata":{"labels":{"n":"`+strconv.Itoa(n)+`"}}}`)
		list, err := i.List("configmaps", "namespace="+ns+"&labelSelector=n%3D"+strconv.Itoa(n)+"&timeout=30&resourceVersion="+patched.GetResourceVersion())
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 1 || list.Items[0].ResourceVersion() != patched.GetResourceVersion() {
			t.Errorf("list after the write: %d items", len(list.Items))
		}
	}
	future := "999999999"
	began := time.Now()
	a := i.MustGet(t, "/v1/resources/configmaps/objects?timeout=1s&resourceVersion="+future)
	if a.Status != http.StatusGatewayTimeout || !strings.Contains(string(a.Body), "ResourceVersionTooLarge") || time.Since(began) < 900*time.Millisecond {
		t.Errorf("a version of the future: %d after %v: %s", a.Status, time.Since(began), a.Body)
	}
	a = i.MustGet(t, "/v1/resources/configmaps/objects?watch=true&timeoutSeconds=1&resourceVersion=1")
	if a.Status != http.StatusGone || !strings.Contains(string(a.Body), "Expired") {
		t.Errorf("watch from a forgotten version: %d %s", a.Status, a.Body)
	}
	events := i.MustGet(t, "/v1/resources/configmaps/objects?watch=true&timeoutSeconds=1&namespace="+ns, "Last-Event-ID", "1")
	if events.Status != http.StatusOK || !strings.Contains(string(events.Body), "event: RESYNC") || strings.Count(string(events.Body), "event: ADDED") != 30 {
		t.Errorf("stream resumed from a forgotten version: %d\n%.500s", events.Status, events.Body)
	}
}

// TestPagesUnderChurn: all pages of a list are of one version, whatever changes
// meanwhile, and what they show was true then.
func TestPagesUnderChurn(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	run := fresh()
	churn := newChurner(t, c, builtinKinds()[:1], "pages-a", "pages-b")
	for n := range 60 {
		createConfigMap(t, c, "pages-a", fmt.Sprintf("still-%d-%02d", run, n), map[string]string{"still": strconv.Itoa(run)}, nil)
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	stop := churn.start(t.Context(), 3)
	defer stop()
	versions := map[string]bool{}
	for range 15 {
		// The versions of one list and its pages are compared by Pages; that
		// nothing is lost or doubled shows in what nobody touches.
		list, err := i.Pages("configmaps", "", 7)
		if err != nil {
			t.Fatal(err)
		}
		versions[list.Metadata.ResourceVersion] = true
		still := 0
		seen := map[string]bool{}
		limit, _ := strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
		for n, o := range list.Items {
			if seen[o.Key()] {
				t.Fatalf("%s is on two pages", o.Key())
			}
			seen[o.Key()] = true
			if n > 0 && list.Items[n-1].Namespace()+"\x00"+list.Items[n-1].Name() >= o.Namespace()+"\x00"+o.Name() {
				t.Fatalf("%s comes after %s", o.Key(), list.Items[n-1].Key())
			}
			if v, err := strconv.ParseUint(o.ResourceVersion(), 10, 64); err != nil || v > limit {
				t.Fatalf("%s has version %s in a list of version %d", o.Key(), o.ResourceVersion(), limit)
			}
			if o.Labels()["still"] == strconv.Itoa(run) {
				still++
			}
		}
		if still != 60 {
			t.Fatalf("%d objects that nobody touches, want 60", still)
		}
	}
	stop()
	if len(versions) < 2 {
		t.Errorf("nothing changed between the lists")
	}
	churn.check(t)
}

// TestHTTP: caching, compression, methods, projections and errors of the real
// server.
func TestHTTP(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	ns := fmt.Sprintf("http-%d", fresh())
	createNamespace(t, c, ns)
	for n := range 20 {
		createConfigMap(t, c, ns, fmt.Sprintf("cm-%02d", n), map[string]string{"half": strconv.Itoa(n % 2)}, map[string]any{"text": strings.Repeat("text ", 50)})
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	objects := "/v1/resources/configmaps/objects"

	t.Run("etag", func(t *testing.T) {
		// A resource nobody else writes to: StorageClasses.
		path := "/v1/resources/storageclasses.storage.k8s.io/objects"
		first := i.MustGet(t, path)
		tag := first.Header.Get("ETag")
		if tag == "" {
			t.Fatalf("no ETag: %v", first.Header)
		}
		if a := i.MustGet(t, path, "If-None-Match", tag); a.Status != http.StatusNotModified || len(a.Body) > 0 {
			t.Errorf("unchanged: %d, %d bytes", a.Status, len(a.Body))
		}
		one := objects + "/" + ns + "/cm-00"
		tag = i.MustGet(t, one).Header.Get("ETag")
		patchConfigMap(t, c, ns, "cm-01", `{"data":{"a":"b"}}`)
		if a := i.MustGet(t, one, "If-None-Match", tag); a.Status != http.StatusNotModified {
			t.Errorf("another object changed: %d", a.Status)
		}
		v := patchConfigMap(t, c, ns, "cm-00", `{"data":{"a":"b"}}`).GetResourceVersion()
		if a := i.MustGet(t, one+"?timeout=30&resourceVersion="+v, "If-None-Match", tag); a.Status != http.StatusOK || a.Header.Get("ETag") == tag {
			t.Errorf("changed: %d %s", a.Status, a.Header.Get("ETag"))
		}
	})
	t.Run("gzip", func(t *testing.T) {
		plain := i.MustGet(t, objects+"?namespace="+ns)
		zipped := i.MustGet(t, objects+"?namespace="+ns, "Accept-Encoding", "gzip")
		if plain.Header.Get("Content-Encoding") != "" || zipped.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("encodings %q and %q", plain.Header.Get("Content-Encoding"), zipped.Header.Get("Content-Encoding"))
		}
		if string(plain.Body) != string(zipped.Body) {
			t.Error("the compressed answer differs")
		}
		if stream := i.MustGet(t, objects+"?watch=true&timeoutSeconds=1", "Accept-Encoding", "gzip"); stream.Header.Get("Content-Encoding") != "" {
			t.Error("a stream is compressed")
		}
	})
	t.Run("methods", func(t *testing.T) {
		for _, path := range []string{objects, "/v1/resources", "/livez", "/readyz", "/metrics", objects + "/" + ns + "/cm-00"} {
			get := i.MustGet(t, path)
			head, err := i.Do(http.MethodHead, path)
			if err != nil || head.Status != get.Status || len(head.Body) > 0 || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
				t.Errorf("HEAD %s: %v %+v", path, err, head)
			}
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
				a, err := i.Do(method, path)
				if err != nil || a.Status != http.StatusMethodNotAllowed || !strings.Contains(a.Header.Get("Allow"), "GET") {
					t.Errorf("%s %s: %v %d %s", method, path, err, a.Status, a.Header.Get("Allow"))
				}
			}
		}
	})
	t.Run("fields", func(t *testing.T) {
		list, err := i.List("configmaps", "namespace="+ns+"&labelSelector=half%3D1&fields=metadata.name,data.text&limit=3")
		if err != nil || len(list.Items) != 3 || list.Metadata.Continue == "" || list.Metadata.RemainingItemCount != 7 {
			t.Fatalf("%v %+v", err, list)
		}
		for _, o := range list.Items {
			if o.Name() == "" || o.UID() != "" || o["data"] == nil || o.Labels()["half"] != "" {
				t.Errorf("projected to %v", o)
			}
		}
	})
	t.Run("bad input", func(t *testing.T) { badInput(t, i, objects) })
	t.Run("initial events", func(t *testing.T) { initialEvents(t, i, objects+"?watch=true&timeoutSeconds=1&namespace="+ns) })
}

// badInput: each mistake is answered with the right status, as a Kubernetes
// Status whose message names what is wrong.
func badInput(t *testing.T, i *harness.Informerd, objects string) {
	for _, tc := range []struct {
		path   string
		status int
		says   string
	}{
		{"/v1/resources/podz/objects", 404, "podz"},
		{"/v1/resources/pods.apps/objects", 404, "pods.apps"},
		{"/v1/resources/leases.coordination.k8s.io/objects", 404, "NotWatched"},
		{"/v1/resources/configmaps/indexes/nope", 404, "nope"},
		{"/v1/resources/configmaps/indexes/nope/x", 404, "nope"},
		{"/v1/resources/configmaps/objects/nowhere/nothing", 404, "nothing"},
		{"/v1/nothing", 404, "/v1/nothing"},
		{objects + "?nope=1", 400, "nope"},
		{objects + "?labelselector=a", 400, "labelSelector"},
		{objects + "?labelSelector=a%3D%3D%3D", 400, "labelSelector"},
		{objects + "?labelSelector=a+in+(", 400, "labelSelector"},
		{objects + "?fieldSelector=a.b%3D%3D%3Dc%2C%2C", 400, "fieldSelector"},
		{objects + "?fieldSelector=a%5B%3Dc", 400, "fieldSelector"},
		{objects + "?fields=a..b", 400, "fields"},
		{objects + "?fields=", 400, "fields"},
		{objects + "?index=nope:x", 400, "nope"},
		{objects + "?index=label", 400, "index"},
		{objects + "?namespace=%5B", 400, "namespace"},
		{objects + "?namespace=", 400, "namespace"},
		{objects + "?limit=x", 400, "limit"},
		{objects + "?limit=-1", 400, "limit"},
		{objects + "?limit=1&limit=2", 400, "limit"},
		{objects + "?continue=nonsense", 400, "continue"},
		{objects + "?resourceVersion=x", 400, "resourceVersion"},
		{objects + "?resourceVersion=-1", 400, "resourceVersion"},
		{objects + "?timeout=1s", 400, "timeout"},
		{objects + "?resourceVersion=1&timeout=1h", 400, "timeout"},
		{objects + "?watch=maybe", 400, "watch"},
		{objects + "?watch=true&limit=1", 400, "limit"},
		{objects + "?timeoutSeconds=1", 400, "timeoutSeconds"},
		{objects + "?pretty=2", 400, "pretty"},
		{objects + "?cluster=elsewhere", 400, "elsewhere"},
		{objects + "?a=%zz", 400, "query"},
		{objects + "?labelSelector=" + strings.Repeat("a", 9000), 414, "URL"},
	} {
		a := i.MustGet(t, tc.path)
		var status struct {
			Kind, Message string
			Code          int
		}
		err := json.Unmarshal(a.Body, &status)
		path := tc.path[:min(len(tc.path), 100)]
		if err != nil || status.Kind != "Status" || status.Code != a.Status {
			t.Errorf("%s: not a Status of code %d: %.200s", path, a.Status, a.Body)
		}
		if a.Status != tc.status || !strings.Contains(string(a.Body), tc.says) {
			t.Errorf("%s: %d %.300s, want %d naming %q", path, a.Status, a.Body, tc.status, tc.says)
		}
	}
	if a := i.MustGet(t, "/v1/resources", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"); a.Status != http.StatusForbidden {
		t.Errorf("a page of another site: %d", a.Status)
	}
}

// initialEvents: a stream without a version begins with all objects and a
// bookmark that says so.
func initialEvents(t *testing.T, i *harness.Informerd, path string) {
	a := i.MustGet(t, path)
	if a.Status != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", a.Status, a.Header)
	}
	added, end := 0, false
	lines := bufio.NewScanner(strings.NewReader(string(a.Body)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "event: ADDED":
			if end {
				t.Error("an initial object after their end")
			}
			added++
		case strings.Contains(line, "k8s.io/initial-events-end"):
			end = true
		}
	}
	if added != 20 || !end {
		t.Errorf("%d initial objects, want 20; end told: %t", added, end)
	}
}

package server

import (
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
)

const podObjects = "/v1/resources/pods/objects"

// with adds parameters, which come in pairs, to a path.
func with(path string, parameters ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		v.Add(parameters[i], parameters[i+1])
	}
	return path + "?" + v.Encode()
}

func TestFilter(t *testing.T) {
	w := newWorld(t)
	for expression, want := range map[string]string{
		`object.spec.nodeName == "n1"`:                              "one three",
		`object.spec.nodeName == "n1" && object.kind == "Pod"`:      "one three",
		`object.spec.containers.exists(c, c.image.contains("web"))`: "one two three",
		`object.metadata.labels.app == "db"`:                        "two",
		`object.metadata.name in ["two", "three"]`:                  "two three",
		`has(object.spec.hostNetwork)`:                              "",
	} {
		var got podList
		h := w.getJSON(t, with(podObjects, "filter", expression), &got)
		if got.names() != want || h.Get("ETag") == "" || h.Get("Informerd-Filter-Errors") != "" {
			t.Errorf("%s: %q, want %q; headers %v", expression, got.names(), want, h)
		}
	}
}

func TestFilterErrorsAreTold(t *testing.T) {
	w := newWorld(t)
	var got struct {
		Metadata struct {
			metav1.ListMeta
			FilterErrors filterErrors
		}
	}
	h := w.getJSON(t, with(podObjects, "filter", `object.spec.nodeName == "n2" ? true : object.spec.missing`), &got)
	want := filterErrors{2, "a/one", "no such key: missing"}
	if got.Metadata.FilterErrors != want || h.Get("Informerd-Filter-Errors") != "2" {
		t.Errorf("filterErrors = %+v, headers %v", got.Metadata.FilterErrors, h)
	}
}

func TestFilterThatReadsTheClockIsNotCached(t *testing.T) {
	w := newWorld(t)
	rec := w.get(t, with(podObjects, "filter", `now > timestamp("2026-01-01T00:00:00Z")`))
	if rec.Code != 200 || rec.Header().Get("ETag") != "" {
		t.Errorf("%d, ETag %q", rec.Code, rec.Header().Get("ETag"))
	}
	rec = w.get(t, with(podObjects, "filter", `now > now`, "watch", "true", "resourceVersion", "100"))
	wantStatus(t, rec, 400, metav1.StatusReasonBadRequest, "asks for the time")
}

func TestFilterMistakes(t *testing.T) {
	w := newWorld(t)
	for expression, message := range map[string]string{
		"":                        "empty",
		"object.spec.x ==":        "column 17",
		"objekt.spec":             "column 1: undeclared reference to 'objekt'",
		"1":                       "of type int",
		strings.Repeat("a", 5000): "at most 4096",
	} {
		s := wantStatus(t, w.get(t, with(podObjects, "filter", expression)), 400, metav1.StatusReasonBadRequest, message)
		if s.Details.Causes[0].Field != "filter" {
			t.Errorf("field %q", s.Details.Causes[0].Field)
		}
	}
}

func TestFilterTooExpensive(t *testing.T) {
	w := newWorld(t)
	// A search in a string costs the product of both lengths and takes next to no time, so that
	// the limit of costs is met long before the limit of time, on a slow machine too.
	list := "[" + strings.Repeat("1,", 99) + "1]"
	search := "'" + strings.Repeat("a", 300) + "'.contains('" + strings.Repeat("b", 300) + "')"
	s := wantStatus(t, w.get(t, with(podObjects, "filter", list+".exists(a, "+list+".exists(b, "+search+"))")),
		422, metav1.StatusReasonInvalid, "limit of 1000000 units")
	if s.Details.Causes[0].Type != "TooExpensive" {
		t.Errorf("causes %v", s.Details.Causes)
	}
}

func TestFilterWatch(t *testing.T) {
	w := newWorld(t)
	url := serve(t, w)
	s := open(t, url+with(podObjects, "watch", "true", "filter", `object.spec.nodeName == "n2" || object.status.missing`))
	if got := s.next().String(); got != "ADDED two" {
		t.Fatal(got)
	}
	warning := s.next()
	if warning.name != "WARNING" || !strings.Contains(warning.raw, `"filterErrors":{"count":2,"object":"a/one","first":"no such key: missing"}`) {
		t.Errorf("warning %s", warning.raw)
	}
	if got := s.next().String(); got != "BOOKMARK 100" {
		t.Error(got)
	}
	w.pods.apply(t, cache.Modified, pod("a", "one", "web", "n2", 101))
	w.pods.apply(t, cache.Modified, pod("a", "two", "db", "n1", 102))
	for _, want := range []string{"ADDED one", "DELETED two"} {
		if got := s.next().String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestFilterWatchResumesAnewWhereTimeMatters(t *testing.T) {
	w := newWorld(t)
	url := serve(t, w)
	s := open(t, url+with(podObjects, "watch", "true", "filter", `now > timestamp("2020-01-01T00:00:00Z")`), "Last-Event-ID", "100")
	if got := s.next().String(); got != "RESYNC 100" {
		t.Error(got)
	}
}

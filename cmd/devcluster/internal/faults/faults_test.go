package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rig is a proxy before a server that answers lists with items and watches with
// the events it is given.
type rig struct {
	*Proxy
	url    string
	events chan frame // closed: the watch ends
}

const items = `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[1,2,3]}`

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{events: make(chan frame, 100)}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.URL.Path == "/broken":
			resetClient(w)
		case req.URL.Path == "/api/v1":
			_, _ = io.WriteString(w, `{"resources":[{"name":"pods","kind":"Pod"}]}`)
		case req.URL.Query().Get("watch") == "" || req.Header.Get("Authorization") != "":
			_, _ = io.WriteString(w, items)
		default:
			r.watch(w, req)
		}
	}))
	upstream, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.Proxy = New(upstream, &http.Transport{DisableCompression: true})
	front := httptest.NewServer(r.Proxy)
	r.url = front.URL
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		api.CloseClientConnections()
		api.Close()
	})
	return r
}

func (r *rig) watch(w http.ResponseWriter, req *http.Request) {
	contentType, _ := negotiate(req, true)
	w.Header().Set("Content-Type", contentType)
	flush(w)
	for {
		select {
		case event, ok := <-r.events:
			if !ok {
				return
			}
			_, _ = w.Write(event.data)
			flush(w)
		case <-req.Context().Done():
			return
		}
	}
}

func (r *rig) rules(t *testing.T, rules string) State {
	t.Helper()
	parsed, err := ParseRules([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	state, err := r.SetRules(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// send gives the server events at these versions: objects, or bookmarks if
// negative.
func (r *rig) send(t *testing.T, protobuf bool, versions ...int) {
	t.Helper()
	for _, v := range versions {
		kind := "MODIFIED"
		if v < 0 {
			kind, v = "BOOKMARK", -v
		}
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
		object.ResourceVersion = fmt.Sprint(v)
		data, err := json.Marshal(object)
		if protobuf {
			data, err = protobufObject("v1", "Pod", object)
		}
		if err != nil {
			t.Fatal(err)
		}
		event, err := newFrame(kind, data, protobuf)
		if err != nil {
			t.Fatal(err)
		}
		r.events <- event
	}
}

type response struct {
	*http.Response
	next func() (frame, error)
}

func (r *rig) get(t *testing.T, uri, accept string) (*response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Authorization", "Bearer nobody")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { resp.Body.Close() })
	return &response{resp, frameReader(bufio.NewReader(resp.Body), resp.Header.Get("Content-Type"))}, nil
}

func (r *rig) open(t *testing.T, protobuf bool) *response {
	t.Helper()
	accept := "application/json"
	if protobuf {
		accept = protobufType + ",application/json"
	}
	resp, err := r.get(t, "/api/v1/pods?watch=true&resourceVersion=5", accept)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// want reads events and compares kind and version; the rest must be the end.
func (resp *response) want(t *testing.T, events string, end error) {
	t.Helper()
	for want := range strings.FieldsSeq(events) {
		event, err := resp.next()
		if err != nil {
			t.Fatalf("instead of %s: %v", want, err)
		}
		if got := event.kind + version(t, event); got != want {
			t.Errorf("event %s, want %s", got, want)
		}
	}
	if end == nil {
		return
	}
	if event, err := resp.next(); !errors.Is(err, end) {
		t.Errorf("the watch goes on with %q, %v, want %v", event.data, err, end)
	}
}

// version reads that of an event by raising it by nothing and looking for it.
func version(t *testing.T, event frame) string {
	t.Helper()
	if event.protobuf {
		var e metav1.WatchEvent
		if err := e.Unmarshal(event.data[4:]); err != nil {
			return "garbled"
		}
		for n := range 2000 {
			object := &metav1.PartialObjectMetadata{}
			object.ResourceVersion = fmt.Sprint(n)
			if data, _ := protobufObject("v1", "Pod", object); string(data) == string(e.Object.Raw) {
				return fmt.Sprint(n)
			}
		}
		return "garbled"
	}
	var e struct {
		Object metav1.PartialObjectMetadata
	}
	if err := json.Unmarshal(event.data, &e); err != nil {
		return "garbled"
	}
	return e.Object.ResourceVersion
}

func TestWithoutRules(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		r := newRig(t)
		resp, err := r.get(t, "/api/v1/pods", "application/json")
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != items || err != nil {
			t.Errorf("list: %s, %v", body, err)
		}
		watch := r.open(t, protobuf)
		r.send(t, protobuf, 6)
		watch.want(t, "MODIFIED6", nil) // while the watch is open
		if s := r.State(); s.Requests != 2 || s.Watches != 1 {
			t.Errorf("state %+v", s)
		}
		r.send(t, protobuf, 8, -9)
		close(r.events)
		watch.want(t, "MODIFIED8 BOOKMARK9", io.EOF)
		if _, err := r.get(t, "/broken", ""); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server resets: %v", err)
		}
	}
}

// TestWatchFaults: what a watch of 6, a bookmark at 7, 8 and 9 becomes.
func TestWatchFaults(t *testing.T) {
	const all = "MODIFIED6 BOOKMARK7 MODIFIED8 MODIFIED9"
	for name, test := range map[string]struct {
		do, want string
		end      error
	}{
		"cut after events":   {`{"cut":{"afterEvents":2}}`, "MODIFIED6 BOOKMARK7 MODIFIED8", io.ErrUnexpectedEOF},
		"cut at once":        {`{"cut":{}}`, "", io.ErrUnexpectedEOF},
		"clean cut":          {`{"cut":{"afterEvents":1,"clean":true}}`, "MODIFIED6", io.EOF},
		"reset after events": {`{"reset":{"afterEvents":1}}`, "MODIFIED6", syscall.ECONNRESET},
		"delay":              {`{"delay":{"milliseconds":5}}`, all, io.EOF},
		"withhold":           {`{"withhold":{"seconds":0.05,"afterEvents":1}}`, all, io.EOF},
		"drop":               {`{"drop":{"event":2}}`, "MODIFIED6 BOOKMARK7 MODIFIED9", io.EOF},
		"drop two":           {`{"drop":{"count":2}}`, "BOOKMARK7 MODIFIED9", io.EOF},
		"bookmark":           {`{"bookmark":{"add":1000}}`, "MODIFIED6 BOOKMARK1007 MODIFIED8 MODIFIED9", io.EOF},
		"bookmark once":      {`{"bookmark":{"once":true}}`, "BOOKMARK5", io.EOF},
		"empty":              {`{"empty":{}}`, "", io.EOF},
		"truncate":           {`{"truncate":{}}`, all, io.EOF},
	} {
		for _, protobuf := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, protobuf %v", name, protobuf), func(t *testing.T) {
				r := newRig(t)
				r.rules(t, `{"rules":[{"match":{"verb":"watch"},"do":`+test.do+`}]}`)
				r.send(t, protobuf, 6, -7, 8, 9)
				close(r.events)
				r.open(t, protobuf).want(t, test.want, test.end)
			})
		}
	}
}

func TestGarble(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		r := newRig(t)
		r.rules(t, `{"rules":[{"match":{},"do":{"garble":{"event":2,"offset":0,"mask":255}}}]}`)
		r.send(t, protobuf, 6, 8, 9)
		close(r.events)
		watch := r.open(t, protobuf)
		watch.want(t, "MODIFIED6", nil)
		event, err := watch.next()
		if err != nil || event.kind == "MODIFIED" {
			t.Errorf("protobuf %v: event %q, %v", protobuf, event.data, err)
		}
		watch.want(t, "MODIFIED9", io.EOF)
	}
}

// TestGarbleBySeed: the same seed changes the same bit, never the border.
func TestGarbleBySeed(t *testing.T) {
	garbled := map[string]bool{}
	for seed := range 20 {
		for range 2 {
			r := newRig(t)
			r.rules(t, fmt.Sprintf(`{"seed":%d,"rules":[{"match":{},"do":{"garble":{}}}]}`, seed))
			r.send(t, false, 6, 8)
			close(r.events)
			watch := r.open(t, false)
			event, err := watch.next()
			if err != nil {
				t.Fatal(err)
			}
			garbled[string(event.data)] = true
			watch.want(t, "MODIFIED8", io.EOF)
		}
	}
	if len(garbled) < 10 || len(garbled) > 20 {
		t.Errorf("%d different events by 20 seeds", len(garbled))
	}
}

func TestListFaults(t *testing.T) {
	for name, test := range map[string]struct {
		do   string
		want string
		end  error
	}{
		"delay":    {`{"delay":{"milliseconds":1}}`, items, nil},
		"withhold": {`{"withhold":{"seconds":0.01}}`, items, nil},
		"truncate": {`{"truncate":{}}`, items[:len(items)/2], nil},
		"cut":      {`{"cut":{"afterBytes":10}}`, items[:10], io.ErrUnexpectedEOF},
		"long cut": {`{"cut":{"afterBytes":1000}}`, items, nil},
		"reset":    {`{"reset":{"afterBytes":10}}`, items[:10], syscall.ECONNRESET},
		"garble":   {`{"garble":{"offset":0,"mask":1}}`, "z" + items[1:], nil},
		"empty":    {`{"empty":{}}`, "", nil},
		"drop":     {`{"drop":{}}`, items, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.rules(t, `{"rules":[{"match":{"verb":"list"},"do":`+test.do+`}]}`)
			resp, err := r.get(t, "/api/v1/pods", "application/json")
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(resp.Body); string(body) != test.want || !errors.Is(err, test.end) {
				t.Errorf("%q, %v, want %q, %v", body, err, test.want, test.end)
			}
		})
	}
	r := newRig(t)
	r.rules(t, `{"rules":[{"match":{},"do":{"reset":{}}}]}`)
	if _, err := r.get(t, "/api/v1/pods", ""); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
}

func TestErrors(t *testing.T) {
	r := newRig(t)
	const too = `{"code":504,"message":"later","retryAfter":3,"causes":[{"reason":"ResourceVersionTooLarge","message":"m"}]%s}`
	r.rules(t, `{"rules":[{"match":{},"do":{"error":`+fmt.Sprintf(too, "")+`}}]}`)
	check := func(code int, status metav1.Status) {
		t.Helper()
		if code != 504 || status.Code != 504 || status.Reason != metav1.StatusReasonTimeout || status.Kind != "Status" ||
			status.Details.RetryAfterSeconds != 3 || status.Details.Causes[0].Type != "ResourceVersionTooLarge" {
			t.Errorf("%d: %+v", code, status)
		}
	}
	resp, err := r.get(t, "/api/v1/pods", protobufType)
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	check(resp.StatusCode, status)
	if resp.Header.Get("Retry-After") != "3" {
		t.Errorf("header %v", resp.Header)
	}
	r.rules(t, `{"rules":[{"match":{},"do":{"error":`+fmt.Sprintf(too, `,"event":true`)+`}}]}`)
	var event struct {
		Type   string
		Object metav1.Status
	}
	watch := r.open(t, false)
	if err := json.NewDecoder(watch.Body).Decode(&event); err != nil || event.Type != "ERROR" || watch.StatusCode != 200 {
		t.Errorf("%d: %+v, %v", watch.StatusCode, event, err)
	}
	check(504, event.Object)
	if e, err := r.open(t, true).next(); err != nil || e.kind != "ERROR" {
		t.Errorf("in protobuf: %q, %v", e.data, err)
	}
}

// TestOpenWatches: rules reach watches that are open, and leave them.
func TestOpenWatches(t *testing.T) {
	r := newRig(t)
	watch := r.open(t, false)
	r.send(t, false, 6)
	watch.want(t, "MODIFIED6", nil)
	r.rules(t, `{"rules":[{"match":{},"do":{"error":{}}},{"name":"hush","match":{"path":"^/api/v1/pods$"},"do":{"withhold":{}}}]}`)
	r.send(t, false, 7, 8)
	if s := r.State(); s.Rules[0].Applied != 0 || s.Rules[1].Applied != 1 || s.Rules[1].Name != "hush" {
		t.Errorf("state %+v", s)
	}
	heard := make(chan frame, 1)
	go func() {
		event, _ := watch.next()
		heard <- event
	}()
	select {
	case event := <-heard:
		t.Errorf("heard %q in spite of all", event.data)
	case <-time.After(50 * time.Millisecond):
	}
	r.rules(t, `{"rules":[]}`)
	if event := <-heard; version(t, event) != "7" {
		t.Errorf("heard %q", event.data)
	}
	watch.want(t, "MODIFIED8", nil)
	r.rules(t, `{"rules":[{"match":{},"do":{"cut":{"afterEvents":1}}}]}`)
	r.send(t, false, 9)
	watch.want(t, "MODIFIED9", io.ErrUnexpectedEOF)
}

func TestMatch(t *testing.T) {
	const any = `"do":{"empty":{}}`
	requests := map[string]request{
		"list":  describe(httptest.NewRequest("GET", "/api/v1/namespaces/a/pods?limit=1", nil)),
		"watch": describe(httptest.NewRequest("GET", "/apis/apps/v1/deployments?watch=1", nil)),
		"get":   describe(httptest.NewRequest("GET", "/api/v1/namespaces/a", nil)),
		"other": describe(httptest.NewRequest("POST", "/api/v1/namespaces/a/pods", nil)),
	}
	for verb, r := range requests {
		if r.verb != verb {
			t.Errorf("%+v, want %s", r, verb)
		}
	}
	if d := describe(httptest.NewRequest("GET", "/apis/apps/v1", nil)); d.verb != other {
		t.Errorf("discovery is %+v", d)
	}
	for match, want := range map[string]string{
		`{}`:                            "list watch get other",
		`{"verb":"get"}`:                "get",
		`{"path":"/pods$"}`:             "list other",
		`{"query":"limit=|watch="}`:     "list watch",
		`{"verb":"list","share":0.001}`: "",
	} {
		var got []string
		for _, verb := range []string{list, watch, get, other} {
			set := compiled(t, `{"seed":1,"rules":[{"match":`+match+`,`+any+`}]}`)
			if set.choose(requests[verb], false) != nil {
				got = append(got, verb)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s matches %v, want %s", match, got, want)
		}
	}
	set := compiled(t, `{"rules":[{"match":{"times":2},`+any+`},{"match":{"share":0.5},"do":{"cut":{}}}]}`)
	first, second := 0, 0
	for range 1002 {
		switch f := set.choose(requests[list], false); {
		case f != nil && f.Empty != nil:
			first++
		case f != nil:
			second++
		}
	}
	if first != 2 || second < 400 || second > 600 {
		t.Errorf("applied %d and %d times, want 2 and some 500", first, second)
	}
}

func compiled(t *testing.T, rules string) *ruleSet {
	t.Helper()
	parsed, err := ParseRules([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	set, err := compile(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestWrongRules(t *testing.T) {
	for _, rules := range []string{
		`{`, `[]`, `{"rule":[]}`, `{"rules":[]} x`,
		`{"rules":[{"match":{}}]}`,
		`{"rules":[{"do":{"empty":{},"cut":{}}}]}`,
		`{"rules":[{"match":{"verb":"post"},"do":{"empty":{}}}]}`,
		`{"rules":[{"match":{"path":"("},"do":{"empty":{}}}]}`,
		`{"rules":[{"match":{"share":2},"do":{"empty":{}}}]}`,
		`{"rules":[{"do":{"bookmark":{}}}]}`,
		`{"rules":[{"do":{"delay":{}}}]}`,
		`{"rules":[{"do":{"delay":{"milliseconds":1,"before":"noon"}}}]}`,
	} {
		parsed, err := ParseRules([]byte(rules))
		if err == nil {
			_, err = compile(parsed)
		}
		if err == nil {
			t.Errorf("%s is accepted", rules)
		}
	}
}

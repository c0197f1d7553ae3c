package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/audit"
	"github.com/informerd/informerd/server/reply"
	"github.com/informerd/informerd/test/websocket"
)

// recorded is what tests read of a line.
type recorded struct {
	AuditID, Stage, RequestURI, Verb, Method, Cluster, UserAgent string

	SourceIPs, Resources []string
	User                 *audit.User
	ObjectRef            *audit.Object
	ResponseStatus       audit.Status
	Objects              *int64
	Bytes                int64
	DurationSeconds      float64
	Cut                  bool
}

// about is what a request is recorded to be about: verb, resource, namespace/name.
func (r recorded) about() string {
	text := r.Verb
	if o := r.ObjectRef; o != nil {
		text += " " + o.Resource
		if o.APIGroup != "" {
			text += "." + o.APIGroup
		}
		if o.Subresource != "" {
			text += "/" + o.Subresource
		}
		if o.Namespace != "" || o.Name != "" {
			text += " " + o.Namespace + "/" + o.Name
		}
	}
	if len(r.Resources) > 0 {
		text += " " + fmt.Sprint(r.Resources)
	}
	if r.Objects != nil {
		text += fmt.Sprint(" ", *r.Objects)
	}
	return text
}

// recording is a world with an audit log, and a function that ends that and gives its
// lines.
func recording(t *testing.T, change ...func(*Options)) (*world, func() []recorded) {
	t.Helper()
	var out bytes.Buffer
	l, err := audit.Open(audit.Options{File: audit.Standard, Stdout: &out, Omit: []string{"/livez"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	w := newWorld(t, append(change, func(o *Options) { o.Audit = l })...)
	return w, func() (all []recorded) {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		lines := json.NewDecoder(&out)
		for {
			var r recorded
			if err := lines.Decode(&r); err == io.EOF {
				return all
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
	}
}

// TestAudit: one line for each request, which says what was asked about, and how much was
// answered: as many bytes as the client got.
func TestAudit(t *testing.T) {
	w, end := recording(t)
	requests := []struct {
		method, target string
		headers        []string
		about          string
		code           int
	}{
		{"GET", "/api/v1/pods?limit=2", nil, "list pods 2", 200},
		{"GET", "/api/v1/namespaces/a/pods", nil, "list pods a/ 2", 200},
		{"GET", "/api/v1/pods?fieldSelector=metadata.name%3Done", nil, "list pods /one 1", 200},
		{"GET", "/api/v1/namespaces/a/pods/one", nil, "get pods a/one 1", 200},
		{"GET", "/api/v1/namespaces/a/pods/none", nil, "get pods a/none", 404},
		{"GET", "/api/v1/namespaces/a/pods/one/log", nil, "get pods/log a/one", 404},
		{"GET", "/api/v1/nodes", []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}, "list nodes 1", 200},
		{"POST", "/api/v1/namespaces/a/pods", nil, "create pods a/", 405},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments", nil, "deletecollection deployments.apps a/", 405},
		{"GET", "/apis", nil, "get", 200},
		{"GET", "/v1/resources/pods/objects?namespace=b", nil, "list pods b/ 1", 200},
		{"GET", "/v1/resources/pods/objects?limit=0", nil, "list pods 3", 200},
		{"GET", "/v1/resources/pods/objects/a/one", nil, "get pods a/one 1", 200},
		{"HEAD", "/v1/resources/pods/objects/a/one", nil, "get pods a/one", 200},
		{"GET", "/v1/resources/nodes/objects/-/n1", nil, "get nodes /n1 1", 200},
		{"GET", "/v1/resources/pods/indexes/label", nil, "list pods 2", 200},
		{"GET", "/v1/resources/pods/indexes/node/n1", nil, "list pods 2", 200},
		{"GET", "/v1/query?resources=pods,nodes", nil, "list [nodes pods] 4", 200},
		{"GET", "/v1/query?resources=pods&groupBy=metadata.namespace", nil, "list [pods] 2", 200},
		{"GET", "/v1/search?q=web", nil, "list [*] 3", 200},
		{"GET", "/v1/graph/pods/a/one", nil, "list pods a/one [*] 2", 200},
		{"GET", "/v1/resources/none/objects", nil, "get", 404},
		{"GET", "/v1/resources/pods/objects?filter=%28", nil, "get", 400},
		{"GET", "/v1/none", nil, "get", 404},
		{"PUT", "/v1/query", nil, "put", 405},
		{"GET", "/v1/resources", []string{"Host", "evil.example.com"}, "get", 403},
		{"GET", "/metrics", nil, "get", 200},
		{"GET", "/" + strings.Repeat("x", maxURL), nil, "get", 414},
		{"GET", "/livez", nil, "", 200},
	}
	var answers []*httptest.ResponseRecorder
	for i, r := range requests {
		answers = append(answers, w.do(t, r.method, r.target, append(r.headers, "Audit-ID", fmt.Sprint("id-", i))...))
	}
	lines := end()
	if len(lines) != len(requests)-1 {
		t.Fatalf("%d lines for %d requests", len(lines), len(requests)-1)
	}
	for i, r := range requests {
		got := answers[i]
		if got.Code != r.code {
			t.Errorf("%s %s = %d %s", r.method, r.target, got.Code, got.Body)
		}
		if r.about == "" {
			if got.Header().Get("Audit-Id") != "" {
				t.Errorf("%s is not recorded and has the id %s", r.target, got.Header().Get("Audit-Id"))
			}
			continue
		}
		line := lines[i]
		if line.about() != r.about || line.ResponseStatus.Code != r.code || line.Method != r.method {
			t.Errorf("%s %s is recorded as %s %q, %d; want %q", r.method, r.target, line.Method, line.about(), line.ResponseStatus.Code, r.about)
		}
		if id := fmt.Sprint("id-", i); line.AuditID != id || got.Header().Get("Audit-Id") != id || line.Stage != "ResponseComplete" {
			t.Errorf("%s has the id %s, answered as %s; stage %s", r.target, line.AuditID, got.Header().Get("Audit-Id"), line.Stage)
		}
		if line.Bytes != int64(got.Body.Len()) || line.Cut {
			t.Errorf("%s: %d bytes, cut %v; %d arrived", r.target, line.Bytes, line.Cut, got.Body.Len())
		}
	}
}

// TestAuditOfCompressed: bytes are those that left.
func TestAuditOfCompressed(t *testing.T) {
	w, end := recording(t)
	rec := w.get(t, "/metrics", "Accept-Encoding", "gzip")
	if rec.Header().Get("Content-Encoding") != "gzip" {
		t.Fatal("not compressed")
	}
	if line := end()[0]; line.Bytes != int64(rec.Body.Len()) {
		t.Errorf("%d bytes, %d left", line.Bytes, rec.Body.Len())
	}
}

// TestAuditOfRefused: who is refused is recorded, too.
func TestAuditOfRefused(t *testing.T) {
	refuse := func(*http.Request) (access.Asker, error) {
		return nil, statusError(reply.Failure(http.StatusUnauthorized, "Unauthorized", "Unauthorized"))
	}
	w, end := recording(t, func(o *Options) { o.Access = refuse })
	w.get(t, "/api/v1/pods", "Authorization", "Bearer s3cr3t")
	w.get(t, "/v1/query?resources=pods&access_token=s3cr3t")
	for _, line := range end() {
		if line.ResponseStatus.Code != 401 || line.User != nil || strings.Contains(fmt.Sprint(line), "s3cr3t") {
			t.Errorf("recorded: %+v", line)
		}
	}
	nothing := func(*http.Request) (access.Asker, error) { return access.From(t.Context()), nil }
	w, end = recording(t, func(o *Options) { o.Access = nothing })
	w.get(t, "/api/v1/namespaces/a/pods/one")
	w.get(t, "/v1/resources/pods/objects/a/one")
	w.get(t, "/v1/query?resources=pods,nodes")
	lines := end()
	for i, want := range []string{"get pods a/one", "get pods a/one", "list [nodes pods]"} {
		if line := lines[i]; line.ResponseStatus.Code != 403 || line.about() != want {
			t.Errorf("recorded: %s %+v", line.about(), line)
		}
	}
}

// TestAuditOfStreams: a stream is recorded when it begins, and at its end with what it
// told of.
func TestAuditOfStreams(t *testing.T) {
	read, written := io.Pipe()
	l, err := audit.Open(audit.Options{File: audit.Standard, Stdout: written})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	defer func() {
		_ = read.Close()
		cancel()
		<-done
	}()
	w := newWorld(t, func(o *Options) { o.Audit = l })
	base := serve(t, w)
	lines := bufio.NewScanner(read)
	next := func() (r recorded) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("no line: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for i, test := range []struct{ target, began, ended string }{
		{"/v1/resources/pods/objects?watch=true&namespace=b", "watch pods b/", "watch pods b/ 2"},
		{"/v1/query?watch=true&resources=pods&namespace=b", "watch [pods]", "watch [pods] 2"},
	} {
		s := open(t, base+test.target)
		begin := next()
		if begin.Stage != "ResponseStarted" || begin.about() != test.began || begin.ResponseStatus.Code != 200 {
			t.Errorf("the beginning of %s is recorded as %s %s %d", test.target, begin.Stage, begin.about(), begin.ResponseStatus.Code)
		}
		// A change before the first objects are looked at would be among them.
		for s.next().name != "ADDED" {
		}
		w.pods.apply(t, cache.Modified, pod("b", "three", "web", "n1", 200+i))
		for s.next().name != "MODIFIED" {
		}
		s.close()
		over := next()
		if over.Stage != "ResponseComplete" || over.about() != test.ended || over.AuditID != begin.AuditID || over.Bytes == 0 {
			t.Errorf("the end of %s is recorded as %s %s, %d bytes", test.target, over.Stage, over.about(), over.Bytes)
		}
	}
	resp, err := http.Get(base + "/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion=0")
	if err != nil {
		t.Fatal(err)
	}
	begin := next()
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if over := next(); err != nil || begin.about() != "watch pods" || over.about() != "watch pods 3" || over.Bytes != int64(len(body)) || over.Cut {
		t.Errorf("a watch is recorded as %q and %q with %d bytes, cut %v; %d arrived, %v", begin.about(), over.about(), over.Bytes, over.Cut, len(body), err)
	}
	recordsSocket(t, base, next)
	// One that may not begin is recorded once.
	if resp, err = http.Get(base + "/v1/resources/events/objects?watch=true"); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if line := next(); line.Stage != "ResponseComplete" || line.ResponseStatus.Code != resp.StatusCode || resp.StatusCode != 404 {
		t.Errorf("refused with %d, recorded as %s %d", resp.StatusCode, line.Stage, line.ResponseStatus.Code)
	}
}

// recordsSocket: a watch over a WebSocket is recorded like any other, with what was sent.
func recordsSocket(t *testing.T, base string, next func() recorded) {
	t.Helper()
	c, head, err := websocket.Dial(t.Context(), base+"/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion=0", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begin, sent := next(), len("\x88\x02\x03\xe8") // the end
	for {
		_, message, err := c.ReadMessage()
		if websocket.Ended(err) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if sent += 2 + len(message); len(message) > 125 {
			sent += 2
		}
	}
	if over := next(); begin.about() != "watch pods" || begin.ResponseStatus.Code != 101 || over.about() != "watch pods 3" ||
		over.ResponseStatus.Code != 101 || over.Bytes != int64(sent) || over.Cut || head.Header.Get(audit.Header) != over.AuditID {
		t.Errorf("a WebSocket is recorded as %+v and %+v; %d bytes arrived", begin, over, sent)
	}
}

// TestAuditOfPassedOn: what is passed on has the same id in the API server's audit log,
// and one id in its answer.
func TestAuditOfPassedOn(t *testing.T) {
	var passed []string
	up := func(r *http.Request) (*http.Response, error) {
		passed = append(passed, r.Header.Get("Audit-ID"))
		answer := created()
		answer.Header.Set("Audit-Id", r.Header.Get("Audit-ID"))
		return answer, nil
	}
	l, err := audit.Open(audit.Options{File: audit.Standard, Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	w := passing(t, up, func(o *Options) { o.Audit = l })
	for _, id := range []string{"given", ""} {
		rec := w.do(t, "POST", onePod, "Audit-ID", id)
		if got := rec.Header().Values("Audit-Id"); rec.Code != 201 || len(got) != 1 || got[0] == "" || got[0] != passed[len(passed)-1] || id != "" && got[0] != id {
			t.Errorf("%d: the answer has the ids %v, passed on %v", rec.Code, got, passed)
		}
	}
	w = passing(t, up)
	if rec := w.do(t, "POST", onePod, "Audit-ID", "given"); !slices.Equal(rec.Header().Values("Audit-Id"), []string{"given"}) {
		t.Errorf("without an audit log: %v", rec.Header())
	}
}

// TestAuditMetrics: what is missing is counted, and with nothing to be written nothing is.
func TestAuditMetrics(t *testing.T) {
	w := newWorld(t)
	if got := scrape(t, w); got["informerd_audit_dropped_total{}"] != 0 || got["informerd_audit_records_total{}"] != 0 {
		t.Errorf("without a log: %v", got)
	}
	w = newWorld(t, func(o *Options) { o.Audit = lossy{} })
	if got := scrape(t, w); got["informerd_audit_dropped_total{}"] != 7 || got["informerd_audit_records_total{}"] != 35 {
		t.Error("the counts are not told")
	}
}

// lossy is an audit log from which lines are missing.
type lossy struct{}

func (lossy) Begin(*http.Request) *audit.Record { return nil }

func (lossy) Counts() (written, dropped uint64) { return 35, 7 }

package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access"
)

// jane is somebody known, who may read pods of namespace a, ask about others, and read
// /metrics; bob may nothing.
type jane struct {
	denyReviews bool
	notPassed   error
	asked       []access.Attributes
}

func (*jane) Name() string { return "jane" }

func (*jane) Scope(context.Context, string, cache.Verb, schema.GroupResource) (cache.Scope, error) {
	return cache.NewScope([]string{"a"}, nil), nil
}

func (j *jane) Allowed(_ context.Context, a access.Attributes) (bool, string, error) {
	j.asked = append(j.asked, a)
	switch {
	case a.Group == "authorization.k8s.io" || a.Group == "authentication.k8s.io":
		return !j.denyReviews, "", nil
	case a.Namespace == "broken":
		return false, "", errors.New("cannot be told")
	}
	return a.Namespace == "a" && a.Resource == "pods", "RBAC says so", nil
}

func (*jane) Path(_ context.Context, _, path string) (bool, error) { return path == "/metrics", nil }
func (*jane) Generation(context.Context, string) (uint64, error)   { return 0, nil }
func (j *jane) PassesOn(context.Context, string) error             { return j.notPassed }
func (*jane) PathIn(_ context.Context, _, _, path string) (bool, string, error) {
	return path == "/metrics", "", nil
}

func (*jane) User(context.Context, string) (authenticationv1.UserInfo, error) {
	return authenticationv1.UserInfo{Username: "jane", UID: "1", Groups: []string{"dev", "system:authenticated"}}, nil
}

func (*jane) Other(_ context.Context, who authenticationv1.UserInfo, a access.Attributes, path string) (bool, string, error) {
	return who.Username == "jane" && (path == "/metrics" || a.Namespace == "a"), "", nil
}

func (*jane) Rules(context.Context, string, string) (authorizationv1.SubjectRulesReviewStatus, error) {
	rule := func(verbs, groups, resources string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{Verbs: strings.Fields(verbs), APIGroups: strings.Split(groups, " "), Resources: strings.Fields(resources)}
	}
	return authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{
			rule("get list delete", "", "pods pods/log"),
			rule("*", "apps", "deployments"),
			rule("create", "authorization.k8s.io", "selfsubjectaccessreviews"),
			rule("create", "", "pods/exec"),
		},
		NonResourceRules: []authorizationv1.NonResourceRule{
			{Verbs: []string{"get", "post"}, NonResourceURLs: []string{"/metrics"}}, {Verbs: []string{"post"}, NonResourceURLs: []string{"/x"}},
		},
		Incomplete: true, EvaluationError: "perhaps more",
	}, nil
}

var _ reviewer = (*jane)(nil)

const (
	selfAccess  = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	selfRules   = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	otherAccess = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	localAccess = "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews"
	selfReview  = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// post sends a body as JSON.
func (w *world) post(target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Content-Type", typeJSON)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.serve(rec, r)
	return rec
}

// TestReviewsOfAccess: reads are as rights are, all else is not done here.
func TestReviewsOfAccess(t *testing.T) {
	for _, test := range []struct {
		attributes string // of a resource, or nonResourceAttributes with a leading /
		everyone   bool
		jane       bool
		replica    bool // no, because informerd is one
	}{
		{`"verb":"list","resource":"pods","namespace":"a"`, true, true, false},
		{`"verb":"list","resource":"pods"`, true, false, false},
		{`"verb":"get","resource":"secrets","namespace":"a"`, true, false, false},
		{`"verb":"watch","group":"apps","resource":"deployments"`, true, false, false},
		{`"verb":"get","resource":"pods","subresource":"log","namespace":"a"`, false, false, true},
		{`"verb":"get","resource":"pods","subresource":"exec","namespace":"a"`, false, false, true},
		{`"verb":"delete","resource":"pods","namespace":"a"`, false, false, true},
		{`"verb":"create","resource":"pods","namespace":"a"`, false, false, true},
		{`"verb":"*","resource":"*"`, false, false, true},
		{`"verb":"create","group":"authorization.k8s.io","resource":"selfsubjectaccessreviews"`, true, true, false},
		{`"verb":"get","path":"/metrics"`, true, true, false},
		{`"verb":"get","path":"/logs"`, true, false, false},
		{`"verb":"post","path":"/metrics"`, false, false, true},
	} {
		for _, who := range []access.Asker{access.Everyone(), &jane{}} {
			w := newWorld(t)
			w.asker = who
			kind := "resourceAttributes"
			if strings.Contains(test.attributes, `"path"`) {
				kind = "nonResourceAttributes"
			}
			rec := w.post(selfAccess, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"`+kind+`":{`+test.attributes+`}}}`)
			var got authorizationv1.SelfSubjectAccessReview
			if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusCreated || got.Kind != "SelfSubjectAccessReview" {
				t.Fatalf("%s: %d %s", test.attributes, rec.Code, rec.Body)
			}
			want := test.everyone
			if who.Name() == "jane" {
				want = test.jane
			}
			if got.Status.Allowed != want || (got.Status.Reason == isReplica) != test.replica {
				t.Errorf("%s of %q: %+v, want %v", test.attributes, who.Name(), got.Status, want)
			}
			if got.Spec.ResourceAttributes == nil && got.Spec.NonResourceAttributes == nil {
				t.Errorf("%s: the question is not in the answer: %s", test.attributes, rec.Body)
			}
		}
	}
}

// TestReviewsPassedOn: where writes are passed on, what they may is the API server's
// verdict: on the caller's own request if nobody is known here, else on who asks.
func TestReviewsPassedOn(t *testing.T) {
	const question = `{"spec":{"resourceAttributes":{"verb":"delete","resource":"pods","namespace":"a"}}}`
	w := newWorld(t)
	w.modes.Passthrough = PassAll
	w.upstream.set(func(*http.Request) *http.Response { return jsonResponse(299, "passed on") })
	if rec := w.post(selfAccess, question, "Authorization", "Bearer caller"); rec.Code != 299 {
		t.Errorf("everyone: %d %s", rec.Code, rec.Body)
	}
	who := &jane{}
	w.asker = who
	rec := w.post(selfAccess, question)
	var got authorizationv1.SelfSubjectAccessReview
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || !got.Status.Allowed {
		t.Errorf("jane: %d %s", rec.Code, rec.Body)
	}
	if last := who.asked[len(who.asked)-1]; last.Verb != "delete" || last.Cluster != "default" {
		t.Errorf("asked %+v", last)
	}
	w.modes.Passthrough = PassReads
	rec = w.post(selfAccess, `{"spec":{"resourceAttributes":{"verb":"get","resource":"pods","subresource":"log","namespace":"a"}}}`)
	if !strings.Contains(rec.Body.String(), `"allowed":true`) {
		t.Errorf("logs, which are passed on: %s", rec.Body)
	}
	who.notPassed = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("not with a certificate"))
	w.modes.Passthrough = PassAll
	asked := len(w.upstream.requests())
	w.wantStatus(w.do(http.MethodDelete, "/api/v1/namespaces/a/pods/one"), 403, metav1.StatusReasonForbidden, "not with a certificate")
	if len(w.upstream.requests()) != asked {
		t.Error("passed on what must not be")
	}
}

// TestReviewsOfOthers: only who may create them at the API server.
func TestReviewsOfOthers(t *testing.T) {
	w := newWorld(t)
	who := &jane{}
	w.asker = who
	for _, test := range []struct {
		target, body string
		allowed      bool
	}{
		{otherAccess, `{"spec":{"user":"jane","resourceAttributes":{"verb":"list","resource":"pods","namespace":"a"}}}`, true},
		{otherAccess, `{"spec":{"user":"bob","resourceAttributes":{"verb":"list","resource":"pods","namespace":"a"}}}`, false},
		{otherAccess, `{"spec":{"user":"jane","nonResourceAttributes":{"verb":"get","path":"/metrics"}}}`, true},
		{otherAccess, `{"spec":{"user":"jane","resourceAttributes":{"verb":"delete","resource":"pods","namespace":"a"}}}`, false},
		{localAccess, `{"metadata":{"namespace":"a"},"spec":{"user":"jane","resourceAttributes":{"verb":"list","resource":"pods","namespace":"a"}}}`, true},
	} {
		rec := w.post(test.target, test.body)
		var got authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != 201 || got.Status.Allowed != test.allowed {
			t.Errorf("%s: %d %s", test.body, rec.Code, rec.Body)
		}
	}
	if rec := w.post(otherAccess, `{"spec":{"resourceAttributes":{"verb":"get"}}}`); rec.Code != 422 {
		t.Errorf("of nobody: %d %s", rec.Code, rec.Body)
	}
	w.wantStatus(w.post(localAccess, `{"spec":{"user":"jane","resourceAttributes":{"verb":"list","resource":"pods","namespace":"b"}}}`), 400, metav1.StatusReasonBadRequest, "must match namespace: a")
	if rec := w.post(localAccess, `{"spec":{"user":"jane","nonResourceAttributes":{"verb":"get","path":"/"}}}`); rec.Code != 422 {
		t.Errorf("a path in a namespace: %d %s", rec.Code, rec.Body)
	}
	who.denyReviews = true
	w.wantStatus(w.post(otherAccess, `{}`), 403, metav1.StatusReasonForbidden, `User "jane" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope`)
	w.wantStatus(w.post(localAccess, `{}`), 403, metav1.StatusReasonForbidden, `in the namespace "a"`)
}

// TestSelfReview: who asks, as kubectl auth whoami shows it.
func TestSelfReview(t *testing.T) {
	for _, test := range []struct {
		who  access.Asker
		want string
	}{{access.Everyone(), "system:anonymous"}, {&jane{}, "jane"}} {
		w := newWorld(t)
		w.asker = test.who
		rec := w.post(selfReview, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`)
		var got authenticationv1.SelfSubjectReview
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != 201 || got.Status.UserInfo.Username != test.want {
			t.Errorf("%d %s, want %s", rec.Code, rec.Body, test.want)
		}
		if age := time.Since(got.CreationTimestamp.Time); age < 0 || age > time.Minute {
			t.Errorf("it was made at %v", got.CreationTimestamp)
		}
		if cached := rec.Header().Get("Cache-Control"); cached != "no-store" {
			t.Errorf("may be kept: %s", cached)
		}
	}
}

// TestSelfRules: the rules that somebody has, as far as anything is done here.
func TestSelfRules(t *testing.T) {
	w := newWorld(t)
	rules := func() (got authorizationv1.SubjectRulesReviewStatus) {
		t.Helper()
		var review authorizationv1.SelfSubjectRulesReview
		rec := w.post(selfRules, `{"spec":{"namespace":"a"}}`)
		if err := json.Unmarshal(rec.Body.Bytes(), &review); err != nil || rec.Code != 201 {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		return review.Status
	}
	if got := rules(); len(got.ResourceRules) != 1 || !slices.Equal(got.ResourceRules[0].Verbs, readVerbs) || got.Incomplete {
		t.Errorf("everyone: %+v", got)
	}
	w.asker = &jane{}
	texts := func() (all []string) {
		for _, r := range rules().ResourceRules {
			all = append(all, strings.Join(r.Verbs, ",")+" "+strings.Join(r.Resources, ","))
		}
		return all
	}
	for mode, want := range map[Passthrough][]string{
		PassNone:  {"get,list pods", "get,list,watch,impersonate deployments", "create selfsubjectaccessreviews"},
		PassReads: {"get,list pods,pods/log", "get,list,watch,impersonate deployments", "create selfsubjectaccessreviews"},
		PassAll:   {"get,list,delete pods,pods/log", "* deployments", "create selfsubjectaccessreviews", "create pods/exec"},
	} {
		w.modes.Passthrough = mode
		if diff := cmp.Diff(want, texts()); diff != "" {
			t.Errorf("passthrough %s: %s", mode, diff)
		}
	}
	w.modes.Passthrough = PassNone
	if got := rules(); !got.Incomplete || got.EvaluationError == "" || len(got.NonResourceRules) != 1 || !slices.Equal(got.NonResourceRules[0].Verbs, []string{"get"}) {
		t.Errorf("jane: %+v", got)
	}
	w.wantStatus(w.post(selfRules, `{}`), 400, metav1.StatusReasonBadRequest, "no namespace")
}

// TestReviewForms: clients send what is built in as JSON, YAML or protobuf, and like
// their answers so.
func TestReviewForms(t *testing.T) {
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "list", Resource: "pods", Namespace: "a",
		}},
	}
	encode := func(mediaType string) string {
		form, _ := runtime.SerializerInfoForMediaType(reviewForms, mediaType)
		var body bytes.Buffer
		if err := form.Serializer.Encode(review, &body); err != nil {
			t.Fatal(err)
		}
		return body.String()
	}
	w := newWorld(t)
	w.asker = &jane{}
	for _, sent := range []string{typeJSON, typeYAML, typeProtobuf, typeJSON + "; charset=utf-8"} {
		for accept, want := range map[string]string{
			"": typeJSON, "*/*": typeJSON, typeYAML: typeYAML, typeProtobuf + "," + typeJSON: typeProtobuf,
			typeJSON + ";as=Table;v=v1;g=meta.k8s.io," + typeJSON: typeJSON,
		} {
			mediaType, _, _ := strings.Cut(sent, ";")
			rec := w.post(selfAccess, encode(mediaType), "Content-Type", sent, "Accept", accept)
			if rec.Code != 201 || rec.Header().Get("Content-Type") != want {
				t.Fatalf("%s for %q: %d %s %s", sent, accept, rec.Code, rec.Header().Get("Content-Type"), rec.Body)
			}
			form, _ := runtime.SerializerInfoForMediaType(reviewForms, want)
			got, _, err := form.Serializer.Decode(rec.Body.Bytes(), nil, nil)
			if err != nil || !got.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed {
				t.Errorf("%s for %q: %+v, %v", sent, accept, got, err)
			}
		}
	}
	for name, test := range map[string]struct {
		body    string
		headers []string
		code    int
	}{
		"no body":         {"", nil, 400},
		"not JSON":        {"{", nil, 400},
		"another kind":    {`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview"}`, nil, 400},
		"another version": {`{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SelfSubjectAccessReview"}`, nil, 400},
		"about nothing":   {`{}`, nil, 422},
		"about two":       {`{"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}}`, nil, 422},
		"two selectors":   {`{"spec":{"resourceAttributes":{"labelSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"Exists"}]}}}}`, nil, 422},
		"not protobuf":    {"k8s\x00nonsense", []string{"Content-Type", typeProtobuf}, 400},
		"unknown form":    {`{}`, []string{"Content-Type", "text/plain"}, 415},
		"CBOR":            {`{}`, []string{"Content-Type", "application/cbor"}, 415},
		"unknown answer":  {`{"spec":{"resourceAttributes":{"verb":"get"}}}`, []string{"Accept", "text/html"}, 406},
		"too large":       {`{"metadata":{"name":"` + strings.Repeat("x", maxReview) + `"}}`, nil, 413},
	} {
		if rec := w.post(selfAccess, test.body, test.headers...); rec.Code != test.code {
			t.Errorf("%s: %d %s, want %d", name, rec.Code, rec.Body, test.code)
		}
	}
}

// TestReviewSelectors: what a client asks about with selectors is asked with them.
func TestReviewSelectors(t *testing.T) {
	w := newWorld(t)
	who := &jane{}
	w.asker = who
	for body, want := range map[string][2]string{
		`"labelSelector":{"rawSelector":"app=x"},"fieldSelector":{"rawSelector":"spec.nodeName=n"}`: {"app=x", "spec.nodeName=n"},
		`"labelSelector":{"requirements":[{"key":"app","operator":"In","values":["x","y"]},{"key":"b","operator":"Exists"}]},` +
			`"fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["n"]},{"key":"c","operator":"NotIn","values":["d"]}]}`: {"app in (x,y),b", "spec.nodeName=n,c!=d"},
	} {
		w.post(selfAccess, `{"spec":{"resourceAttributes":{"verb":"list","resource":"pods","namespace":"a",`+body+`}}}`)
		if got := who.asked[len(who.asked)-1]; got.LabelSelector != want[0] || got.FieldSelector != want[1] {
			t.Errorf("%s: asked with %q and %q", body, got.LabelSelector, got.FieldSelector)
		}
	}
}

// TestReviewsDiscovered: clients find what they may ask with, and nothing else of those
// groups.
func TestReviewsDiscovered(t *testing.T) {
	w := newWorld(t)
	var list apidiscovery.APIGroupDiscoveryList
	w.into(&list, "/apis", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	got := map[string]string{}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				if strings.HasSuffix(r.Resource, "reviews") {
					got[g.Name+"/"+v.Version+"/"+r.Resource] = strings.Join(r.Verbs, ",") + " " + string(r.Scope) + " " + r.ResponseKind.Kind
				}
			}
		}
	}
	want := map[string]string{
		"authentication.k8s.io/v1/selfsubjectreviews":       "create Cluster SelfSubjectReview",
		"authorization.k8s.io/v1/localsubjectaccessreviews": "create Namespaced LocalSubjectAccessReview",
		"authorization.k8s.io/v1/selfsubjectaccessreviews":  "create Cluster SelfSubjectAccessReview",
		"authorization.k8s.io/v1/selfsubjectrulesreviews":   "create Cluster SelfSubjectRulesReview",
		"authorization.k8s.io/v1/subjectaccessreviews":      "create Cluster SubjectAccessReview",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var legacy metav1.APIResourceList
	if w.into(&legacy, "/apis/authorization.k8s.io/v1"); len(legacy.APIResources) != 4 {
		t.Errorf("legacy: %+v", legacy.APIResources)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		if rec := w.do(method, selfAccess); rec.Code == 201 || rec.Code == 200 {
			t.Errorf("%s: %d", method, rec.Code)
		}
	}
	w.wantStatus(w.post("/apis/authentication.k8s.io/v1/tokenreviews", `{}`), 405, metav1.StatusReasonMethodNotAllowed, "read replica")
}

// TestReviewCannotBeTold: what is not known is not no.
func TestReviewCannotBeTold(t *testing.T) {
	w := newWorld(t)
	w.asker = &jane{}
	r := httptest.NewRequest(http.MethodPost, selfAccess, strings.NewReader(`{"spec":{"resourceAttributes":{"verb":"get","resource":"pods","namespace":"broken"}}}`))
	err := w.Serve(httptest.NewRecorder(), r.WithContext(access.With(r.Context(), w.asker)))
	if err == nil || err.Error() != "cannot be told" {
		t.Errorf("Serve() = %v", err)
	}
}

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/informerd/informerd/cache"
)

const (
	// documentAge is how long a document is given without asking again, unless
	// the cluster's resources changed.
	documentAge = 30 * time.Second
	// maxDocument bounds one document.
	maxDocument = 32 << 20
	// documentTimeout bounds the wait for one document.
	documentTimeout = 15 * time.Second
)

// document is an answer of the API server.
type document struct {
	contentType, etag string
	// body is as the API server has sent it, packed the same, compressed. One of them is
	// there.
	body, packed []byte
	// warnings are its Warning headers, for whoever asked.
	warnings []string
}

// errNotModified: the document held is still what the API server says.
var errNotModified = errors.New("not modified")

// fetch returns a document as new as documentAge, or as new as there is while
// the API server does not answer. An answer other than 200 is an error.
func (a *API) fetch(ctx context.Context, key cache.DocumentKey) (*document, error) {
	return a.fetchEdition(ctx, key, "")
}

// fetchEdition is fetch for who was told which edition of the document is the newest:
// hash is "" or, as in the links of /openapi/v3, what the document's tag should say. It
// is no part of the key. An API server redirects who asks for an edition that is not its
// own, and during an outage another edition is better than none.
func (a *API) fetchEdition(ctx context.Context, key cache.DocumentKey, hash string) (*document, error) {
	now := time.Now()
	serves := a.editions.serves(key.Cluster, edition(a.Caches.Resources(), key.Cluster), now)
	held, ok := a.documents.get(key)
	newest := serves.trusts(held.Fetched, now) && (hash == "" || held.ETag == "" || held.ETag == `"`+hash+`"`)
	if ok && (newest || a.outages.last(key.Cluster, now)) {
		return packedDocument(held), nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return once(ctx, &a.asking, fmt.Sprintf("document %q", key), func(ctx context.Context) (*document, error) {
		return a.renew(ctx, key, held, ok)
	})
}

// renew asks for a document of which held is known, if ok.
func (a *API) renew(ctx context.Context, key cache.DocumentKey, held cache.Document, ok bool) (*document, error) {
	doc, err := a.ask(ctx, key, held.ETag)
	switch {
	case err == nil:
		a.keep(key, doc)
		return doc, nil
	case errors.Is(err, errNotModified):
		a.documents.confirm(key, time.Now())
		return packedDocument(held), nil
	case ok && !isAnswer(err):
		return packedDocument(held), nil
	}
	return nil, err
}

// ask asks for a document anew; etag, if not "", is that of the one held.
func (a *API) ask(ctx context.Context, key cache.DocumentKey, etag string) (*document, error) {
	doc := &document{}
	err := a.read(ctx, key, etag, func(resp *http.Response) (err error) {
		doc.contentType, doc.etag, doc.warnings = resp.Header.Get("Content-Type"), resp.Header.Get("ETag"), resp.Header.Values("Warning")
		doc.body, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
		if err == nil && len(doc.body) > maxDocument {
			err = fmt.Errorf("read %s: larger than %d bytes", key.URI, maxDocument)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return doc, nil
}

// read asks for a document and has it read while it comes in.
func (a *API) read(ctx context.Context, key cache.DocumentKey, etag string, read func(*http.Response) error) error {
	up := a.Upstream(key.Cluster)
	if up == nil {
		return errNoUpstream(key.Cluster, nil)
	}
	defer cache.Pause(ctx)()
	asking, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	// Another informerd is to answer as an API server does, not from what it holds.
	start, header := time.Now(), http.Header{"Accept": {key.Accept}, ReadsHeader: {string(Consistent)}}
	if etag != "" {
		header.Set("If-None-Match", etag)
	}
	resp, err := up.Get(asking, key.URI, header)
	if err != nil {
		a.outages.begin(ctx, key.Cluster, start)
		return errNoUpstream(key.Cluster, err)
	}
	defer resp.Body.Close()
	a.outages.end(key.Cluster)
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return errNotModified
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode/100 == 3:
		return errNoUpstream(key.Cluster, fmt.Errorf("it answered %s", resp.Status))
	case resp.StatusCode != http.StatusOK:
		return answered(resp.StatusCode, key.URI)
	}
	body := &brokenBody{ReadCloser: resp.Body}
	resp.Body = body
	err = read(resp)
	if body.err != nil {
		a.outages.begin(ctx, key.Cluster, start)
		return errNoUpstream(key.Cluster, body.err)
	}
	return err
}

// brokenBody tells an answer that broke off from one that is wrong.
type brokenBody struct {
	io.ReadCloser
	err error
}

func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// openAPIPart is what lies between the slashes of a document's path: a group, a
// version, but also .well-known.
var openAPIPart = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// isOpenAPI reports whether a path can be that of a document of OpenAPI, and of
// nothing else: it is asked for with informerd's own credentials.
func (q *request) isOpenAPI() bool {
	if len(q.parts) < 2 || q.parts[1] != "v3" && (q.parts[1] != "v2" || len(q.parts) > 2) {
		return false
	}
	return !slices.ContainsFunc(q.parts, func(part string) bool { return !openAPIPart.MatchString(part) })
}

// unknownForm is asked for instead of forms that no API server has, for its own refusal.
const unknownForm = "application/x-unknown"

// openAPIForm is the one of the forms of OpenAPI documents of version v2 or v3 that a
// client prefers. Clients say the same in countless ways, and each must not become a
// question and a document of its own (kube-openapi pkg/handler, pkg/handler3).
func openAPIForm(version string, accept []string) string {
	header := strings.Join(accept, ",")
	if header == "" {
		return typeJSON
	}
	protobuf := "com.github.proto-openapi.spec." + version
	for _, clause := range goautoneg.ParseAccept(header) {
		switch {
		case clause.Type != "application" && clause.Type != "*":
		case clause.SubType == "json" || clause.SubType == "*":
			return typeJSON
		case clause.SubType == protobuf+".v1.0+protobuf" || clause.SubType == protobuf+"@v1.0+protobuf":
			return "application/" + protobuf + ".v1.0+protobuf"
		}
	}
	return unknownForm
}

// openAPI describes the types of all that the cluster serves, as the API server
// does.
func (a *API) openAPI(w http.ResponseWriter, r *http.Request, req *request) error {
	if !req.isOpenAPI() {
		return errUnknown(req)
	}
	accept := openAPIForm(req.parts[1], r.Header.Values("Accept"))
	uri := url.URL{Path: req.path()}
	key := cache.DocumentKey{Cluster: req.cluster, URI: uri.RequestURI(), Accept: accept}
	doc, err := a.fetchEdition(r.Context(), key, r.URL.Query().Get("hash"))
	if err != nil {
		return err
	}
	if doc.etag != "" && tagMatches(w, r, doc.etag) {
		return nil
	}
	return doc.write(w, r)
}

// OpenAPI is the OpenAPI 3 document of a group and version, and its tag, "" if it
// has none.
func (a *API) OpenAPI(ctx context.Context, cluster string, gv schema.GroupVersion) (body []byte, tag string, err error) {
	path := "/openapi/v3/apis/" + gv.String()
	if gv.Group == "" {
		path = "/openapi/v3/api/" + gv.Version
	}
	doc, err := a.fetch(ctx, cache.DocumentKey{Cluster: cluster, URI: path, Accept: typeJSON})
	if err != nil {
		return nil, "", err
	}
	body, err = doc.plain()
	return body, doc.etag, err
}

// version is the API server's own; while it was never reached, what is known of
// it.
func (a *API) version(w http.ResponseWriter, r *http.Request, req *request) error {
	if len(req.parts) > 1 {
		return errUnknown(req)
	}
	m, err := negotiate(r, plain)
	if err != nil {
		return err
	}
	doc, err := a.fetch(r.Context(), cache.DocumentKey{Cluster: req.cluster, URI: "/version", Accept: typeJSON})
	if err == nil {
		return writeVersion(w, m, doc)
	}
	for _, c := range a.Caches.Clusters() {
		if c.Name == req.cluster && c.Version != "" {
			return writeValue(w, m, parseVersion(c.Version))
		}
	}
	return err
}

func writeVersion(w http.ResponseWriter, m media, doc *document) error {
	body, err := doc.plain()
	if err != nil {
		return err
	}
	if m.yaml {
		return writeBody(w, m, body)
	}
	w.Header().Set("Content-Type", typeJSON)
	_, err = w.Write(body)
	return cut(err)
}

// parseVersion fills in what follows from a gitVersion.
func parseVersion(git string) apiversion.Info {
	info := apiversion.Info{GitVersion: git}
	if parts := strings.SplitN(strings.TrimPrefix(git, "v"), ".", 3); len(parts) == 3 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return info
}

// isAnswer: the API server answered, although not with what was asked for.
func isAnswer(err error) bool { return statusOf(err).Code < http.StatusInternalServerError }

func answered(code int, uri string) error {
	reason := metav1.StatusReason("")
	switch code {
	case http.StatusNotFound:
		reason = metav1.StatusReasonNotFound
	case http.StatusForbidden:
		reason = metav1.StatusReasonForbidden
	case http.StatusUnauthorized:
		reason = metav1.StatusReasonUnauthorized
	case http.StatusNotAcceptable:
		reason = metav1.StatusReasonNotAcceptable
	}
	return statusError(code, reason, "the API server answered informerd's GET %s with %d", uri, code)
}

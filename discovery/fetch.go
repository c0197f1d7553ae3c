package discovery

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// fetchTimeout bounds one look at discovery.
	fetchTimeout = 30 * time.Second

	// acceptDiscovery prefers aggregated discovery, as of Kubernetes 1.30, then
	// that of 1.26, which has the same fields, then the unaggregated.
	acceptDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," +
		"application/json"
)

var (
	errStale   = errors.New("group version is stale: its server does not answer")
	errEmpty   = errors.New("no group is served")
	errLegacy  = errors.New("discovery is not aggregated")
	errNoReply = errors.New("answered 304 to a question never asked")
)

// fetcher asks the server what it serves. It belongs to one goroutine.
type fetcher struct {
	client *client
	api    endpoint // the core group
	apis   endpoint // all others
	legacy bool     // the last answer was not aggregated
	dirty  bool     // a document changed since fetch last returned an answer
}

// endpoint is one of the two aggregated documents, as last answered.
type endpoint struct {
	path   string
	etag   string
	known  bool
	groups []group
}

func newFetcher(c *client) *fetcher {
	return &fetcher{client: c, api: endpoint{path: "/api"}, apis: endpoint{path: "/apis"}}
}

// fetch returns all the server serves. It is whole: a group version that does
// not answer is in it with its error, and if either document cannot be had
// there is only an error. changed is false if the server says that nothing
// changed since the last successful call.
func (f *fetcher) fetch(ctx context.Context) (a answer, changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	err = f.aggregated(ctx)
	f.legacy = errors.Is(err, errLegacy)
	switch {
	case f.legacy:
		f.api.forget()
		f.apis.forget()
		f.dirty = true
		a, err = f.client.fetchLegacy(ctx)
	case err == nil:
		a.groups = append(a.groups, f.api.groups...)
		a.groups = append(a.groups, f.apis.groups...)
	}
	if err == nil && len(a.groups) == 0 {
		err = errEmpty
	}
	if err != nil {
		return answer{}, false, fmt.Errorf("discover resources: %w", err)
	}
	changed, f.dirty = f.dirty, false
	return a, changed, nil
}

// aggregated brings both documents up to date.
func (f *fetcher) aggregated(ctx context.Context) error {
	for _, e := range []*endpoint{&f.api, &f.apis} {
		changed, err := e.refresh(ctx, f.client)
		f.dirty = f.dirty || changed
		if err != nil {
			return err
		}
	}
	return nil
}

// refresh takes over the server's document, unless it says the known one is
// current.
func (e *endpoint) refresh(ctx context.Context, c *client) (changed bool, err error) {
	resp, err := c.get(ctx, e.path, nil, acceptDiscovery, e.etag)
	if err != nil {
		if apierrors.IsNotFound(err) && !e.known {
			return false, nil // a server of aggregated APIs alone has no /api
		}
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified {
		if !e.known {
			return false, errNoReply
		}
		return false, nil
	}
	if !isAggregated(resp.Header.Get("Content-Type")) {
		return false, errLegacy
	}
	var list apidiscovery.APIGroupDiscoveryList
	if err := decodeBody(resp, e.path, &list); err != nil {
		return false, err
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return false, fmt.Errorf("decode %s: kind is %q, not APIGroupDiscoveryList", e.path, list.Kind)
	}
	if len(list.Items) == 0 && len(e.groups) > 0 {
		return false, errEmpty
	}
	e.groups, e.etag, e.known = readAggregated(&list), resp.Header.Get("ETag"), true
	return true, nil
}

func (e *endpoint) forget() { e.etag, e.known, e.groups = "", false, nil }

func isAggregated(contentType string) bool {
	base, params, err := mime.ParseMediaType(contentType)
	return err == nil && base == "application/json" &&
		params["g"] == "apidiscovery.k8s.io" && params["as"] == "APIGroupDiscoveryList"
}

func readAggregated(list *apidiscovery.APIGroupDiscoveryList) []group {
	groups := make([]group, 0, len(list.Items))
	for _, item := range list.Items {
		g := group{name: item.Name, versions: make([]version, 0, len(item.Versions))}
		for _, v := range item.Versions {
			g.versions = append(g.versions, readVersion(v))
		}
		groups = append(groups, g)
	}
	return groups
}

func readVersion(v apidiscovery.APIVersionDiscovery) version {
	if v.Freshness == apidiscovery.DiscoveryFreshnessStale {
		return version{name: v.Version, err: errStale}
	}
	out := version{name: v.Version, resources: make([]served, 0, len(v.Resources))}
	for _, r := range v.Resources {
		s := served{
			name:       r.Resource,
			singular:   r.SingularResource,
			shortNames: orNil(r.ShortNames),
			categories: orNil(r.Categories),
			verbs:      orNil(r.Verbs),
			namespaced: r.Scope == apidiscovery.ScopeNamespace,
		}
		if r.ResponseKind != nil {
			s.kind = r.ResponseKind.Kind
		}
		out.resources = append(out.resources, s)
	}
	return out
}

// orNil makes [] and null the same, so that they compare equal.
func orNil(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	return s
}

// serverVersion is the server's gitVersion.
func (c *client) serverVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := c.getJSON(ctx, "/version", nil, &info); err != nil {
		return "", fmt.Errorf("ask for server version: %w", err)
	}
	return info.GitVersion, nil
}

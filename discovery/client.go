package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// maxBody is the largest answer that is read. Discovery of a large cluster has
// a few hundred kilobytes.
const maxBody = 256 << 20

// IncompleteHeader is of answers of another informerd that has not heard yet what its
// cluster serves. What they lack is not gone.
const IncompleteHeader = "Informerd-Discovery"

var errIncomplete = errors.New("the informerd that is asked does not know yet what its cluster serves")

// client sends GET requests to one API server, without rate limit or retry:
// its callers pace themselves.
type client struct {
	http  *http.Client
	base  *url.URL
	alone bool // each question has a connection of its own
}

// newClient makes a client of config, and of what else opts say.
func newClient(config *rest.Config, opts Options) (*client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0 // it would cut the watches
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read server address: %w", err)
	}
	if opts.HTTPClient != nil {
		return &client{http: opts.HTTPClient, base: base}, nil
	}
	made, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make HTTP client: %w", err)
	}
	own := *made // it may be http.DefaultClient
	if opts.Wrap != nil {
		own.Transport = opts.Wrap(own.Transport)
	}
	return &client{http: &own, base: base}, nil
}

// newLoneClient makes a client each of whose questions, asked one after the other,
// has a connection of its own.
func newLoneClient(opts Options) (*client, error) {
	config := opts.Config
	if opts.HTTPClient == nil {
		config = rest.CopyConfig(config)
		config.NextProtos = []string{"http/1.1"} // over HTTP/2 all would share one
		if config.Dial == nil {
			config.Dial = (&net.Dialer{Timeout: fetchTimeout}).DialContext
		}
	}
	c, err := newClient(config, opts)
	if err != nil {
		return nil, err
	}
	c.alone = true
	return c, nil
}

// get returns an answer of status 200, or 304 where etag is given. Any other is
// an error that apierrors understands. The caller closes the body.
func (c *client) get(ctx context.Context, path string, query url.Values, accept, etag string) (*http.Response, error) {
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	// What is served is asked for with two requests: one question.
	req.Close = c.alone && path != "/api"
	req.Header.Set("Accept", accept)
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotModified && etag != "" {
		if resp.Header.Get(IncompleteHeader) != "" {
			resp.Body.Close()
			return nil, errIncomplete
		}
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, responseError(resp, path)
}

// getJSON decodes the answer into v.
func (c *client) getJSON(ctx context.Context, path string, query url.Values, v any) error {
	resp, err := c.get(ctx, path, query, "application/json", "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decodeBody(resp, path, v)
}

func decodeBody(resp *http.Response, path string, v any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}

// responseError is the Status in the body, or one made from the HTTP status.
func responseError(resp *http.Response, path string) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	retryAfter, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err == nil && status.Kind == "Status" && status.Code != 0 {
		if status.Details == nil {
			status.Details = &metav1.StatusDetails{}
		}
		status.Details.RetryAfterSeconds = max(status.Details.RetryAfterSeconds, int32(retryAfter))
		return &apierrors.StatusError{ErrStatus: status}
	}
	text := strings.TrimSpace(string(body[:min(len(body), 200)]))
	return apierrors.NewGenericServerResponse(resp.StatusCode, http.MethodGet, schema.GroupResource{}, path, text, retryAfter, true)
}

// refused tells whether the server understood and will not, so that asking
// again soon is of no use.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

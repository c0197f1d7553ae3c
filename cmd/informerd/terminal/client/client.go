// Package client asks a running informerd over its HTTP API. It knows addresses,
// errors, warnings and event streams, and nothing of what is asked: an answer is the
// body of a response, or decoded JSON.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// dialTimeout is how long an address may take to answer a connection at all.
const dialTimeout = 5 * time.Second

// Client asks one informerd.
type Client struct {
	// Server is its address, for messages too.
	Server string
	// Source says where the address is from: "--server", "INFORMERD".
	Source string
	// Closed is called by Close; nil is nothing.
	Closed func()

	base *url.URL
	http *http.Client
	warn func(text string) // told each warning of an answer
}

// New is a client of the informerd at config.Host, with the credentials of config. warn is
// told what an answer says of its own worth: that it is old, or not whole.
func New(config *rest.Config, source string, warn func(string)) (*Client, error) {
	base, err := parseServer(config.Host)
	if err != nil {
		return nil, err
	}
	if err := checkSecrecy(base, config); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(config)
	c.Host = base.String()
	// What is sent to this machine need not be compressed: that takes longer.
	c.DisableCompression = isLoopback(base.Hostname())
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	transport, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", base, err)
	}
	// An answer is of the address that was asked, and so are the credentials.
	transport.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{Server: base.String(), Source: source, base: base, http: transport, warn: warn}, nil
}

// parseServer reads an address: a URL, or host:port, which is http.
func parseServer(server string) (*url.URL, error) {
	text := server
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(strings.TrimRight(text, "/"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no address of a server: %w", server, errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is no address of a server: it begins with %s, not http or https", server, u.Scheme)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("%q is no address of a server: write it as http://127.0.0.1:8080", server)
	}
	return u, nil
}

// checkSecrecy keeps a token or password from going over a network in the clear, whether it
// is known or asked of a plugin.
func checkSecrecy(base *url.URL, config *rest.Config) error {
	secret := config.BearerToken+config.BearerTokenFile+config.Password != "" || config.ExecProvider != nil || config.AuthProvider != nil
	if base.Scheme == "https" || isLoopback(base.Hostname()) || !secret {
		return nil
	}
	return fmt.Errorf("not sending a token to %s: whoever is on the way could read and use it; the address must begin with https", base)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close closes connections that nothing is under way on.
func (c *Client) Close() {
	utilnet.CloseIdleConnectionsFor(c.http.Transport)
	if c.Closed != nil {
		c.Closed()
	}
}

// Quiet keeps warnings to itself.
func (c *Client) Quiet() { c.warn = func(string) {} }

// Telling is a client of the same informerd over the same connections that tells warnings to
// warn. Only the first one is closed.
func (c *Client) Telling(warn func(text string)) *Client {
	other := *c
	other.warn, other.Closed = warn, nil
	return &other
}

// URL is where a question is asked, for people to read and copy.
func (c *Client) URL(path string, query url.Values) string {
	u := c.Server + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	return u
}

// Path joins steps to a path of the API, each escaped.
func Path(steps ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range steps {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// Get asks, and returns the answer of a question that has one. The caller closes its body.
func (c *Client) Get(ctx context.Context, path string, query url.Values, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL(path, query), nil)
	if err != nil {
		return nil, err
	}
	return c.do(req, headers)
}

// Unchanged asks whether the answer with an ETag is still what would be answered. An answer
// that is another one is left unread.
func (c *Client) Unchanged(ctx context.Context, path string, query url.Values, tag string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL(path, query), nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("If-None-Match", tag)
	resp, err := c.http.Do(req)
	if err != nil {
		return false, c.unreachable(ctx, err)
	}
	return resp.StatusCode == http.StatusNotModified, resp.Body.Close()
}

// Post has something done, with a body if it is not nil, and decodes what came of it.
func (c *Client) Post(ctx context.Context, path string, body, into any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL(path, nil), sent)
	if err != nil {
		return err
	}
	resp, err := c.do(req, []string{"Content-Type", "application/json"})
	if err != nil {
		return err
	}
	return c.decode(ctx, resp, into)
}

func (c *Client) do(req *http.Request, headers []string) (*http.Response, error) {
	ctx := req.Context()
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, c.refusal(resp)
	}
	for _, w := range Warnings(resp.Header) {
		c.warn(w)
	}
	return resp, nil
}

// JSON asks and decodes the answer.
func (c *Client) JSON(ctx context.Context, path string, query url.Values, into any) error {
	resp, err := c.Get(ctx, path, query)
	if err != nil {
		return err
	}
	return c.decode(ctx, resp, into)
}

func (c *Client) decode(ctx context.Context, resp *http.Response, into any) error {
	defer resp.Body.Close()
	if mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mediaType != "application/json" {
		return c.foreign(resp)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return c.Broken(ctx, err)
	}
	return nil
}

// Broken is the error of an answer that ended before it was whole.
func (c *Client) Broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &UnreachableError{Server: c.Server, Source: c.Source, Err: fmt.Errorf("the answer broke off: %w", err)}
}

// Warnings are what headers say of the worth of an answer.
func Warnings(h http.Header) []string {
	var all []string
	for _, w := range h.Values("Warning") {
		// 110 informerd "pods is stale"
		_, text, ok := strings.Cut(w, "\"")
		if end := strings.LastIndexByte(text, '"'); ok && end >= 0 {
			w = strings.ReplaceAll(text[:end], `\"`, `"`)
		}
		all = append(all, w)
	}
	if missing := h.Get("Informerd-Unanswered"); missing != "" {
		all = append(all, "not in this answer: "+missing)
	}
	if failed := h.Get("Informerd-Filter-Errors"); failed != "" {
		all = append(all, "the filter has no value for some objects, which are left out: "+failed)
	}
	if state := h.Get("Informerd-State"); len(all) == 0 && cmp.Or(state, "live") != "live" {
		all = append(all, "the copy is "+state)
	}
	return all
}

package config

import (
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/informerd/informerd/server"
)

// Authentication says how who asks is known. A configuration without it lets everybody
// on this machine see everything.
type Authentication struct {
	// Anonymous lets in who shows nothing, as system:anonymous.
	Anonymous bool
	// ClientCAFile is a PEM bundle of the authorities that name clients of all
	// clusters; "" takes those of each cluster, for its own.
	ClientCAFile string
	// RequestHeader is the front proxy of all clusters; nil takes that of each
	// cluster, for its own.
	RequestHeader *RequestHeader
	TokenReview   TokenReview
}

// RequestHeader is a front proxy, and how it says who asks.
type RequestHeader struct {
	// ClientCAFile is a PEM bundle of the authorities of its certificate.
	ClientCAFile string
	// AllowedNames are the common names it may have; none means any.
	AllowedNames                              []string
	UsernameHeaders, UIDHeaders, GroupHeaders []string
	ExtraHeaderPrefixes                       []string
}

// TokenReview says how bearer tokens are reviewed.
type TokenReview struct {
	// Audiences are what a token must be made for; none means for the API server.
	Audiences []string
	// CacheTTL is how long an answer counts.
	CacheTTL time.Duration
}

// Authorization says who decides what somebody may see.
type Authorization struct {
	Mode Mode
}

// Mode is who decides.
type Mode string

const (
	// Review asks the API server, by SubjectAccessReview. The default.
	Review Mode = "review"
	// RBAC takes the word of the roles that informerd holds: where the API server has
	// no other authorizer.
	RBAC Mode = "rbac"
)

// Exposure is what makes it safe to listen beyond this machine.
func (c *Config) Exposure() server.Exposure {
	return server.Exposure{Authenticated: c.Authentication != nil, TLS: c.TLS != (server.TLS{}), PlainHTTP: c.PlainHTTP}
}

func (r *reader) authentication(n *yaml.Node, path string) *Authentication {
	a := &Authentication{TokenReview: TokenReview{CacheTTL: 10 * time.Second}}
	r.mapping(n, path, fieldsOf{
		"anonymous":     func(n *yaml.Node, path string) { a.Anonymous = r.boolean(n, path, false) },
		"clientCAFile":  r.path(&a.ClientCAFile),
		"requestHeader": func(n *yaml.Node, path string) { a.RequestHeader = r.requestHeader(n, path) },
		"tokenReview": func(n *yaml.Node, path string) {
			r.mapping(n, path, fieldsOf{
				"audiences": func(n *yaml.Node, path string) { a.TokenReview.Audiences = r.texts(n, path, notEmpty) },
				"cacheTTL": func(n *yaml.Node, path string) {
					a.TokenReview.CacheTTL = r.duration(n, path, false, time.Second, time.Minute, a.TokenReview.CacheTTL)
				},
			})
		},
	})
	return a
}

func (r *reader) requestHeader(n *yaml.Node, path string) *RequestHeader {
	h := &RequestHeader{
		UsernameHeaders: []string{"X-Remote-User"}, UIDHeaders: []string{"X-Remote-Uid"},
		GroupHeaders: []string{"X-Remote-Group"}, ExtraHeaderPrefixes: []string{"X-Remote-Extra-"},
	}
	list := func(to *[]string, check func(string) error) func(n *yaml.Node, path string) {
		return func(n *yaml.Node, path string) { *to = r.texts(n, path, check) }
	}
	r.mapping(n, path, fieldsOf{
		"clientCAFile":        r.path(&h.ClientCAFile),
		"allowedNames":        list(&h.AllowedNames, notEmpty),
		"usernameHeaders":     list(&h.UsernameHeaders, checkHeader),
		"uidHeaders":          list(&h.UIDHeaders, checkHeader),
		"groupHeaders":        list(&h.GroupHeaders, checkHeader),
		"extraHeaderPrefixes": list(&h.ExtraHeaderPrefixes, checkHeader),
	})
	if n.Kind == yaml.MappingNode && h.ClientCAFile == "" {
		r.errorf(n, path, "needs clientCAFile, by which the proxy is told from those who pretend to be it")
	}
	return h
}

func notEmpty(text string) error {
	if text == "" {
		return errors.New("is empty")
	}
	return nil
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*)$`)

// checkHeader refuses what is no name of a header, and those that mean something else.
func checkHeader(name string) error {
	if !headerName.MatchString(name) {
		return fmt.Errorf("bad header %q: letters, digits and -", name)
	}
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Authorization", "Host", "Cookie", "Connection", "Upgrade":
		return fmt.Errorf("bad header %q: it has a meaning of its own", name)
	}
	return nil
}

func (r *reader) authorization(n *yaml.Node, path string, a *Authorization) {
	r.mapping(n, path, fieldsOf{"mode": func(n *yaml.Node, path string) {
		a.Mode = Mode(r.choice(n, path, string(a.Mode), string(Review), string(RBAC)))
	}})
}

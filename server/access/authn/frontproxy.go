package authn

import (
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
)

// FrontProxy is the proxy whose word on who asks is taken: it is known by a
// certificate of Authorities. It may change while it is used; while it has no
// Authorities its headers are anybody's, and ignored.
type FrontProxy struct {
	Authorities Authorities
	headers     atomic.Pointer[Headers]
}

// Headers are what a front proxy tells who asks with, as the flags
// --requestheader-... of the API server.
type Headers struct {
	// Names are the common names that its certificate may have. Empty: any.
	Names []string
	// The first of Users and UIDs that has a value counts; all values of all Groups
	// do. ExtraPrefixes begin headers whose rest is the key of further values.
	Users, UIDs, Groups, ExtraPrefixes []string
}

// DefaultHeaders are those that proxies have by convention.
func DefaultHeaders() Headers {
	return Headers{
		Users:         []string{"X-Remote-User"},
		UIDs:          []string{"X-Remote-Uid"},
		Groups:        []string{"X-Remote-Group"},
		ExtraPrefixes: []string{"X-Remote-Extra-"},
	}
}

// SetHeaders replaces the headers.
func (p *FrontProxy) SetHeaders(h Headers) { p.headers.Store(&h) }

// Headers are those in use.
func (p *FrontProxy) Headers() Headers {
	if h := p.headers.Load(); h != nil {
		return *h
	}
	return DefaultHeaders()
}

// authenticator takes the word of the proxy, and of nobody else.
func (p *FrontProxy) authenticator() authenticator.Request {
	of := func(part func(Headers) []string) headerrequest.StringSliceProvider {
		return headerrequest.StringSliceProviderFunc(func() []string { return part(p.Headers()) })
	}
	return headerrequest.NewDynamicVerifyOptionsSecure(p.Authorities.options,
		of(func(h Headers) []string { return h.Names }),
		of(func(h Headers) []string { return h.Users }),
		of(func(h Headers) []string { return h.UIDs }),
		of(func(h Headers) []string { return h.Groups }),
		of(func(h Headers) []string { return h.ExtraPrefixes }))
}

// Strip takes out of h all by which a front proxy tells who asks, so that nobody
// behind this can take a client's word for a proxy's.
func (h Headers) Strip(header http.Header) {
	for _, list := range [][]string{h.Users, h.UIDs, h.Groups} {
		for _, name := range list {
			header.Del(name)
		}
	}
	for name := range header {
		if hasPrefix(name, "X-Remote-") {
			delete(header, name)
		}
		for _, prefix := range h.ExtraPrefixes {
			if hasPrefix(name, prefix) {
				delete(header, name)
			}
		}
	}
}

func hasPrefix(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

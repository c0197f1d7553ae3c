package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/reply"
)

// checkHost refuses requests that were not meant for this machine. On loopback
// anyone may read, and a page from anywhere can make its reader's browser ask:
// by pointing its own name at 127.0.0.1 (DNS rebinding) it would even be allowed
// to read the answer, but the Host header then carries that name.
//
// Beyond loopback informerd has names that it cannot know, unless it is told them.
// There whoever asks must show who they are: what a browser shows by itself is bound
// to the name it was given for.
func (s *Server) checkHost(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		host := hostName(r.Host)
		if !s.answersTo(host) {
			s.slowRefusal(r)
			return refused("the Host header names %q: informerd answers on this machine only to localhost, "+
				"loopback addresses and the hosts it is configured with", r.Host)
		}
		if isForeign(r) && !opensPage(r) && !showsToken(r) {
			s.slowRefusal(r)
			return refused("a page of another site may not ask informerd through your browser")
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

func (s *Server) answersTo(host string) bool {
	if host == "" || isLoopback(host) || slices.Contains(s.hosts, host) {
		return true
	}
	own, _, _ := net.SplitHostPort(s.Options.Addr)
	return s.Access != nil && !isLoopback(own) && len(s.hosts) == 0
}

// isForeign reports whether a page of another site asks through its reader's browser,
// which says so of most requests. Of a WebSocket, which any page may open and read, some
// say only where the page is from.
func isForeign(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	page, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(page.Host, r.Host)
}

// showsToken reports whether a request carries a token, right or wrong. A browser lets no
// page set that header for another site unless the site has agreed, which informerd does
// not, and never for a WebSocket: a program has put it there that passes on what pages
// ask of it, with what the browser said of them. Headlamp is one.
func showsToken(r *http.Request) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	return strings.EqualFold(scheme, "bearer") && token != ""
}

// opensPage reports whether somebody follows a link to the page itself. Elsewhere a
// navigation is a question like any other: an <iframe> is enough to ask it, as often as
// a foreign page likes, of whoever is not shown the answer.
func opensPage(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func refused(format string, args ...any) error {
	return statusError(reply.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(format, args...)))
}

// hostName is the host of a Host header, without port, brackets and the root's
// dot, in lower case.
func hostName(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isLoopback says whether a host can only be this machine.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

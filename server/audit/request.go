package audit

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Header is what a request may say its id in, and each answer does.
const Header = "Audit-Id"

// maxSources bounds the addresses of one request.
const maxSources = 8

// Begin makes the record of a request that was received just now; nil if the
// configuration leaves it out.
func (l *Log) Begin(r *http.Request) *Record {
	if slices.Contains(l.options.Omit, r.URL.Path) {
		return nil
	}
	now := time.Now()
	return &Record{log: l, received: now, event: Event{
		Kind: "Event", APIVersion: "audit.k8s.io/v1", Level: "Metadata",
		AuditID: idOf(r), RequestURI: bounded(uriOf(r.URL), maxURI), Method: bounded(r.Method, maxText),
		SourceIPs: sourcesOf(r), UserAgent: bounded(r.UserAgent(), maxText), Received: moment(now),
	}}
}

// goodID is what is taken over from a client: what cannot be mistaken for anything else,
// wherever it is written.
var goodID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

func idOf(r *http.Request) string {
	if id := r.Header.Get(Header); goodID.MatchString(id) {
		return id
	}
	return string(uuid.NewUUID())
}

// sourcesOf are the addresses that a request says it was passed on from and, last, the
// one it does come from, which alone is sure.
func sourcesOf(r *http.Request) []string {
	var all []string
	for part := range strings.SplitSeq(r.Header.Get("X-Forwarded-For"), ",") {
		if ip, err := netip.ParseAddr(strings.TrimSpace(part)); err == nil {
			all = append(all, bounded(ip.String(), maxText))
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return append(all[max(0, len(all)-maxSources+1):], host)
}

// redacted is written instead of what may let somebody in.
const redacted = "REDACTED"

// uriOf is what was asked for, without what is a secret, or a token that is good for
// whoever has it. It is made of path and query only: in front of them a client may have
// written a password.
func uriOf(u *url.URL) string {
	uri := u.EscapedPath()
	if u.RawQuery == "" {
		return uri
	}
	if isProxied(u.Path) {
		return uri + "?" + redacted
	}
	var out strings.Builder
	out.WriteString(uri)
	separator := "?"
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, valued := strings.Cut(pair, "=")
		out.WriteString(separator)
		separator = "&"
		switch {
		case isSecret(name) && valued:
			pair = bounded(name, maxText) + "=" + redacted
		case isSecret(name), !valued && len(name) > maxFlag: // what has no value may be one
			pair = redacted
		}
		out.WriteString(pair)
	}
	return out.String()
}

// maxFlag is how long a name without a value may be to be taken for a name.
const maxFlag = 32

// secretive are parts of the names of parameters whose values are secrets, or tokens.
var secretive = []string{"continue", "token", "password", "passwd", "secret", "authorization", "credential", "bearer", "jwt", "apikey", "api_key", "api-key", "signature"}

// isSecret reports whether a parameter may be one. What cannot be read may be.
func isSecret(name string) bool {
	decoded, err := url.QueryUnescape(name)
	if err != nil {
		return true
	}
	decoded = strings.ToLower(decoded)
	return slices.ContainsFunc(secretive, func(part string) bool { return strings.Contains(decoded, part) })
}

// isProxied reports whether a path leads through the API server to a workload, whose
// parameters mean what that likes.
func isProxied(path string) bool {
	return strings.HasSuffix(path, "/proxy") || strings.Contains(path, "/proxy/")
}

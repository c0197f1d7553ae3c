package webhook

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/informerd/informerd/server/handlers/guard"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// The modes of a CloudEvent in a request.
const (
	// Structured: the event is one JSON document, which is the body.
	Structured = "structured"
	// Binary: the body is the data, the attributes are headers.
	Binary = "binary"
)

// Config is a webhook. Its zero values are useful but for URL.
type Config struct {
	// URL takes the events by POST. http is for private addresses that AllowPrivate allows.
	URL string
	// Mode is Structured, which is the default, or Binary.
	Mode string
	// SecretFiles have secrets to sign with, "whsec_" and base64, or bytes. All of them sign, so
	// that one can be replaced by another; none: nothing is signed.
	SecretFiles []string
	// HeaderFiles have the values of headers, by name.
	HeaderFiles map[string]string
	// Timeout of one delivery; 0: 10 s.
	Timeout time.Duration
	// CAFile has the authorities that the server's certificate is checked by; "": the system's.
	CAFile string
	// CertFile and KeyFile are shown to the server.
	CertFile, KeyFile string
	// ServerName is the name in the server's certificate; "": the URL's host.
	ServerName string
	// InsecureSkipVerify: the server's certificate is not checked.
	InsecureSkipVerify bool
	// AllowPrivate are host names, addresses and networks that may be private. A name does not
	// allow link-local addresses and those of clouds' metadata, which networks do.
	AllowPrivate []string
	// Concurrency is how many deliveries are under way at once, so that as many connections are
	// kept; 0: 16.
	Concurrency int
}

const defaultConcurrency = 16

func (c Config) tls() sinkconf.TLSConfig {
	return sinkconf.TLSConfig{
		CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		ServerName: c.ServerName, InsecureSkipVerify: c.InsecureSkipVerify,
	}
}

// target reads the URL, which must not be in a mistake as a whole: secrets are put into paths
// and queries.
func target(m *sinkconf.Mistakes, raw string) *url.URL {
	const example = "write one such as https://hooks.example.com/informerd"
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		m.Add("url", "is missing: %s", example)
	case err != nil:
		m.Add("url", "is no URL: %s", example)
	case u.Scheme != "https" && u.Scheme != "http":
		m.Add("url", "has the scheme %q: only https and http are spoken, %s", u.Scheme, example)
	case u.User != nil:
		m.Add("url", "has a user or a password: put them into a file, as the value of Authorization, and name it in headerFiles")
	case u.Hostname() == "":
		m.Add("url", "has no host: %s", example)
	case u.Fragment != "":
		m.Add("url", "has a fragment, which no server would see: leave out what is behind #")
	case !validPort(u):
		m.Add("url", "has the port %q: from 1 to 65535", u.Port())
	}
	return u
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

// checkTarget refuses what is known to be refused without resolving a name.
func checkTarget(m *sinkconf.Mistakes, u *url.URL, g *guard.Guard) {
	if u.Scheme == "http" && g.Empty() {
		m.Add("url", "is plain http, which anybody on the way can read and change: write https, or allow its host in allowPrivate if it is a private one")
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		m.Note("url", g.Check(addr))
	}
}

// ours are headers that a delivery or its connection has of its own, by prefix where it ends
// with "-".
var ours = []string{
	"host", "content-", "ce-", "webhook-", "connection", "keep-alive", "proxy-", "te",
	"trailer", "transfer-encoding", "upgrade", "expect", "http2-settings",
}

func headerMistake(name string) string {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") != "" {
		return "is no name of a header: letters, digits and -, such as Authorization"
	}
	name = strings.ToLower(name)
	for _, own := range ours {
		if name == own || strings.HasSuffix(own, "-") && strings.HasPrefix(name, own) {
			return "cannot be set: a delivery or its connection has its own"
		}
	}
	return ""
}

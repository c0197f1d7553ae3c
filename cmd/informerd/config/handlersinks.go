package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Webhook is a URL that takes deliveries.
type Webhook struct {
	URL string
	// Mode is how a CloudEvent is put into a request: structured or binary.
	Mode string
	// SecretFiles have the secrets that sign, the newest first.
	SecretFiles []string
	// HeaderFiles have the values of headers, by name.
	HeaderFiles        map[string]string
	Timeout            time.Duration
	CAFile             string
	CertFile           string
	KeyFile            string
	ServerName         string
	InsecureSkipVerify bool
	// AllowPrivate are the hosts that may have addresses that are private, of this machine
	// or of its link.
	AllowPrivate []string
}

const (
	minSinkTimeout     = 100 * time.Millisecond
	maxSinkTimeout     = 5 * time.Minute
	defaultSinkTimeout = 10 * time.Second
)

func (h *handlerReader) webhook(n *yaml.Node, path string) *Webhook {
	w := &Webhook{Mode: "structured", Timeout: defaultSinkTimeout}
	var secure *yaml.Node
	h.mapping(n, path, fieldsOf{
		"url":     func(n *yaml.Node, path string) { w.URL, _ = h.checked(n, path, checkWebhookURL) },
		"mode":    func(n *yaml.Node, path string) { w.Mode = h.choice(n, path, w.Mode, "structured", "binary") },
		"timeout": h.sinkTimeout(&w.Timeout),
		"secretFiles": func(n *yaml.Node, path string) {
			w.SecretFiles = expanded(h.texts(n, path, notEmpty))
		},
		"headerFiles":  func(n *yaml.Node, path string) { w.HeaderFiles = h.headerFiles(n, path) },
		"allowPrivate": func(n *yaml.Node, path string) { w.AllowPrivate = h.texts(n, path, checkPrivate) },
		"tls": func(n *yaml.Node, path string) {
			secure = n
			h.clientTLS(n, path, &w.CAFile, &w.CertFile, &w.KeyFile, fieldsOf{
				"serverName":         func(n *yaml.Node, path string) { w.ServerName, _ = h.checked(n, path, notEmpty) },
				"insecureSkipVerify": func(n *yaml.Node, path string) { w.InsecureSkipVerify = h.boolean(n, path, false) },
			})
		},
	})
	h.need(n, path, "url", "https://hooks.example.com/informerd")
	if secure != nil && strings.HasPrefix(w.URL, "http://") {
		h.errorf(secure, join(path, "tls"), "has no meaning for plain http: write https:// in url")
	}
	return w
}

// need reports a key that is not given.
func (r *reader) need(n *yaml.Node, path, key, example string) {
	if n.Kind == yaml.MappingNode && !slices.ContainsFunc(n.Content, func(n *yaml.Node) bool { return n.Value == key }) {
		r.errorf(n, path, "needs %s, such as %s: %s", key, key, example)
	}
}

func (r *reader) sinkTimeout(to *time.Duration) func(n *yaml.Node, path string) {
	return func(n *yaml.Node, path string) {
		*to = r.duration(n, path, false, minSinkTimeout, maxSinkTimeout, *to)
	}
}

// clientTLS reads how a sink is told from others, and what is shown to it.
func (r *reader) clientTLS(n *yaml.Node, path string, ca, cert, key *string, more fieldsOf) {
	known := fieldsOf{"caFile": r.path(ca), "certFile": r.path(cert), "keyFile": r.path(key)}
	for name, read := range more {
		known[name] = read
	}
	r.mapping(n, path, known)
	if (*cert == "") != (*key == "") {
		r.errorf(n, path, "needs both certFile and keyFile, or none to show no certificate")
	}
}

func (h *handlerReader) headerFiles(n *yaml.Node, path string) map[string]string {
	files := map[string]string{}
	h.pairs(n, path, func(key, value *yaml.Node) {
		path := join(path, key.Value)
		if err := checkSentHeader(key.Value); err != nil {
			h.errorf(key, path, "%v", err)
			return
		}
		if file, ok := h.checked(value, path, notEmpty); ok {
			files[key.Value] = expandHome(file)
		}
	})
	return files
}

func expanded(files []string) []string {
	for i, f := range files {
		files[i] = expandHome(f)
	}
	return files
}

// checkSentHeader refuses headers that a delivery has of its own.
func checkSentHeader(name string) error {
	lower := strings.ToLower(name)
	switch {
	case !headerName.MatchString(name):
		return fmt.Errorf("bad header %q: letters, digits and -", name)
	case slices.Contains([]string{"host", "connection", "content-type", "content-length", "transfer-encoding", "upgrade"}, lower),
		strings.HasPrefix(lower, "ce-"), strings.HasPrefix(lower, "webhook-"):
		return fmt.Errorf("bad header %q: a delivery has its own", name)
	}
	return nil
}

// checkWebhookURL does not repeat what is given: secrets are put into paths and queries, and what
// is wrong with a file that changed is logged.
func checkWebhookURL(text string) error {
	u, err := url.Parse(text)
	const example = "write one such as https://hooks.example.com/informerd"
	switch {
	case err != nil:
		return fmt.Errorf("bad URL, which cannot be read as one: %s", example)
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("bad URL with the scheme %q: %s", u.Scheme, example)
	case u.Hostname() == "":
		return fmt.Errorf("bad URL without a host: %s", example)
	case u.User != nil:
		return fmt.Errorf("bad URL: it has a user and perhaps a password, which whoever reads this file could read: put them into a file and name it in headerFiles, as Authorization")
	case u.Fragment != "":
		return fmt.Errorf("bad URL: what follows # is not sent: leave it out")
	}
	return nil
}

// checkPrivate accepts what a host in a URL may be, and networks.
func checkPrivate(text string) error {
	if _, err := netip.ParsePrefix(text); err == nil {
		return nil
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return nil
	}
	if hostPattern.MatchString(text) {
		return nil
	}
	return fmt.Errorf("bad value %q: name a host, an address or a network, such as hooks.shop.svc, 10.0.0.7 or 10.0.0.0/8", text)
}

var hostPattern = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$`)

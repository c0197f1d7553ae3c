package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/guard"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// Sink posts deliveries to a URL.
type Sink struct {
	url     *url.URL
	mode    string
	timeout time.Duration
	signer  *signer
	headers headers
	clients *clients
	drains  *drains
}

var _ handlers.Sink = (*Sink)(nil)

// New checks c and reads its files. It does not connect. What is wrong is told as one
// sinkconf.Mistake each, joined.
func New(c Config) (*Sink, error) {
	var m sinkconf.Mistakes
	s := &Sink{mode: c.Mode, timeout: m.Timeout(c.Timeout), url: target(&m, c.URL)}
	switch c.Mode {
	case "":
		s.mode = Structured
	case Structured, Binary:
	default:
		m.Add("mode", "%q is none: structured or binary", sinkconf.Printable(c.Mode))
	}
	if c.Concurrency < 0 {
		m.Add("concurrency", "%d is less than 0", c.Concurrency)
	}
	g := guard.New(&m, "allowPrivate", c.AllowPrivate)
	s.signer = newSigner(&m, c.SecretFiles)
	s.headers = newHeaders(&m, c.HeaderFiles)
	tls := m.TLS(c.tls())
	if len(m) == 0 {
		g.Host, g.Plain = s.url.Hostname(), s.url.Scheme == "http"
		checkTarget(&m, s.url, g)
		if g.Plain && c.tls().Given() {
			m.Add("url", "is plain http, and caFile, certFile, keyFile, serverName and insecureSkipVerify are about https: write https, or leave them out")
		}
	}
	if err := m.Err(); err != nil {
		return nil, err
	}
	s.drains = newDrains()
	s.clients = &clients{guard: g, tls: tls, timeout: s.timeout, idle: c.Concurrency}
	if s.clients.idle == 0 {
		s.clients.idle = defaultConcurrency
	}
	return s, nil
}

// Close ends what still reads answers, and closes connections.
func (s *Sink) Close() error {
	s.drains.close()
	s.clients.close()
	return nil
}

// Deliver posts d. A connection that was kept, and on which nothing came back, was closed by
// the other side meanwhile, which says nothing of d or of the sink: it is posted once more.
func (s *Sink) Deliver(ctx context.Context, d *handlers.Delivery) error {
	m, err := s.message(ctx, d)
	if err != nil {
		return err
	}
	stale, err := s.post(ctx, m)
	if stale {
		s.clients.closeIdle()
		_, err = s.post(ctx, m)
	}
	return err
}

// post makes one request. stale says that it failed on a connection that was kept.
func (s *Sink) post(ctx context.Context, m *message) (stale bool, err error) {
	client, err := s.clients.get()
	if err != nil { // a file of ours: no key is to blame
		return false, &handlers.DownError{Err: err}
	}
	request, end := context.WithTimeout(ctx, s.timeout)
	t := &trace{}
	response, err := client.Do(s.request(t.follow(request), m))
	if err != nil {
		stale = t.reused.Load() && !t.answered.Load() && request.Err() == nil
		end()
		return stale, s.failed(ctx, t, err)
	}
	if taken(response.StatusCode) {
		s.drains.drain(response.Body, end)
		return false, nil
	}
	defer end()
	return false, s.refused(response)
}

func taken(status int) bool { return status >= 200 && status < 300 }

func (s *Sink) request(ctx context.Context, m *message) *http.Request {
	r := &http.Request{Method: http.MethodPost, URL: s.url, Host: s.url.Host, Header: m.header.Clone()}
	m.setBody(r)
	return r.WithContext(ctx)
}

// host is what errors call the sink: the rest of the URL may be secret.
func (s *Sink) host() string { return fmt.Sprintf("%s://%s", s.url.Scheme, s.url.Host) }

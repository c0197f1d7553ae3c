package webhook

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

const (
	minPatience = time.Second
	maxPatience = time.Hour
	// defaultPatience is for a 429 that does not say for how long.
	defaultPatience = 5 * time.Second
)

// refused is the error of an answer that is not 2xx. That trying again could help is assumed
// of all: a wrong token, path or limit at the other side gets mended, and attempts are bounded.
func (s *Sink) refused(r *http.Response) error {
	defer func() { _ = r.Body.Close() }()
	reason := fmt.Sprintf("%s answered %d %s", s.host(), r.StatusCode, http.StatusText(r.StatusCode))
	if r.StatusCode >= 300 && r.StatusCode < 400 {
		return &handlers.RejectedError{Reason: sinkconf.Short(reason + redirect(r))}
	}
	// After 101 the body is the connection itself, which no timeout of the request ends.
	if r.StatusCode != http.StatusSwitchingProtocols {
		if body := s.said(r.Body); body != "" {
			reason += ": " + body
		}
	}
	reason = sinkconf.Short(reason)
	after, given := retryAfter(r.Header.Get("Retry-After"), time.Now())
	switch {
	case r.StatusCode == http.StatusGone:
		return &handlers.GoneError{Reason: reason}
	case r.StatusCode == http.StatusTooManyRequests && !given:
		return &handlers.BusyError{Reason: reason, After: defaultPatience}
	case given && (r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable):
		return &handlers.BusyError{Reason: reason, After: after}
	}
	return &handlers.RejectedError{Reason: reason}
}

// redirect names the host only: the rest of an address may be secret.
func redirect(r *http.Response) string {
	to := ""
	if u, err := url.Parse(r.Header.Get("Location")); err == nil && u.Host != "" {
		to = " to " + sinkconf.Printable(u.Host)
	}
	return ", a redirect" + to + ", which is not followed: if it is right, make it the url"
}

// said is the beginning of an answer's body, as far as it comes before the timeout. It is cut
// after secrets were taken out of it, so that none is cut in two.
func (s *Sink) said(body io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(body, maxBody))
	return sinkconf.Printable(s.mask(string(b)))
}

// retryAfter reads seconds or a date, and keeps them between a second and an hour.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	var after time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		after = time.Duration(min(seconds, uint64(maxPatience/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		after = at.Sub(now)
	} else {
		return 0, false
	}
	return min(max(after, minPatience), maxPatience), true
}

package webhook

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

const (
	// minSecretText is the shortest text that is taken out of what a sink answers: shorter ones
	// guard nothing, and are everywhere.
	minSecretText = 6
	// minSegment is the shortest part of a path that is taken for a secret by itself.
	minSegment = 16
)

// mask takes out of a text of a sink what it was sent in confidence: error pages repeat the
// path they do not know and the token they do not like, and what a sink answers is shown to
// people who may not know those, and saved.
func (s *Sink) mask(text string) string {
	for _, secret := range s.secretTexts() {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// secretTexts are those of the URL and of headers, the longest first: one may be within another.
func (s *Sink) secretTexts() []string {
	all := secretsOf(s.url)
	for _, f := range s.headers {
		if v, err := value(f); err == nil {
			_, credentials, _ := strings.Cut(v, " ") // behind a scheme, such as Bearer
			all = append(all, v, credentials)
		}
	}
	all = slices.DeleteFunc(all, func(text string) bool { return len(text) < minSecretText })
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// secretsOf are the texts of a URL that may be secret, as they are written and as they are meant.
func secretsOf(u *url.URL) []string {
	all := []string{u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery}
	for _, values := range u.Query() {
		all = append(all, values...)
	}
	for _, pair := range strings.Split(u.RawQuery, "&") {
		_, raw, _ := strings.Cut(pair, "=")
		all = append(all, raw)
	}
	for _, path := range []string{u.EscapedPath(), u.Path} {
		for _, segment := range strings.Split(path, "/") {
			if len(segment) >= minSegment {
				all = append(all, segment)
			}
		}
	}
	return all
}

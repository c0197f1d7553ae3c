package natssink

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// DefaultSubject has a token for whatever a consumer may want to choose by.
const DefaultSubject = "informerd.{handler}.{cluster}.{resource}.{namespace}.{name}"

// maxSubject is the longest subject. A server takes 4 KiB for a subject and what it says
// beside it, and ends the connection, with all that is under way, for more.
const maxSubject = 2048

// names are what can be in braces.
var names = map[string]func(*handlers.Delivery) string{
	"handler":    func(d *handlers.Delivery) string { return d.Handler },
	"cluster":    func(d *handlers.Delivery) string { return d.Cluster },
	"resource":   func(d *handlers.Delivery) string { return d.GVR.GroupResource().String() },
	"kind":       func(d *handlers.Delivery) string { return d.Kind },
	"namespace":  func(d *handlers.Delivery) string { return d.Namespace },
	"name":       func(d *handlers.Delivery) string { return d.Name },
	"transition": func(d *handlers.Delivery) string { return string(d.Transition) },
}

// subject makes the subject of a delivery.
type subject struct {
	parts []func(*handlers.Delivery) string
	// all stands for every subject that it makes.
	all string
	// same: every delivery has the same subject, so that what is wrong with the one is wrong
	// with all.
	same bool
}

// CheckSubject says what is wrong with a template.
func CheckSubject(template string) error {
	_, err := parseSubject(template)
	return err
}

func parseSubject(template string) (subject, error) {
	s := subject{same: true}
	var plain strings.Builder // with a letter for each name
	for rest := template; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		s.parts = append(s.parts, func(*handlers.Delivery) string { return before })
		plain.WriteString(before)
		if !found {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		get := names[name]
		if !closed || get == nil {
			return subject{}, fmt.Errorf("{%s is none of {%s}", sinkconf.Printable(name), strings.Join(slices.Sorted(maps.Keys(names)), "}, {"))
		}
		s.parts = append(s.parts, func(d *handlers.Delivery) string { return escape(get(d)) })
		s.same = s.same && name == "handler"
		plain.WriteByte('x')
		rest = behind
	}
	if !publishable(plain.String()) {
		return subject{}, fmt.Errorf("%q is no subject that can be published to: tokens with dots between them, without spaces, * and >, and not of those that begin with $ or _, such as %s", sinkconf.Printable(template), DefaultSubject)
	}
	s.all = wildcard(template)
	return s, nil
}

// publishable keeps away from subjects that are the server's own: it takes what is published
// to $JS.API or to an inbox for a question or an answer.
func publishable(text string) bool {
	for token := range strings.SplitSeq(text, ".") {
		if token == "" {
			return false
		}
	}
	return text[0] != '$' && text[0] != '_' &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("*>{}", r) })
}

// wildcard has * for each token of a template that has a name in it.
func wildcard(template string) string {
	tokens := strings.Split(template, ".")
	for i, token := range tokens {
		if strings.Contains(token, "{") {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, ".")
}

func (s subject) of(d *handlers.Delivery) string {
	var b strings.Builder
	for _, part := range s.parts {
		b.WriteString(part(d))
	}
	return b.String()
}

// escape makes text one token: what separates tokens or stands for many is percent-encoded,
// and so are percent signs and what is not ASCII. No text is "_": no namespace is called so.
func escape(text string) string {
	if text == "" {
		return "_"
	}
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || strings.IndexByte(".*>%$", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

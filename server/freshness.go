package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/informerd/informerd/cache"
)

// setFreshness says in headers what an answer is worth: the state of its
// resource, the version it shows and the seconds since the API server last
// proved it current, if they are known. Unless the resource is live it also says
// so in the words of RFC 7234: Age and Warning 110.
func setFreshness(h http.Header, view *cache.View, version string) {
	view = view.Aged()
	h.Set(cache.StateHeader, string(view.State))
	if version != "" {
		h.Set("Informerd-Resource-Version", version)
	}
	age, known := view.Age()
	if known {
		h.Set(cache.AgeHeader, strconv.FormatFloat(age.Seconds(), 'f', 3, 64))
	}
	if view.State == cache.Live {
		return
	}
	if known {
		h.Set("Age", strconv.Itoa(int(age.Seconds())))
	}
	setStaleWarning(h, notLive(view, known))
}

// setStaleWarning says in the words of RFC 7234 that an answer may be old, beside
// what else it is warned of.
func setStaleWarning(h http.Header, text string) {
	const stale = "110 informerd "
	others := slices.DeleteFunc(h.Values("Warning"), func(w string) bool { return strings.HasPrefix(w, stale) })
	h["Warning"] = append([]string{stale + quote(text)}, others...)
}

// checkNamespaces refuses a question about namespaces only of which there is no
// data, and warns of those that are missing from an answer.
func checkNamespaces(w http.ResponseWriter, res *viewed, namespaces []string) error {
	lacking, err := res.lacking(namespaces)
	if known, ok := errors.AsType[*lackingError](err); ok && known.state != "" {
		w.Header().Set(cache.StateHeader, string(known.state))
	}
	if err != nil || len(lacking) == 0 {
		return err
	}
	names := make([]string, len(lacking))
	for i, l := range lacking {
		names[i] = l.String()
	}
	w.Header().Add("Warning", "299 informerd "+quote(fmt.Sprintf(
		"there is no data, or none that is kept up to date, of %s in namespaces %s", res.view.Spec.Name(), named(names))))
	return nil
}

// filterErrors says how many objects were left out because the filter has no
// value for them, mostly because a field is missing, and what the first of them
// lacks.
type filterErrors struct {
	Count  int    `json:"count"`
	Object string `json:"object"`
	First  string `json:"first"`
}

func faultsOf(f cache.Faults) *filterErrors {
	if f.Count == 0 {
		return nil
	}
	return &filterErrors{f.Count, f.Key.String(), f.First}
}

// setFaults says the same in a header.
func setFaults(h http.Header, f cache.Faults) {
	if f.Count > 0 {
		h.Set("Informerd-Filter-Errors", strconv.Itoa(f.Count))
	}
}

// notLive is the text of a warning. Without an Age header it says that the age is
// not known: HTTP would take the answer for a new one.
func notLive(view *cache.View, aged bool) string {
	text := fmt.Sprintf("%s is %s", view.Spec.Name(), view.State)
	if !aged {
		text += ", how old it is is not known"
	}
	if view.Reason != "" {
		text += ": " + view.Reason
	}
	return text
}

// quote makes an HTTP quoted-string: printable ASCII, backslash and quote
// escaped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c > '~':
			b.WriteByte(' ')
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

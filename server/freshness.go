package server

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
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
	view := res.view
	var missing []string
	for _, ns := range namespaces {
		if cache.IsGlob(ns) || !view.Spec.Namespaced || res.reader.Watches(ns) ||
			slices.ContainsFunc(view.Missing, func(m cache.MissingNamespace) bool { return m.Namespace == ns }) {
			continue
		}
		if len(namespaces) == 1 {
			return statusError(withCause(reply.Failure(http.StatusNotFound, metav1.StatusReasonNotFound,
				fmt.Sprintf("%s of namespace %s are not here and may exist: the copy does not hold that namespace", view.Spec.Name(), ns)), "NotWatched", ""))
		}
		missing = append(missing, ns+" (not watched)")
	}
	for _, m := range view.Missing {
		if len(namespaces) == 1 && namespaces[0] == m.Namespace {
			return namespaceMissing(w, view, m)
		}
		if len(namespaces) == 0 || slices.ContainsFunc(namespaces, func(glob string) bool { ok, _ := path.Match(glob, m.Namespace); return ok }) {
			missing = append(missing, fmt.Sprintf("%s (%s)", m.Namespace, m.State))
		}
	}
	if len(missing) > 0 {
		w.Header().Add("Warning", "299 informerd "+quote(fmt.Sprintf(
			"there is no data, or none that is kept up to date, of %s in namespaces %s", view.Spec.Name(), named(missing))))
	}
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

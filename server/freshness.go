package server

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/informerd/informerd/cache"
)

// setFreshness says in headers what an answer is worth: the state of its
// resource, the version it shows and the seconds since the API server last
// proved it current. Unless the resource is live it also says so in the words
// of RFC 7234: Age and Warning 110.
func setFreshness(h http.Header, status cache.Status, version string) {
	h.Set("Informerd-State", string(status.State))
	if version != "" {
		h.Set("Informerd-Resource-Version", version)
	}
	age, known := ageOf(status)
	if known {
		h.Set("Informerd-Age", strconv.FormatFloat(age.Seconds(), 'f', 3, 64))
	}
	if status.State == cache.Live {
		return
	}
	if known {
		h.Set("Age", strconv.Itoa(int(age.Seconds())))
	}
	setStaleWarning(h, notLive(status))
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
func checkNamespaces(w http.ResponseWriter, status cache.Status, namespaces []string) error {
	var missing []string
	for _, m := range status.Missing {
		if len(namespaces) == 1 && namespaces[0] == m.Namespace {
			return namespaceMissing(w, status, m)
		}
		if len(namespaces) == 0 || slices.ContainsFunc(namespaces, func(glob string) bool { ok, _ := path.Match(glob, m.Namespace); return ok }) {
			missing = append(missing, fmt.Sprintf("%s (%s)", m.Namespace, m.State))
		}
	}
	if len(missing) > 0 {
		w.Header().Add("Warning", "299 informerd "+quote(fmt.Sprintf(
			"there is no data, or none that is kept up to date, of %s in namespaces %s", status.Spec.Name(), named(missing))))
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

func notLive(status cache.Status) string {
	text := fmt.Sprintf("%s is %s", status.Spec.Name(), status.State)
	if status.Reason != "" {
		text += ": " + status.Reason
	}
	return text
}

// ageOf is the time since the copy was last proven current. Of a copy loaded
// from a snapshot that is when it was saved.
func ageOf(status cache.Status) (time.Duration, bool) {
	contact := status.Contact
	if contact.IsZero() {
		contact = status.SnapshotAt
	}
	if contact.IsZero() {
		return 0, false
	}
	return max(0, time.Since(contact)), true
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

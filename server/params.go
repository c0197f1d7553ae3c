package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/informerd/informerd/cache/spelling"
)

// repeats tells the parameters that may be given several times on a route that
// knows some: lists, searches and proposals may be of several clusters.
func repeats(name string, known []string) bool {
	return name == "namespace" || name == "index" || name == "token" ||
		name == "cluster" && slices.ContainsFunc([]string{"groupBy", "q", "for"}, func(p string) bool { return slices.Contains(known, p) })
}

const (
	// maxWait bounds the parameter timeout.
	maxWait = 30 * time.Second
	// defaultWait is how long a request waits for its resourceVersion, as at
	// the API server.
	defaultWait = 3 * time.Second
)

// params are the query parameters of a request: known ones only, and single
// where only one makes sense.
type params struct{ url.Values }

type paramsKey struct{}

// checkParameters parses the query strictly and hands it to h by paramsOf.
func checkParameters(known []string, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		values, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return invalid("query", "%v", err)
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if err := checkParameter(name, values[name], known); err != nil {
				return err
			}
		}
		return h(w, r.WithContext(context.WithValue(r.Context(), paramsKey{}, params{values})))
	}
}

func checkParameter(name string, values, known []string) error {
	if !slices.Contains(known, name) {
		return unknownParameter(name, known)
	}
	if len(values) > 1 && !repeats(name, known) {
		return invalid(name, "given %d times, only one is possible", len(values))
	}
	return nil
}

func unknownParameter(name string, known []string) error {
	if len(known) == 0 {
		return invalid(name, "unknown parameter; this path takes none")
	}
	known = slices.Sorted(slices.Values(known))
	hint := ""
	if meant := spelling.Nearest(name, known); meant != "" {
		hint = fmt.Sprintf(", did you mean %s?", meant)
	}
	return invalid(name, "unknown parameter%s (known here: %s)", hint, strings.Join(known, ", "))
}

func paramsOf(r *http.Request) params { return r.Context().Value(paramsKey{}).(params) }

// flag reads true, false, 1, 0; a name without a value is true.
func (p params) flag(name string) (bool, error) {
	if !p.Has(name) {
		return false, nil
	}
	switch v := p.Get(name); v {
	case "", "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, invalid(name, "%q is neither true nor false", v)
	}
}

// count reads a number of things, 0 when absent.
func (p params) count(name string) (int, error) {
	v := p.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return 0, invalid(name, "%q is not a number from 0 to 2147483647", v)
	}
	return int(n), nil
}

// wait reads the parameter timeout: a duration, or a number of seconds.
func (p params) wait() (time.Duration, error) {
	v := p.Get("timeout")
	if v == "" {
		return defaultWait, nil
	}
	d, err := time.ParseDuration(v)
	if seconds, nerr := strconv.ParseUint(v, 10, 16); nerr == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < 0 || d > maxWait {
		return 0, invalid("timeout", "%q is not a duration from 0s to %v", v, maxWait)
	}
	return d, nil
}

// pathValue is a part of the path, decoded once. chi routes on the escaped path
// if decoding and encoding again would change it (a %2F), else on the decoded
// one, and hands out parts of whichever it was.
func pathValue(r *http.Request, name string) (string, error) {
	v := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return v, nil
	}
	decoded, err := url.PathUnescape(v)
	if err != nil {
		return "", invalid("path", "%v", err)
	}
	return decoded, nil
}

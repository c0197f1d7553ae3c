package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/filter"
	"github.com/informerd/informerd/cache/summary"
)

// query is what a request for objects asks.
type query struct {
	cache.Query
	view
	limit    int
	token    string // continue
	version  string // resourceVersion, "" when any will do
	wait     time.Duration
	watch    bool
	duration time.Duration // of the watch, 0 without end
	explain  bool

	summary    summary.Query // groupBy, agg and facets
	groupOrder summary.Order

	severalClusters bool // it is asked of any number of clusters
}

func parseQuery(p params) (*query, error) {
	q := &query{token: p.Get("continue")}
	var errs [11]error
	q.view, errs[0] = parseView(p)
	errs[1] = q.parseSelection(p)
	q.limit, errs[2] = p.count("limit")
	q.version, errs[3] = parseVersion(p)
	q.wait, errs[4] = p.wait()
	q.watch, errs[5] = p.flag("watch")
	var seconds int
	seconds, errs[6] = p.count("timeoutSeconds")
	q.duration = time.Duration(seconds) * time.Second
	errs[7] = checkTogether(p, q.watch)
	errs[8] = q.parseSummary(p)
	errs[9] = q.checkSummary(p)
	q.explain, errs[10] = p.flag("explain")
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if q.watch && q.table {
		return nil, invalid("view", "table is not possible together with watch=true")
	}
	if q.watch && q.output != outputJSON {
		return nil, invalid("output", "%s is not possible together with watch=true", q.output)
	}
	if q.explain && q.lines {
		return nil, invalid("pretty", "items is not possible together with explain: a plan is no list of objects")
	}
	if q.explain && q.output != outputJSON {
		return nil, invalid("explain", "not possible together with output=%s: a plan is JSON", q.output)
	}
	if q.watch && q.version != "" && q.clock() {
		return nil, invalid("resourceVersion", "not possible together with watch=true and a filter that asks for the time: what matched back then is not known")
	}
	q.Reads = q.reads()
	return q, nil
}

// verbs are what it takes to see the answer. A stream begins with a list, and shows
// what becomes of it.
func (q *query) verbs() []cache.Verb {
	if q.watch {
		return []cache.Verb{cache.List, cache.Watch}
	}
	return []cache.Verb{cache.List}
}

// clock reports whether what q selects depends on the time.
func (q *query) clock() bool { return q.Filter != nil && q.Filter.Clock() }

// timely reports whether the same question has another answer without any change
// of the objects: ages in tables grow.
func (q *query) timely() bool { return q.clock() || q.table }

// checkTogether refuses parameters that would have no effect, or not one that
// anybody could predict, beside the others.
func checkTogether(p params, watch bool) error {
	if watch {
		names := []string{"continue", "pretty", "count", "explain", "limit", "sort"}
		if p.Has("groupBy") || p.Has("agg") {
			names = []string{"continue", "pretty", "count", "explain", "resourceVersion"}
		}
		for _, name := range names {
			if p.Has(name) {
				return invalid(name, "not possible together with watch=true")
			}
		}
	} else if p.Has("timeoutSeconds") {
		return invalid("timeoutSeconds", "only possible together with watch=true")
	}
	if p.Has("continue") && p.Has("explain") {
		return invalid("explain", "not possible together with continue, which asks for what was found before")
	}
	if p.Has("continue") && p.Has("resourceVersion") {
		return invalid("resourceVersion", "not possible together with continue, which carries the version of the first page")
	}
	return checkTimeout(p)
}

func checkTimeout(p params) error {
	if p.Has("timeout") && !p.Has("resourceVersion") {
		return invalid("timeout", "only possible together with resourceVersion, for which it waits")
	}
	return nil
}

func (q *query) parseSelection(p params) error {
	for _, ns := range p.Values["namespace"] {
		if ns == "" {
			return invalid("namespace", "empty; leave it out for all namespaces")
		}
		if _, err := path.Match(ns, ""); err != nil {
			return invalid("namespace", "%q is not a glob: %v", ns, err)
		}
		q.Namespaces = append(q.Namespaces, ns)
	}
	if text := p.Get("labelSelector"); text != "" {
		selector, err := labels.Parse(text)
		if err != nil {
			return invalid("labelSelector", "%v", err)
		}
		q.Labels = selector
	}
	if text := p.Get("fieldSelector"); text != "" {
		selector, err := cache.ParseFieldSelector(text)
		if err != nil {
			return err
		}
		q.Fields = selector
	}
	if p.Has("filter") {
		expression, err := filter.Compile(p.Get("filter"), time.Now())
		if err != nil {
			return err
		}
		q.Filter = expression
	}
	if p.Has("sort") && !p.Has("groupBy") && !p.Has("agg") {
		order, err := cache.ParseOrder(p.Get("sort"))
		if err != nil {
			return err
		}
		q.Sort = judgedOrder(order, time.Now())
	}
	for _, text := range p.Values["index"] {
		index, value, ok := strings.Cut(text, ":")
		if !ok || index == "" {
			return invalid("index", "%q is not name:value", text)
		}
		q.Terms = append(q.Terms, cache.Term{Index: index, Value: value})
	}
	return nil
}

// parseVersion reads resourceVersion; "0" is any version, as in Kubernetes.
func parseVersion(p params) (string, error) {
	return parseVersionText("resourceVersion", p.Get("resourceVersion"))
}

func parseVersionText(name, v string) (string, error) {
	if v == "0" {
		return "", nil
	}
	if strings.Trim(v, "0123456789") != "" || strings.HasPrefix(v, "0") {
		return "", invalid(name, "%q is not a version: it is the decimal number an earlier answer gave", v)
	}
	return v, nil
}

// waitVersion waits until a copy has reached version, but not longer than wait.
func waitVersion(ctx context.Context, reader *cache.Reader, version string, wait time.Duration) error {
	if version == "" {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := reader.WaitVersion(waiting, version)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, cache.ErrTooNew) {
		return &tooNewError{version, reader.Version()}
	}
	return err
}

// tooNewError says what was asked and what is there, as the API server does.
type tooNewError struct{ wanted, current string }

func (e *tooNewError) Error() string {
	return fmt.Sprintf("Too large resource version: %s, current: %s", e.wanted, e.current)
}
func (e *tooNewError) Unwrap() error { return cache.ErrTooNew }

// wantsJSON is the beginning of every answer in JSON about a readable resource.
func (s *Server) wantsJSON(w http.ResponseWriter, r *http.Request) (*viewed, error) {
	if err := negotiate(w, r, typeJSON); err != nil {
		return nil, err
	}
	return s.lookupReadable(w, r, nil, cache.List)
}

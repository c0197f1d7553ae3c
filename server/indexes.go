package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/spelling"
	"github.com/informerd/informerd/server/audit"
)

type indexItem struct {
	Name   string `json:"name"`
	Path   string `json:"path,omitempty"`
	Values int    `json:"values"`
}

type indexValueItem struct {
	Value   string `json:"value"`
	Objects int    `json:"objects"`
}

func (s *Server) listIndexes(w http.ResponseWriter, r *http.Request) error {
	pretty, err := paramsOf(r).flag("pretty")
	if err != nil {
		return err
	}
	res, err := s.wantsJSON(w, r)
	if err != nil {
		return err
	}
	revision, version := res.reader.Revision(), res.reader.Version()
	setFreshness(w.Header(), res.view, version)
	if notModified(w, r, revisionTag(r, res, revision)) {
		return nil
	}
	answer := list[indexItem]{Kind: "IndexList", APIVersion: apiVersion, Items: []indexItem{}}
	answer.Metadata.ResourceVersion = version
	for _, i := range res.reader.Indexes() {
		answer.Items = append(answer.Items, indexItem(i))
	}
	return writeJSON(w, r, answer, pretty)
}

func (s *Server) listIndexValues(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	pretty, err := p.flag("pretty")
	if err != nil {
		return err
	}
	limit, err := p.count("limit")
	if err != nil {
		return err
	}
	after, err := parseValueToken(p.Get("continue"))
	if err != nil {
		return err
	}
	index, err := pathValue(r, "index")
	if err != nil {
		return err
	}
	res, err := s.wantsJSON(w, r)
	if err != nil {
		return err
	}
	// Taken before the values: a tag that is too old costs a transfer, one that
	// is too new would hide a change.
	revision := res.reader.Revision()
	setFreshness(w.Header(), res.view, res.reader.Version())
	if err := checkIndex(res.reader, index); err != nil {
		return err
	}
	if notModified(w, r, revisionTag(r, res, revision)) {
		return nil
	}
	answer, err := indexValues(res.reader, index, p.Get("prefix"), after, limit)
	if err != nil {
		return err
	}
	setFreshness(w.Header(), res.view, answer.Metadata.ResourceVersion)
	audit.From(r.Context()).Returned(len(answer.Items))
	return writeJSON(w, r, answer, pretty)
}

// indexValues asks for one value more than wanted, to know whether there are
// more. after is nil at the beginning.
func indexValues(reader *cache.Reader, index, prefix string, after *string, limit int) (*list[indexValueItem], error) {
	ask := limit
	if limit > 0 {
		ask++
	}
	values, version, err := valuesAfter(reader, index, prefix, after, ask)
	if err != nil {
		return nil, missingIndex(err)
	}
	answer := &list[indexValueItem]{Kind: "IndexValueList", APIVersion: apiVersion, Items: []indexValueItem{}}
	answer.Metadata.ResourceVersion = version
	if limit > 0 && len(values) > limit {
		values = values[:limit]
		answer.Metadata.Truncated = true
		answer.Metadata.Continue = valueToken(values[limit-1].Value)
	}
	for _, v := range values {
		answer.Items = append(answer.Items, indexValueItem(v))
	}
	return answer, nil
}

func valuesAfter(reader *cache.Reader, index, prefix string, after *string, limit int) ([]cache.IndexValue, string, error) {
	if after == nil {
		return reader.IndexValues(index, prefix, limit)
	}
	return reader.IndexValuesAfter(index, prefix, *after, limit)
}

// valueToken asks for the values after v. Clients must not look inside.
func valueToken(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(valueMark + v)) }

// valueMark tells these tokens from those of lists of objects.
const valueMark = "v"

// parseValueToken returns nil for the beginning.
func parseValueToken(token string) (*string, error) {
	if token == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	after, ok := strings.CutPrefix(string(text), valueMark)
	if err != nil || !ok {
		return nil, invalid("continue", "this is no token of a list of values; use metadata.continue of the page before, unchanged")
	}
	return &after, nil
}

// listIndexed is listObjects for one value of one index.
func (s *Server) listIndexed(w http.ResponseWriter, r *http.Request) error {
	index, err := pathValue(r, "index")
	if err != nil {
		return err
	}
	value, err := pathValue(r, "*")
	if err != nil {
		return err
	}
	if s.asksSeveral(r) {
		return s.listOfSeveral(w, r, index+":"+value)
	}
	q, err := parseQuery(paramsOf(r))
	if err != nil {
		return err
	}
	q.Terms = append(q.Terms, cache.Term{Index: index, Value: value})
	return s.answer(w, r, q, func() (*viewed, error) {
		res, err := s.lookupFor(w, r, q)
		if err != nil {
			return nil, err
		}
		return res, checkIndex(res.reader, index)
	})
}

// checkIndex says 404 for an index that the path names; where a parameter names
// it, it is a bad request.
func checkIndex(reader *cache.Reader, index string) error {
	names := reader.IndexNames()
	if slices.Contains(names, index) {
		return nil
	}
	hint := ""
	if meant := spelling.Nearest(index, names); meant != "" {
		hint = fmt.Sprintf(", did you mean %s?", meant)
	}
	return notFound("no index %q%s (there is: %s)", index, hint, strings.Join(names, ", "))
}

// missingIndex tells the loss of an index between two looks from other errors.
func missingIndex(err error) error {
	if bad, ok := errors.AsType[*cache.InvalidError](err); ok && bad.Parameter == "index" {
		return notFound("%s", bad.Message)
	}
	return err
}

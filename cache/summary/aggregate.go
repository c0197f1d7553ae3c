package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// Aggregate is one column computed of a group.
type Aggregate struct {
	// Func is one of count, sum, min, max and avg.
	Func string
	// Path leads to the values; count may be without one, and counts objects.
	Path rawjson.Path
}

var functions = []string{"count", "sum", "min", "max", "avg"}

// maxAggregates bounds the columns of a group.
const maxAggregates = 16

// String is a form that ParseAggregates reads back.
func (a Aggregate) String() string { return a.Func + "(" + a.Path.String() + ")" }

// ParseAggregates reads calls separated by commas:
//
//	count(),sum(spec.containers[*].resources.requests.cpu),max(status.startTime)
//
// Errors are *cache.InvalidError and name the column, counted from 1.
func ParseAggregates(s string) ([]Aggregate, error) {
	var all []Aggregate
	for _, part := range rawjson.CommaSeparated(s) {
		a, err := parseAggregate(s, part[0], part[1])
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, a) {
			return nil, invalid("agg", "column %d: %s is named twice", part[0]+1, a)
		}
		all = append(all, a)
	}
	if len(all) > maxAggregates {
		return nil, invalid("agg", "%d aggregates; at most %d are possible", len(all), maxAggregates)
	}
	return all, nil
}

func parseAggregate(s string, start, end int) (Aggregate, error) {
	for start < end && s[start] == ' ' {
		start++
	}
	for end > start && s[end-1] == ' ' {
		end--
	}
	text := s[start:end]
	name, _, open := strings.Cut(text, "(")
	if !open || !strings.HasSuffix(text, ")") {
		return Aggregate{}, invalid("agg", "column %d: want a call such as count() or sum(spec.replicas)", start+1)
	}
	if !slices.Contains(functions, name) {
		return Aggregate{}, invalid("agg", "column %d: there is no function %q; there are %s", start+1, name, strings.Join(functions, ", "))
	}
	a := Aggregate{Func: name}
	first, last := start+len(name)+1, end-1
	if strings.TrimSpace(s[first:last]) == "" {
		if name != "count" {
			return Aggregate{}, invalid("agg", "column %d: %s needs a path", first+1, name)
		}
		return a, nil
	}
	var err error
	if a.Path, err = rawjson.ParsePathIn(s, first, last); err != nil {
		return Aggregate{}, invalid("agg", "%v", err)
	}
	return a, nil
}

// ParsePaths reads the paths of groupBy and facets, separated by commas.
func ParsePaths(parameter, s string) ([]rawjson.Path, error) {
	var paths []rawjson.Path
	for _, part := range rawjson.CommaSeparated(s) {
		p, err := cache.ParseValueIn(s, part[0], part[1])
		if err != nil {
			return nil, invalid(parameter, "%v", err)
		}
		paths = append(paths, p)
	}
	for i, p := range paths {
		if slices.Contains(paths[:i], p) {
			return nil, invalid(parameter, "%s is named twice", p)
		}
	}
	if len(paths) > maxPaths {
		return nil, invalid(parameter, "%d paths; at most %d are possible", len(paths), maxPaths)
	}
	return paths, nil
}

const maxPaths = 8

func invalid(parameter, format string, args ...any) error {
	return &cache.InvalidError{Parameter: parameter, Message: fmt.Sprintf(format, args...)}
}

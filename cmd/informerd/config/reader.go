package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// reader walks the nodes of one file and collects what is wrong with them. Its
// methods report a mistake themselves and return what to go on with.
type reader struct {
	file string
	errs Errors
	// later check what depends on the rest of the file, once all of it is read.
	later []func(*Config)
}

// fieldsOf are the keys of a mapping and what reads their values.
type fieldsOf map[string]func(n *yaml.Node, path string)

func (r *reader) errorf(n *yaml.Node, path, format string, args ...any) {
	r.errs = append(r.errs, &Error{
		File: r.file, Line: n.Line, Column: n.Column, Path: path,
		Message: fmt.Sprintf(format, args...),
	})
}

// mapping reads the keys of n. A key without a value counts as not given.
func (r *reader) mapping(n *yaml.Node, path string, known fieldsOf) {
	r.pairs(n, path, func(key, value *yaml.Node) {
		read, ok := known[key.Value]
		switch {
		case !ok:
			names := slices.Sorted(maps.Keys(known))
			r.errorf(key, join(path, key.Value), "unknown key, %s", didYouMean(key.Value, names))
		case !isNull(value):
			read(value, join(path, key.Value))
		}
	})
}

// pairs calls each for every key and value of the mapping n, once for each key.
func (r *reader) pairs(n *yaml.Node, path string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.errorf(n, path, "is %s, needs keys and values", describe(n))
		return
	}
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			r.errorf(key, path, "a key is %s, needs a word", describe(resolve(key)))
			continue
		}
		if key.Tag == "!!merge" {
			r.errorf(key, path, `the merge key "<<" is not supported: write the keys out`)
			continue
		}
		if line, twice := first[key.Value]; twice {
			r.errorf(key, join(path, key.Value), "given twice, first on line %d", line)
			continue
		}
		first[key.Value] = key.Line
		each(key, value)
	}
}

// list calls each for the items of n.
func (r *reader) list(n *yaml.Node, path string, each func(n *yaml.Node, path string)) {
	if n.Kind != yaml.SequenceNode {
		hint := ""
		if n.Kind == yaml.ScalarNode {
			hint = fmt.Sprintf(": write [%s]", n.Value)
		}
		r.errorf(n, path, "is %s, needs a list%s", describe(n), hint)
		return
	}
	for i, item := range n.Content {
		each(resolve(item), fmt.Sprintf("%s[%d]", path, i))
	}
}

// text reads a string.
func (r *reader) text(n *yaml.Node, path string) (string, bool) {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		return n.Value, true
	case n.Kind == yaml.ScalarNode && !isNull(n):
		r.errorf(n, path, "is %s, needs text: put it in quotes", describe(n))
	default:
		r.errorf(n, path, "is %s, needs text", describe(n))
	}
	return "", false
}

// checked reads a string that check accepts.
func (r *reader) checked(n *yaml.Node, path string, check func(string) error) (string, bool) {
	s, ok := r.text(n, path)
	if !ok {
		return "", false
	}
	if err := check(s); err != nil {
		r.errorf(n, path, "%v", err)
		return "", false
	}
	return s, true
}

// texts reads a list of different strings that check accepts. It is never nil.
func (r *reader) texts(n *yaml.Node, path string, check func(string) error) []string {
	all := []string{}
	r.list(n, path, func(n *yaml.Node, path string) {
		s, ok := r.checked(n, path, check)
		switch {
		case !ok:
		case slices.Contains(all, s):
			r.errorf(n, path, "%q is given twice", s)
		default:
			all = append(all, s)
		}
	})
	return all
}

// choice reads one of a few words.
func (r *reader) choice(n *yaml.Node, path, fallback string, words ...string) string {
	s, ok := r.checked(n, path, func(s string) error {
		if slices.Contains(words, s) {
			return nil
		}
		return fmt.Errorf("bad value %q: %s", s, didYouMean(s, words))
	})
	if !ok {
		return fallback
	}
	return s
}

func (r *reader) boolean(n *yaml.Node, path string, fallback bool) bool {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" {
		if b, err := strconv.ParseBool(n.Value); err == nil {
			return b
		}
	}
	r.errorf(n, path, "is %s, needs true or false", describe(n))
	return fallback
}

func (r *reader) integer(n *yaml.Node, path string, least, most, fallback int) int {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		r.errorf(n, path, "is %s, needs a number from %d to %d", describe(n), least, most)
		return fallback
	}
	i, err := strconv.Atoi(n.Value)
	if err != nil || i < least || i > most {
		r.errorf(n, path, "%s is out of range: from %d to %d", n.Value, least, most)
		return fallback
	}
	return i
}

// duration reads a duration between least and most, or 0 where zero is true.
func (r *reader) duration(n *yaml.Node, path string, zero bool, least, most, fallback time.Duration) time.Duration {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		r.errorf(n, path, "is %s, needs a duration such as 500ms, 1s, 5m or 1h", describe(n))
		return fallback
	}
	d, err := time.ParseDuration(n.Value)
	switch {
	case err != nil:
		r.errorf(n, path, "bad duration %q: write one such as 500ms, 1s, 5m or 1h", n.Value)
		return fallback
	case d == 0 && zero:
		return 0
	case d < least || d > most:
		r.errorf(n, path, "duration %s is out of range: from %s to %s", n.Value, short(least), short(most))
		return fallback
	}
	return d
}

// short is the duration as people write it: 1h, not 1h0m0s.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d >= time.Minute && d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return d.String()
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// resolve follows an alias to what it stands for. The anchor's position is the
// one reported then.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// describe is what a message calls n.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return n.Value
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!str":
		return strconv.Quote(n.Value)
	}
	return n.ShortTag() + " " + strconv.Quote(n.Value)
}

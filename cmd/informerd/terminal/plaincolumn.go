package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"k8s.io/client-go/util/jsonpath"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// plainStep leads from a value to those below it: to the member called name, or to all
// elements.
type plainStep struct {
	name     string
	elements bool
}

// plainSteps are those of a path that has nothing but members and [*]; nil is another.
// They are taken from what JSONPath has parsed, so that names are escaped by its rules.
func plainSteps(name, template string) []plainStep {
	parsed, err := jsonpath.Parse(name, template)
	if err != nil || len(parsed.Root.Nodes) != 1 {
		return nil
	}
	list, ok := parsed.Root.Nodes[0].(*jsonpath.ListNode)
	if !ok {
		return nil
	}
	var steps []plainStep
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *jsonpath.FieldNode:
			if n.Value == "" {
				return nil
			}
			steps = append(steps, plainStep{name: n.Value})
		case *jsonpath.ArrayNode:
			if n.Params[0].Known || n.Params[1].Known || n.Params[2].Known {
				return nil
			}
			steps = append(steps, plainStep{elements: true})
		default:
			return nil
		}
	}
	return steps
}

// errNotPlain is that only JSONPath knows what a column shows of an object.
var errNotPlain = errors.New("it is not plain")

// plainCells are the cells of one object where all columns are plain: its text is walked
// through and nothing but the values is decoded. Where ok is false JSONPath has to be asked.
func plainCells(columns []customColumn, raw []byte) (cells []string, ok bool) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 || raw[0] != '{' || !utf8.Valid(raw) {
		return nil, false
	}
	tops, ok := topsOf(columns, client.NewValue(raw))
	if !ok {
		return nil, false
	}
	cells = make([]string, len(columns))
	var room [8]client.Value
	for i := range columns {
		values := room[:0]
		if !tops[i].IsZero() {
			values = append(values, tops[i])
		}
		values, err := walkPlain(values, columns[i].steps[1:])
		if err == nil {
			cells[i], err = plainText(values)
		}
		if err != nil {
			return nil, false
		}
	}
	return cells, true
}

// topsOf are the members of the line that columns begin with, found in one walk for all.
func topsOf(columns []customColumn, line client.Value) (tops []client.Value, ok bool) {
	for i := range columns {
		if len(columns[i].steps) == 0 || columns[i].steps[0].elements {
			return nil, false
		}
	}
	tops = make([]client.Value, len(columns))
	err := line.Members(func(name []byte, value client.Value) error {
		for i := range columns {
			if columns[i].steps[0].name == string(name) {
				tops[i] = value // of a name that occurs twice the last one counts
			}
		}
		return nil
	})
	return tops, err == nil
}

// walkPlain takes the steps from values, level by level as JSONPath does.
func walkPlain(values []client.Value, steps []plainStep) ([]client.Value, error) {
	for _, s := range steps {
		var err error
		if s.elements {
			values, err = elementsOf(values)
		} else {
			values, err = membersOf(values, s.name)
		}
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

// membersOf are the members called name. Of a name that occurs twice the last one counts,
// and what is no object has none.
func membersOf(values []client.Value, name string) ([]client.Value, error) {
	kept := values[:0]
	for _, v := range values {
		if v.Kind() != '{' {
			continue
		}
		var found client.Value
		err := v.Members(func(member []byte, value client.Value) error {
			if string(member) == name {
				found = value
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if !found.IsZero() {
			kept = append(kept, found)
		}
	}
	return kept, nil
}

// elementsOf are the elements of arrays. JSONPath passes over null, refuses what is no
// array, and ends at an array without elements, whatever comes after it.
func elementsOf(values []client.Value) ([]client.Value, error) {
	var all []client.Value
	for _, v := range values {
		if v.Is("null") {
			continue
		}
		if v.Kind() != '[' {
			return nil, errNotPlain
		}
		before := len(all)
		err := v.Elements(func(element client.Value) error {
			all = append(all, element)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(all) == before {
			break
		}
	}
	return all, nil
}

// plainText is what customColumn.cell shows of the values.
func plainText(values []client.Value) (string, error) {
	if len(values) == 0 {
		return "<none>", nil
	}
	text, err := plainValue(values[0])
	if len(values) == 1 || err != nil {
		return text, err
	}
	all := []byte(text)
	for _, v := range values[1:] {
		if text, err = plainValue(v); err != nil {
			return "", err
		}
		all = append(append(all, ','), text...)
	}
	return string(all), nil
}

// plainValue is one value as text; objects and arrays are written anew, with their members
// in order.
func plainValue(v client.Value) (string, error) {
	raw, err := v.Raw()
	switch {
	case err != nil:
		return "", err
	case string(raw) == "null":
		return "<none>", nil
	case raw[0] != '{' && raw[0] != '[':
		return v.Text(), nil
	}
	decoded, err := decodeNumbers(raw)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(decoded)
	return string(text), err
}

// decodeNumbers decodes JSON and keeps numbers as they are written.
func decodeNumbers(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

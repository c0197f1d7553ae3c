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

// cellReader reads the cells of one object after the other. Much of a row is as in the one
// before it.
type cellReader struct {
	columns []customColumn
	before  []string
	tops    []client.Value // the members that columns begin with
	values  []client.Value
	text    []byte // of one cell
}

func newCellReader(columns []customColumn) *cellReader {
	return &cellReader{columns: columns, before: make([]string, len(columns)), tops: make([]client.Value, len(columns))}
}

// cells are those of one object in JSON.
func (r *cellReader) cells(raw []byte) ([]string, error) {
	if cells, ok := r.plain(raw); ok {
		return cells, nil
	}
	return jsonPathCells(r.columns, raw)
}

// plain are the cells where all columns are plain: the text of the object is walked through
// and nothing but the values is decoded. Where ok is false JSONPath has to be asked.
func (r *cellReader) plain(raw []byte) (cells []string, ok bool) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 || raw[0] != '{' || !utf8.Valid(raw) || !r.findTops(client.NewValue(raw)) {
		return nil, false
	}
	cells = make([]string, len(r.columns))
	for i := range r.columns {
		values := r.values[:0]
		if !r.tops[i].IsZero() {
			values = append(values, r.tops[i])
		}
		r.values = values
		values, err := walkPlain(values, r.columns[i].steps[1:])
		if err == nil {
			r.text, err = appendPlain(r.text[:0], values)
		}
		if err != nil {
			return nil, false
		}
		if cells[i] = r.before[i]; string(r.text) != cells[i] {
			cells[i] = string(r.text)
		}
	}
	r.before = cells
	return cells, true
}

// findTops finds the members of the line that columns begin with, in one walk for all.
func (r *cellReader) findTops(line client.Value) (ok bool) {
	for i := range r.columns {
		if steps := r.columns[i].steps; len(steps) == 0 || steps[0].elements {
			return false
		}
	}
	clear(r.tops)
	err := line.Members(func(name []byte, value client.Value) error {
		for i := range r.columns {
			if r.columns[i].steps[0].name == string(name) {
				r.tops[i] = value // of a name that occurs twice the last one counts
			}
		}
		return nil
	})
	return err == nil
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

// appendPlain appends what customColumn.cell shows of the values.
func appendPlain(dst []byte, values []client.Value) (_ []byte, err error) {
	if len(values) == 0 {
		return append(dst, "<none>"...), nil
	}
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendPlainValue(dst, v); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendPlainValue appends one value as text; objects and arrays are written anew, with their
// members in order.
func appendPlainValue(dst []byte, v client.Value) ([]byte, error) {
	raw, err := v.Raw()
	switch {
	case err != nil:
		return dst, err
	case string(raw) == "null":
		return append(dst, "<none>"...), nil
	case raw[0] != '{' && raw[0] != '[':
		return v.AppendText(dst), nil
	}
	decoded, err := decodeNumbers(raw)
	if err != nil {
		return dst, err
	}
	text, err := json.Marshal(decoded)
	return append(dst, text...), err
}

// decodeNumbers decodes JSON and keeps numbers as they are written.
func decodeNumbers(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

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

// cellReader reads the cells of one object after the other.
type cellReader struct {
	columns       []customColumn
	tops          []client.Value // the members that columns begin with
	values, below []client.Value // on the way to one cell
	text          []byte         // of all cells of an object
	ends          []int          // where each of them ends
}

func newCellReader(columns []customColumn) *cellReader {
	return &cellReader{columns: columns, tops: make([]client.Value, len(columns))}
}

// row adds a row for an object in JSON.
func (r *cellReader) row(g *grid, raw []byte) error {
	if r.plain(raw) {
		for i := range r.columns {
			g.text = append(g.text, r.cell(i)...)
			g.endCell()
		}
		g.endRow()
		return nil
	}
	cells, err := jsonPathCells(r.columns, raw)
	if err == nil {
		g.row(cells...)
	}
	return err
}

// cells are those of an object in JSON.
func (r *cellReader) cells(raw []byte) ([]string, error) {
	if !r.plain(raw) {
		return jsonPathCells(r.columns, raw)
	}
	cells := make([]string, len(r.columns))
	for i := range cells {
		cells[i] = string(r.cell(i))
	}
	return cells, nil
}

// cell is one that plain has found.
func (r *cellReader) cell(i int) []byte { return r.text[end(r.ends, i):r.ends[i]] }

// plain finds the cells where all columns are plain: the text of the object is walked through
// and nothing but the values is decoded. Where it returns false JSONPath has to be asked.
func (r *cellReader) plain(raw []byte) (ok bool) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 || raw[0] != '{' || !utf8.Valid(raw) || !r.findTops(client.NewValue(raw)) {
		return false
	}
	r.text, r.ends = r.text[:0], r.ends[:0]
	for i := range r.columns {
		r.values = r.values[:0]
		if !r.tops[i].IsZero() {
			r.values = append(r.values, r.tops[i])
		}
		err := r.walk(r.columns[i].steps[1:])
		if err == nil {
			r.text, err = appendPlain(r.text, r.values)
		}
		if err != nil {
			return false
		}
		r.ends = append(r.ends, len(r.text))
	}
	return true
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

// walk takes the steps from values, level by level as JSONPath does.
func (r *cellReader) walk(steps []plainStep) (err error) {
	for _, s := range steps {
		if s.elements {
			r.below, err = elementsOf(r.below[:0], r.values)
			r.values, r.below = r.below, r.values
		} else {
			r.values, err = membersOf(r.values, s.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
			return kept, err
		}
		if !found.IsZero() {
			kept = append(kept, found)
		}
	}
	return kept, nil
}

// elementsOf appends the elements of arrays to all. JSONPath passes over null, refuses what is no
// array, and ends at an array without elements, whatever comes after it.
func elementsOf(all, values []client.Value) ([]client.Value, error) {
	for _, v := range values {
		if v.Is("null") {
			continue
		}
		if v.Kind() != '[' {
			return all, errNotPlain
		}
		before := len(all)
		err := v.Elements(func(element client.Value) error {
			all = append(all, element)
			return nil
		})
		if err != nil {
			return all, err
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

package terminal

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// customColumn is one of -o custom-columns, with a path in kubectl's JSONPath.
type customColumn struct {
	name, path string
	values     *jsonpath.JSONPath
	steps      []plainStep // nil: the path is not plain
}

// plainPath are paths that informerd reads as JSONPath does, so that it can be asked for
// them alone instead of whole objects.
var plainPath = regexp.MustCompile(`^(\.([A-Za-z0-9_/-]|\\\.)+(\[\*\])?)+$`)

// parseColumns reads NAME:.path,NAME:.path. Commas within brackets are of a path.
func parseColumns(text string) ([]customColumn, error) {
	var all []customColumn
	for _, part := range splitOutside(text, ',') {
		name, path, ok := strings.Cut(part, ":")
		if !ok || name == "" || path == "" {
			return nil, usagef("--output: custom-columns: %q is no column: write NAME:.metadata.name", part)
		}
		c := customColumn{name: name, path: "." + strings.TrimPrefix(strings.Trim(path, "{}"), ".")}
		c.values = jsonpath.New(name).AllowMissingKeys(true)
		if err := c.values.Parse("{" + c.path + "}"); err != nil {
			return nil, usagef("--output: custom-columns: %s: %w", name, err)
		}
		c.steps = plainSteps(name, "{"+c.path+"}")
		all = append(all, c)
	}
	return all, nil
}

// splitOutside cuts text where no bracket is open.
func splitOutside(text string, separator byte) (parts []string) {
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case separator:
			if depth == 0 {
				parts = append(parts, text[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, text[from:])
}

// fieldsOf are the paths to ask for; "" is whole objects.
func fieldsOf(columns []customColumn) string {
	var paths []string
	for _, c := range columns {
		if !plainPath.MatchString(c.path) {
			return ""
		}
		paths = append(paths, c.path[1:])
	}
	return strings.Join(paths, ",")
}

// cell is the values of one column, as kubectl prints them.
func (c *customColumn) cell(object any) string {
	found, err := c.values.FindResults(object)
	if err != nil {
		return "<none>"
	}
	var texts []string
	for _, results := range found {
		for _, r := range results {
			if !r.IsValid() || !r.CanInterface() || r.Interface() == nil {
				texts = append(texts, "<none>")
				continue
			}
			switch v := r.Interface().(type) {
			case string:
				texts = append(texts, v)
			case map[string]any, []any:
				text, _ := json.Marshal(v)
				texts = append(texts, string(text))
			default:
				texts = append(texts, fmt.Sprint(v))
			}
		}
	}
	if len(texts) == 0 {
		return "<none>"
	}
	return strings.Join(texts, ",")
}

// jsonPathCells decodes the object, and asks JSONPath for each column.
func jsonPathCells(columns []customColumn, raw []byte) ([]string, error) {
	object, err := decodeNumbers(raw)
	if err != nil {
		return nil, err
	}
	cells := make([]string, len(columns))
	for i := range columns {
		cells[i] = columns[i].cell(object)
	}
	return cells, nil
}

func (g *getCommand) printColumns(s *session, questions []question) error {
	columns, err := parseColumns(g.columns)
	if err != nil {
		return err
	}
	table := &grid{colour: s.colour}
	if !g.noHeaders {
		for _, c := range columns {
			table.header = append(table.header, c.name)
		}
	}
	r := newCellReader(columns)
	for _, q := range questions {
		v := g.values(q)
		v.Set("output", "ndjson")
		if fields := fieldsOf(columns); fields != "" {
			v.Set("fields", fields)
		}
		if err := s.lines(v, func(line []byte) error { return r.row(table, line) }); err != nil {
			return err
		}
	}
	table.print(s.out)
	return nil
}

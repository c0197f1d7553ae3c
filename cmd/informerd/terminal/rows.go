package terminal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// tableAnswer is an answer with view=table.
type tableAnswer struct {
	Metadata struct {
		RemainingItemCount int
		Resources          []struct{ Cluster, Resource, Kind string }
	}
	Columns []tableColumns
	Items   []tableRow
}

type tableColumns struct {
	Cluster    string
	Resource   string
	Namespaced bool
	Columns    []struct {
		Name     string
		Format   string
		Priority int
	}
}

type tableRow struct {
	Cluster  string
	Resource string
	Cells    []cell
	Object   struct{ Metadata rowMetadata }
}

type rowMetadata struct {
	Namespace string
	Labels    json.RawMessage
}

// cell is what a table shows of a JSON value.
type cell string

func (c *cell) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*c = "<none>"
	case b[0] == '"':
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*c = cell(text)
	default:
		*c = cell(b)
	}
	return nil
}

// printTables prints a table for each resource, as kubectl get does.
func (g *getCommand) printTables(s *session, questions []question) error {
	p := &tablePrinter{getCommand: g, prefix: len(questions) > 1}
	for _, q := range questions {
		var a tableAnswer
		v := g.values(q)
		v.Set("view", "table")
		members := map[string]any{"metadata": &a.Metadata, "columns": &a.Columns}
		err := s.Items(s.ctx, client.Path("query"), v, members, func(items *json.Decoder) error {
			var row tableRow
			err := items.Decode(&row)
			a.Items = append(a.Items, row)
			return err
		})
		if err != nil {
			return err
		}
		p.add(s, &a)
	}
	named := slices.ContainsFunc(questions, func(q question) bool { return len(q.names) > 0 })
	if p.printed == 0 && !named {
		s.note("No resources found %s.", g.where())
	}
	if p.remaining > 0 {
		s.note("%d more are not shown: --limit %d", p.remaining, g.limit)
	}
	return nil
}

// tablePrinter prints the tables of one command one below the other.
type tablePrinter struct {
	*getCommand
	prefix    bool // names have their kind before them
	printed   int
	remaining int
}

func (p *tablePrinter) add(s *session, a *tableAnswer) {
	several := map[string]bool{}
	kinds := map[string]string{}
	for _, r := range a.Metadata.Resources {
		several[r.Cluster] = true
		kinds[r.Resource] = r.Kind
	}
	p.prefix = p.prefix || len(kinds) > 1
	p.remaining += a.Metadata.RemainingItemCount
	for _, columns := range a.Columns {
		t := &printedTable{tablePrinter: p, tableColumns: columns, cluster: len(several) > 1}
		if p.prefix {
			_, group, _ := strings.Cut(columns.Resource, ".")
			t.prefix = typeName(kinds[columns.Resource], group) + "/"
		}
		t.print(s, a.Items)
	}
}

// printedTable is the table of one resource of one cluster.
type printedTable struct {
	*tablePrinter
	tableColumns
	cluster bool
	prefix  string
}

func (t *printedTable) print(s *session, rows []tableRow) {
	g := &grid{colour: s.colour}
	if !t.noHeaders {
		g.header = t.names()
	}
	for i := range rows {
		if rows[i].Resource == t.Resource && rows[i].Cluster == t.Cluster {
			g.rows = append(g.rows, t.cells(&rows[i]))
		}
	}
	if t.printed > 0 {
		s.out.WriteByte('\n')
	}
	t.printed += len(g.rows)
	g.print(s.out)
}

func (t *printedTable) names() []string {
	var names []string
	if t.cluster {
		names = append(names, "CLUSTER")
	}
	if t.showsNamespace() {
		names = append(names, "NAMESPACE")
	}
	for _, c := range t.Columns {
		if c.Priority == 0 || t.name == "wide" {
			names = append(names, strings.ToUpper(c.Name))
		}
	}
	if t.showLabels {
		names = append(names, "LABELS")
	}
	return names
}

// showsNamespace is so where rows may be of several.
func (t *printedTable) showsNamespace() bool {
	_, one := t.single()
	return t.Namespaced && !one
}

func (t *printedTable) cells(row *tableRow) []string {
	cells := make([]string, 0, len(row.Cells)+3)
	if t.cluster {
		cells = append(cells, row.Cluster)
	}
	if t.showsNamespace() {
		cells = append(cells, row.Object.Metadata.Namespace)
	}
	for i, c := range row.Cells {
		switch {
		case i < len(t.Columns) && t.Columns[i].Priority > 0 && t.name != "wide":
		case i < len(t.Columns) && t.Columns[i].Format == "name":
			cells = append(cells, t.prefix+string(c))
		default:
			cells = append(cells, string(c))
		}
	}
	if t.showLabels {
		cells = append(cells, labelText(row.Object.Metadata.Labels))
	}
	return cells
}

func labelText(raw json.RawMessage) string {
	var labels map[string]string
	if json.Unmarshal(raw, &labels) != nil || len(labels) == 0 {
		return "<none>"
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, fmt.Sprintf("%s=%s", key, labels[key]))
	}
	return strings.Join(all, ",")
}

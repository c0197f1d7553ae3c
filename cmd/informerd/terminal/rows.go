package terminal

import (
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

// rowSize is about how long an item is.
const rowSize = 200

type tableRow struct {
	cluster, resource string
	cells             []string
	namespace         string
	labels            client.Value
}

// read reads an item of a table, with as many cells as there are columns.
func (row *tableRow) read(item client.Value, columns int) error {
	row.cells = make([]string, 0, columns)
	return item.Members(func(name string, value client.Value) error {
		switch name {
		case "cluster":
			row.cluster = value.Text()
		case "resource":
			row.resource = value.Text()
		case "cells":
			return value.Elements(func(cell client.Value) error {
				row.cells = append(row.cells, cellText(cell))
				return nil
			})
		case "object":
			return value.Members(row.readObject)
		}
		return nil
	})
}

func (row *tableRow) readObject(name string, value client.Value) error {
	if name != "metadata" {
		return nil
	}
	return value.Members(func(name string, value client.Value) error {
		switch name {
		case "namespace":
			row.namespace = value.Text()
		case "labels":
			row.labels = value
		}
		return nil
	})
}

// cellText is what a table shows of a JSON value.
func cellText(value client.Value) string {
	raw, err := value.Raw()
	switch {
	case err != nil:
		return "" // who walks on is told
	case raw == "null", raw == `"\u003cnone\u003e"`: // as API servers write it, in most rows
		return "<none>"
	}
	return value.Text()
}

// read reads an answer.
func (a *tableAnswer) read(answer client.Value) error {
	return answer.Members(func(name string, value client.Value) error {
		switch name {
		case "metadata":
			return value.Decode(&a.Metadata)
		case "columns":
			return value.Decode(&a.Columns)
		case "items":
			a.Items = make([]tableRow, 0, value.Rest()/rowSize)
			return value.Elements(func(item client.Value) error {
				a.Items = append(a.Items, tableRow{})
				return a.Items[len(a.Items)-1].read(item, a.columns())
			})
		}
		return nil
	})
}

// columns are how many cells a row has at most.
func (a *tableAnswer) columns() int {
	most := 0
	for i := range a.Columns {
		most = max(most, len(a.Columns[i].Columns))
	}
	return most
}

// printTables prints a table for each resource, as kubectl get does.
func (g *getCommand) printTables(s *session, questions []question) error {
	p := &tablePrinter{getCommand: g, prefix: len(questions) > 1}
	for _, q := range questions {
		var a tableAnswer
		v := g.values(q)
		v.Set("view", "table")
		v.Set("fields", g.rowFields())
		answer, err := s.Value(s.ctx, client.Path("query"), v)
		if err != nil {
			return err
		}
		if err := a.read(answer); err != nil {
			return s.Broken(s.ctx, err)
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

// rowFields are the paths of what tables show beside cells.
func (g *getCommand) rowFields() string {
	if g.showLabels {
		return "metadata.namespace,metadata.labels"
	}
	return "metadata.namespace" // informerd knows it without unpacking objects
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
		if rows[i].resource == t.Resource && rows[i].cluster == t.Cluster {
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
	cells := make([]string, 0, len(row.cells)+3)
	if t.cluster {
		cells = append(cells, row.cluster)
	}
	if t.showsNamespace() {
		cells = append(cells, row.namespace)
	}
	for i, c := range row.cells {
		switch {
		case i < len(t.Columns) && t.Columns[i].Priority > 0 && t.name != "wide":
		case i < len(t.Columns) && t.Columns[i].Format == "name":
			cells = append(cells, t.prefix+c)
		default:
			cells = append(cells, c)
		}
	}
	if t.showLabels {
		cells = append(cells, labelText(row.labels))
	}
	return cells
}

func labelText(raw client.Value) string {
	var labels map[string]string
	if raw.IsZero() || raw.Decode(&labels) != nil || len(labels) == 0 {
		return "<none>"
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, fmt.Sprintf("%s=%s", key, labels[key]))
	}
	return strings.Join(all, ",")
}

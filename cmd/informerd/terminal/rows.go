package terminal

import (
	"cmp"
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

	labels bool // are wanted
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

// tableRow is a row as it comes; its cells are room for the row that is printed, too.
type tableRow struct {
	cluster, resource string
	cells             []string // after leading ones
	namespace         string
	labels            string
}

// leading is how many cells a printed row may have before those that come, and trailing how
// many after them.
const leading, trailing = 2, 1

// maxColumns bounds what is made for cells before they have come.
const maxColumns = 64

// item reads an item.
func (a *tableAnswer) item(item client.Value) error {
	var before tableRow
	if n := len(a.Items); n > 0 {
		before = a.Items[n-1]
	}
	row := tableRow{cells: make([]string, leading, leading+min(a.columns(), maxColumns)+trailing)}
	err := item.Members(func(name []byte, value client.Value) error {
		switch string(name) {
		case "cluster":
			row.cluster = value.TextAs(before.cluster)
		case "resource":
			row.resource = value.TextAs(before.resource)
		case "cells":
			return value.Elements(func(cell client.Value) error {
				above := ""
				if i := len(row.cells); i < len(before.cells) {
					above = before.cells[i]
				}
				row.cells = append(row.cells, cellText(cell, above))
				return nil
			})
		case "object":
			return value.Members(func(name []byte, value client.Value) error {
				if string(name) != "metadata" {
					return nil
				}
				return row.readMetadata(value, before.namespace, a.labels)
			})
		}
		return nil
	})
	a.Items = append(a.Items, row)
	return err
}

func (row *tableRow) readMetadata(metadata client.Value, namespace string, labels bool) error {
	return metadata.Members(func(name []byte, value client.Value) error {
		switch string(name) {
		case "namespace":
			row.namespace = value.TextAs(namespace)
		case "labels":
			if labels {
				row.labels = labelText(value)
			}
		}
		return nil
	})
}

// cellText is what a table shows of a JSON value, below another.
func cellText(value client.Value, above string) string {
	if value.Is("null") || value.Is(`"\u003cnone\u003e"`) { // as API servers write it, in most rows
		return "<none>"
	}
	return value.TextAs(above)
}

// member reads what an answer has besides its items.
func (a *tableAnswer) member(name string, value client.Value) error {
	switch name {
	case "metadata":
		return value.Decode(&a.Metadata)
	case "columns":
		return value.Decode(&a.Columns)
	}
	return nil
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
		a := tableAnswer{labels: g.showLabels}
		v := g.values(q)
		v.Set("view", "table")
		v.Set("fields", g.rowFields())
		resp, err := s.Get(s.ctx, client.Path("query"), v)
		if err == nil {
			err = s.List(s.ctx, resp, a.member, a.item)
		}
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

// cells are those of the row as it is printed. They are in the place of those that came.
func (t *printedTable) cells(row *tableRow) []string {
	came := row.cells[leading:]
	first := leading
	if t.showsNamespace() {
		first--
		row.cells[first] = row.namespace
	}
	if t.cluster {
		first--
		row.cells[first] = row.cluster
	}
	cells := row.cells[first:leading]
	for i, c := range came {
		switch {
		case i < len(t.Columns) && t.Columns[i].Priority > 0 && t.name != "wide":
		case i < len(t.Columns) && t.Columns[i].Format == "name":
			cells = append(cells, t.prefix+c)
		default:
			cells = append(cells, c)
		}
	}
	if t.showLabels {
		cells = append(cells, cmp.Or(row.labels, "<none>"))
	}
	return cells
}

func labelText(raw client.Value) string {
	var labels map[string]string
	if raw.Decode(&labels) != nil {
		return ""
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, fmt.Sprintf("%s=%s", key, labels[key]))
	}
	return strings.Join(all, ",")
}

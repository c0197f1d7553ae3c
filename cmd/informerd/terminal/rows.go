package terminal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// tableAnswer is an answer with view=table. What it says of the rows comes before them.
type tableAnswer struct {
	*tablePrinter
	Metadata struct {
		RemainingItemCount int
		Resources          []struct{ Cluster, Resource, Kind string }
	}
	Columns []tableColumns

	tables []*printedTable
	last   *printedTable // that the last row was of
	text   []byte
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

// member reads what an answer has besides its items.
func (a *tableAnswer) member(name string, value client.Value) error {
	switch name {
	case "metadata":
		return value.Decode(&a.Metadata)
	case "columns":
		err := value.Decode(&a.Columns)
		a.begin()
		return err
	}
	return nil
}

// item reads a row. What is read when it comes is not passed once more.
func (a *tableAnswer) item(item client.Value) error {
	var r tableRow
	added := false
	err := item.Members(func(name []byte, value client.Value) error {
		switch string(name) {
		case "cluster":
			r.cluster = value
		case "resource":
			r.resource = value
		case "object":
			return r.readObject(value)
		case "cells":
			r.cells = value
			if added = r.known && !r.resource.IsZero(); added { // as informerd writes it
				return a.row(&r)
			}
		}
		return nil
	})
	if err != nil || added {
		return err
	}
	return a.row(&r)
}

// tableRow is what a row is made from.
type tableRow struct {
	cluster, resource, cells client.Value
	known                    bool // what follows was read
	namespace, labels        client.Value
}

func (r *tableRow) readObject(object client.Value) error {
	r.known = true
	return object.Members(func(name []byte, value client.Value) error {
		if string(name) != "metadata" {
			return nil
		}
		return value.Members(func(name []byte, value client.Value) error {
			switch string(name) {
			case "namespace":
				r.namespace = value
			case "labels":
				r.labels = value
			}
			return nil
		})
	})
}

func (a *tableAnswer) row(r *tableRow) error {
	t, err := a.table(r.cluster, r.resource)
	if err != nil {
		return err
	}
	return t.row(r)
}

// table is the one that a row belongs to.
func (a *tableAnswer) table(cluster, resource client.Value) (*printedTable, error) {
	a.text = cluster.AppendText(a.text[:0])
	n := len(a.text)
	a.text = resource.AppendText(a.text)
	is := func(t *printedTable) bool {
		return t.Cluster == string(a.text[:n]) && t.Resource == string(a.text[n:])
	}
	if a.last != nil && is(a.last) {
		return a.last, nil
	}
	i := slices.IndexFunc(a.tables, is)
	if i < 0 {
		return nil, fmt.Errorf("the answer has a row of %s, of which it has not said what columns there are", a.text)
	}
	a.last = a.tables[i]
	return a.last, nil
}

// cellValue adds what a table shows of a JSON value.
func (g *grid) cellValue(value client.Value) {
	if value.Is("null") || value.Is(`"\u003cnone\u003e"`) { // as API servers write it, in most rows
		g.cell("<none>")
	} else {
		g.value(value)
	}
}

// printTables prints a table for each resource, as kubectl get does.
func (g *getCommand) printTables(s *session, questions []question) error {
	p := &tablePrinter{getCommand: g, colour: s.colour, prefix: len(questions) > 1}
	for _, q := range questions {
		a := tableAnswer{tablePrinter: p}
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
		p.remaining += a.Metadata.RemainingItemCount
		for _, t := range a.tables {
			t.print(s)
		}
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
	colour    bool
	prefix    bool // names have their kind before them
	printed   int
	remaining int
}

// begin makes the tables that the rows are entered in.
func (a *tableAnswer) begin() {
	several := map[string]bool{}
	kinds := map[string]string{}
	for _, r := range a.Metadata.Resources {
		several[r.Cluster] = true
		kinds[r.Resource] = r.Kind
	}
	a.prefix = a.prefix || len(kinds) > 1
	for _, columns := range a.Columns {
		t := &printedTable{tablePrinter: a.tablePrinter, tableColumns: columns, cluster: len(several) > 1}
		t.rows.colour = t.colour
		if a.prefix {
			_, group, _ := strings.Cut(columns.Resource, ".")
			t.prefix = typeName(kinds[columns.Resource], group) + "/"
		}
		a.tables = append(a.tables, t)
	}
}

// printedTable is the table of one resource of one cluster.
type printedTable struct {
	*tablePrinter
	tableColumns
	cluster bool
	prefix  string
	rows    grid
}

// row adds a row.
func (t *printedTable) row(r *tableRow) error {
	if r.cells.IsZero() {
		return fmt.Errorf("the answer has a row of %s without cells", t.Resource)
	}
	g := &t.rows
	if t.cluster {
		g.value(r.cluster)
	}
	if t.showsNamespace() {
		g.value(r.namespace)
	}
	i := 0
	err := r.cells.Elements(func(cell client.Value) error {
		if i >= len(t.Columns) || t.Columns[i].Priority == 0 || t.name == "wide" {
			if i < len(t.Columns) && t.Columns[i].Format == "name" {
				g.text = append(g.text, t.prefix...)
			}
			g.cellValue(cell)
		}
		i++
		return nil
	})
	if t.showLabels {
		g.cell(cmp.Or(labelText(r.labels), "<none>"))
	}
	g.endRow()
	return err
}

func (t *printedTable) print(s *session) {
	if !t.noHeaders {
		t.rows.header = t.names()
	}
	if t.printed > 0 {
		s.out.WriteByte('\n')
	}
	t.printed += t.rows.count
	t.rows.print(s.out)
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

func labelText(raw client.Value) string {
	var labels map[string]string
	if raw.IsZero() || raw.Decode(&labels) != nil {
		return ""
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, fmt.Sprintf("%s=%s", key, labels[key]))
	}
	return strings.Join(all, ",")
}

package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
	"unique"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// printedTable is a table of the API server.
type printedTable struct {
	heading
	rows map[string]*row // by their ids
}

// askTable asks once for all who want the same at the same time, and keeps the rows. It reads the table while
// it comes in: with the metadata of its objects, of which only names and versions are
// kept, one of 20,000 pods is larger than a document may be.
func (a *API) askTable(ctx context.Context, resource cache.Resource, uri string) (*printedTable, error) {
	return once(ctx, &a.asking, "table "+resource.Cluster+" "+uri, func(ctx context.Context) (*printedTable, error) {
		const accept = typeJSON + ";as=Table;v=v1;g=meta.k8s.io"
		t := &printedTable{rows: map[string]*row{}}
		err := a.read(ctx, cache.DocumentKey{Cluster: resource.Cluster, URI: uri, Accept: accept}, "", func(resp *http.Response) error {
			t.warnings = resp.Header.Values("Warning")
			return t.read(resp.Body, 2*a.rows.generationOf())
		})
		if err != nil {
			return nil, err
		}
		a.rows.put(resource, t.heading, t.rows) // once, and also if nobody waits any more
		return t, nil
	})
}

// read reads a table whose rows have the metadata of their objects. Of more rows than atMost the
// first ones are enough: no API server prints as many while it is waited for.
func (t *printedTable) read(body io.Reader, atMost int) error {
	in, now := rawjson.NewTableReader(body, 0), time.Now()
	for {
		raw, err := in.Next()
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, rawjson.ErrNotList) {
			return fmt.Errorf("read table: %w", err)
		}
		// The columns come first, and say which cells are ages.
		if t.columns == nil && in.Columns() != nil {
			if err := json.Unmarshal(in.Columns(), &t.columns); err != nil {
				return fmt.Errorf("read the columns of a table: %w", err)
			}
		}
		if err != nil {
			return nil
		}
		if len(t.rows) >= atMost {
			return nil
		}
		if err := t.add(raw, now); err != nil {
			return err
		}
	}
}

// add reads one row. One that does not say of which object it is is left out.
func (t *printedTable) add(raw []byte, now time.Time) error {
	var r struct {
		Cells      []json.RawMessage `json:"cells"`
		Conditions json.RawMessage   `json:"conditions"`
		Object     struct {
			Metadata struct{ Namespace, Name, UID, ResourceVersion string }
		} `json:"object"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("read a row of a table: %w", err)
	}
	m := r.Object.Metadata
	if m.Name == "" {
		return nil
	}
	cells, err := newPrintedCells(t.columns, r.Cells, m.Name)
	if err != nil {
		return fmt.Errorf("read a row of a table: %w", err)
	}
	t.rows[rowID(m.Namespace, m.Name, m.UID)] = &row{
		version: m.ResourceVersion, cells: cells, conditions: unique.Make(string(r.Conditions)), goodThrough: goodThrough(t.columns, r.Cells, now),
	}
	return nil
}

package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/reply"
)

// blankTimeout bounds the wait for the API server to print nothing: a bookmark
// that comes late is worth less than one with empty cells.
const blankTimeout = time.Second

// bookmark is the table of a bookmark, whose object is given: to the API server
// it is an object like any other, in which nothing is set but the version, so it
// has a row, and columns if it comes first. Without objects only the bookmark
// that ends the initial ones has its object: what it says is in its annotations.
func (p *printer) bookmark(ctx context.Context, object []byte, version string, initial bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, blankTimeout)
	defer cancel()
	columns, cells, err := p.blankLine(ctx)
	if err != nil {
		return nil, err
	}
	row, err := reply.JSON(cells, false)
	if err != nil {
		return nil, err
	}
	body, err := p.tableHead(columns, listMeta{ResourceVersion: version}, p.headed)
	if err != nil {
		return nil, err
	}
	p.headed = true
	if p.include == metav1.IncludeNone && !initial {
		object = []byte("null")
	}
	body = append(append(append(body, `{"cells":`...), row...), `,"object":`...)
	return append(append(body, object...), "}]}"...), nil
}

// blankLine are the columns, and the cells of an object in which nothing is set.
func (p *printer) blankLine(ctx context.Context) ([]metav1.TableColumnDefinition, []any, error) {
	columns, _, err := p.cells(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	cells := make([]any, len(columns))
	if len(cells) > 0 {
		cells[0] = ""
	}
	if p.custom != nil {
		return columns, cells, nil // no path leads to anything
	}
	for i, c := range columns {
		if isAge(c) {
			cells[i] = "<unknown>"
		}
	}
	if p.plain {
		return columns, cells, nil
	}
	for i, c := range p.blank(ctx, len(columns)) {
		cells[i] = c
	}
	return columns, cells, nil
}

// blank are the cells that the API server prints where nothing is set, nil while
// they are not known.
func (p *printer) blank(ctx context.Context, columns int) []json.RawMessage {
	resource := p.spec().Resource
	if known := p.api.rows.blank(resource); len(known) == columns {
		return known
	}
	_, err := once(ctx, &p.api.asking, "blank "+resource.String(), func(ctx context.Context) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, documentTimeout)
		defer cancel()
		cells, err := p.askBlank(ctx)
		if err == nil {
			p.api.rows.putBlank(resource, cells)
		}
		return nil, err
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		p.api.log.Debug("cannot learn how nothing is printed", "gvr", resource.String(), "err", err)
	}
	if known := p.api.rows.blank(resource); len(known) == columns {
		return known
	}
	return nil
}

// askBlank watches as a table what does not exist: no object has such a name. The
// bookmark after the initial objects comes at once.
func (p *printer) askBlank(ctx context.Context) ([]json.RawMessage, error) {
	up := p.api.Upstream(p.cluster)
	if up == nil || p.spec().Aggregated {
		return nil, errNoUpstream(p.cluster, errors.New("it cannot be asked for a bookmark"))
	}
	namespace := ""
	if sources := p.sources(); len(sources) > 0 {
		namespace = sources[0].Namespace
	}
	uri := p.resourcePath(namespace) + "?" + url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {horizonWatch}, "includeObject": {"None"},
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {string(metav1.ResourceVersionMatchNotOlderThan)},
		"fieldSelector": {"metadata.name=-"},
	}.Encode()
	resp, err := up.Get(ctx, uri, http.Header{"Accept": {typeJSON + ";as=Table;v=v1;g=meta.k8s.io"}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, answered(resp.StatusCode, uri)
	}
	for events := json.NewDecoder(resp.Body); ; {
		var e struct {
			Type   string
			Object struct {
				Message string
				Rows    []struct{ Cells []json.RawMessage }
			}
		}
		if err := events.Decode(&e); err != nil {
			return nil, fmt.Errorf("wait for a bookmark: %w", err)
		}
		switch {
		case e.Type == "ERROR":
			return nil, fmt.Errorf("wait for a bookmark: %s", e.Object.Message)
		case e.Type == "BOOKMARK" && len(e.Object.Rows) == 1:
			return e.Object.Rows[0].Cells, nil
		}
	}
}

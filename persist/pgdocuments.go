package persist

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/informerd/informerd/cache"
)

// Documents are those that are saved. A damaged one is left out: the API server has it.
func (p *Postgres) Documents() ([]cache.Document, error) {
	ctx, cancel := p.within(0)
	defer cancel()
	var all []cache.Document
	err := p.read(ctx, func(tx pgx.Tx) error {
		all = nil
		rows, err := tx.Query(ctx, p.in(`SELECT key, value FROM {documents} ORDER BY key`))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var key, value []byte
			if err := rows.Scan(&key, &value); err != nil {
				return err
			}
			d, err := decodeDocument(key, value)
			if err != nil {
				p.options.Log.Warn("document left out, it is damaged", "key", fmt.Sprintf("%q", key), "err", err)
				continue
			}
			all = append(all, d)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	return all, nil
}

// documentBound is how long a document may take to be saved: who asked for it waits.
const documentBound = 3 * time.Second

// SaveDocument saves d and forgets others in its favour.
func (p *Postgres) SaveDocument(d cache.Document, forget []cache.DocumentKey) error {
	key, value, err := encodeDocument(&d)
	if err != nil {
		return err
	}
	gone := [][]byte{hashOf(key)}
	for _, f := range forget {
		k, err := documentKey(f)
		if err != nil {
			return err
		}
		gone = append(gone, hashOf(k))
	}
	ctx, cancel := context.WithTimeout(p.ctx, documentBound)
	defer cancel()
	err = p.change(ctx, documentBound, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, p.in(`DELETE FROM {documents} WHERE hash = ANY($1::bytea[])`), gone); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, p.in(`INSERT INTO {documents} VALUES ($1, $2, $3)`), hashOf(key), key, value)
		return err
	})
	if err != nil {
		return fmt.Errorf("save document %s: %w", d.URI, err)
	}
	return nil
}

// ForgetDocuments forgets those of a cluster.
func (p *Postgres) ForgetDocuments(cluster string) error {
	prefix := append([]byte(cluster), 0)
	ctx, cancel := p.within(0)
	defer cancel()
	err := p.change(ctx, p.bound(0), func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, p.in(`DELETE FROM {documents} WHERE substring(key from 1 for $2) = $1`), prefix, len(prefix))
		if err == nil && done.RowsAffected() > 0 {
			err = p.mustSweep(ctx, tx, "documents")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("forget documents of cluster %s: %w", cluster, err)
	}
	return nil
}

package persist

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/informerd/informerd/cache"
)

// Drop forgets the snapshot of r.
func (p *Postgres) Drop(r cache.Resource) error {
	if err := p.drop(r, false); err != nil {
		return fmt.Errorf("drop snapshot of %s: %w", r, err)
	}
	return nil
}

// Erase is Drop of what must not be kept; see Sweep.
func (p *Postgres) Erase(r cache.Resource) error {
	if err := p.drop(r, true); err != nil {
		return fmt.Errorf("erase snapshot of %s: %w", r, err)
	}
	return nil
}

// dropRows is how many rows a resource may have that is dropped within its time.
const dropRows = 200_000

func (p *Postgres) drop(r cache.Resource, erase bool) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	ctx, cancel := p.within(dropRows)
	defer cancel()
	err := p.change(ctx, p.bound(dropRows), func(tx pgx.Tx) error { return p.forgetIn(ctx, tx, r, erase) })
	if err == nil {
		p.has(resourceStamp(r), absent)
	}
	return err
}

// forgetIn deletes what is saved of a resource.
func (p *Postgres) forgetIn(ctx context.Context, tx pgx.Tx, r cache.Resource, erase bool) error {
	name, err := resourceName(r)
	if err != nil {
		return nil //nolint:nilerr // nothing is saved of one that has no name here
	}
	row, err := p.find(ctx, tx, name, "FOR UPDATE")
	if errors.Is(err, cache.ErrNoSnapshot) {
		return nil
	}
	if err != nil {
		return err
	}
	if erase {
		for _, table := range []string{row.objects, "dictionaries"} {
			if err := p.mustSweep(ctx, tx, table); err != nil {
				return err
			}
		}
	}
	for _, query := range []string{
		`DELETE FROM {` + row.objects + `} WHERE resource = $1`, `DELETE FROM {dictionaries} WHERE resource = $1`, `DELETE FROM {resources} WHERE id = $1`,
	} {
		if _, err := tx.Exec(ctx, p.in(query), row.id); err != nil {
			return err
		}
	}
	return nil
}

package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/informerd/informerd/cache"
)

// Note makes changes of ledgers durable without waiting for a Commit of copies that is
// under way: see cache.Snapshots.
func (p *Postgres) Note(ledgers []cache.LedgerChange) error {
	if len(ledgers) == 0 {
		return nil
	}
	p.noting.Lock()
	defer p.noting.Unlock()
	rows := 0
	for i := range ledgers {
		rows += len(ledgers[i].Put) + len(ledgers[i].Delete)
	}
	ctx, cancel := p.within(rows)
	defer cancel()
	stamp := newStamp()
	if err := p.change(ctx, func(tx pgx.Tx) error { return p.changeLedgers(ctx, tx, ledgers, stamp) }); err != nil {
		return fmt.Errorf("note changes of ledgers: %w", err)
	}
	p.hasLedgers(ledgers, stamp)
	return nil
}

func ledgerStamp(name string) string { return "ledger " + name }

// hasLedgers notes that changes were committed with a stamp.
func (p *Postgres) hasLedgers(ledgers []cache.LedgerChange, stamp int64) {
	for i := range ledgers {
		if c := &ledgers[i]; c.Reset && len(c.Put) == 0 {
			stamp := int64(0)
			p.has(ledgerStamp(c.Name), stamp)
			continue
		}
		p.has(ledgerStamp(ledgers[i].Name), stamp)
	}
}

func (p *Postgres) changeLedgers(ctx context.Context, tx pgx.Tx, ledgers []cache.LedgerChange, stamp int64) error {
	for i := range ledgers {
		err := checkLedgerChange(&ledgers[i])
		if err == nil {
			err = (&pgLedger{p, ctx, tx, &ledgers[i], stamp}).run()
		}
		if err != nil {
			return fmt.Errorf("ledger %q: %w", ledgers[i].Name, err)
		}
	}
	return nil
}

// pgLedger is a change of one ledger on its way to the database.
type pgLedger struct {
	p      *Postgres
	ctx    context.Context //nolint:containedctx // of one call
	tx     pgx.Tx
	change *cache.LedgerChange
	stamp  int64
}

func (l *pgLedger) exec(query string, args ...any) error {
	_, err := l.tx.Exec(l.ctx, l.p.in(query), args...)
	return err
}

func (l *pgLedger) run() error {
	c := l.change
	m, there, err := l.begin()
	if err != nil {
		return err
	}
	if c.Erase {
		if err := l.p.mustSweep(l.ctx, l.tx, "entries"); err != nil {
			return err
		}
	}
	if c.Reset {
		if err := l.exec(`DELETE FROM {entries} WHERE ledger = $1`, c.Name); err != nil {
			return err
		}
		if len(c.Put) == 0 {
			return l.exec(`DELETE FROM {ledgers} WHERE name = $1`, c.Name)
		}
	} else if err := l.remove(m, c.Delete); err != nil {
		return err
	}
	if err := l.put(m); err != nil {
		return err
	}
	if there {
		return l.exec(`UPDATE {ledgers} SET stamp = $2, meta = $3 WHERE name = $1`, c.Name, l.stamp, m.encode())
	}
	return l.exec(`INSERT INTO {ledgers} VALUES ($1, $2, $3)`, c.Name, l.stamp, m.encode())
}

// begin returns what is known of the ledger, and whether there is one. What is not begun
// anew must be what this Postgres left there, or nothing that it knows of.
func (l *pgLedger) begin() (m *ledgerMeta, there bool, err error) {
	name := l.change.Name
	m = &ledgerMeta{name: name}
	var stored int64
	var value []byte
	err = l.tx.QueryRow(l.ctx, l.p.in(`SELECT stamp, meta FROM {ledgers} WHERE name = $1 FOR UPDATE`), name).Scan(&stored, &value)
	switch there = err == nil; {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return nil, false, err
	case l.change.Reset:
		l.p.begins(ledgerStamp(name), l.stamp)
		return m, there, nil
	case !there && l.p.knows(ledgerStamp(name)):
		return nil, false, fmt.Errorf("%w: it is gone", cache.ErrCorrupt)
	case !there:
		l.p.begins(ledgerStamp(name), l.stamp)
		return m, false, nil
	case !l.p.mayHave(ledgerStamp(name), stored, l.stamp):
		return nil, false, fmt.Errorf("%w: it is not what this informerd has left there: the database was put back, or changed by others", cache.ErrCorrupt)
	}
	if m, err = decodeLedgerMeta(metaKey, value); err != nil {
		return nil, false, fmt.Errorf("%w: meta: %w", cache.ErrCorrupt, err)
	}
	return m, true, nil
}

// put writes the entries of the change; of two of one key the last counts.
func (l *pgLedger) put(m *ledgerMeta) error {
	last := make(map[string]int, len(l.change.Put))
	for i, e := range l.change.Put {
		last[string(e.Key)] = i
	}
	for start := 0; start < len(l.change.Put); start += pgRows {
		part := l.change.Put[start:min(start+pgRows, len(l.change.Put))]
		var keys, values [][]byte
		var sums []int64
		for i, e := range part {
			if last[string(e.Key)] != start+i {
				continue
			}
			value := append(make([]byte, sealSize, sealSize+len(e.Value)), e.Value...)
			seal(e.Key, value, entryVersion)
			keys, values, sums = append(keys, e.Key), append(values, value), append(sums, int64(storedSum(value)))
		}
		if !l.change.Reset {
			if err := l.remove(m, keys); err != nil {
				return err
			}
		}
		err := l.exec(`INSERT INTO {entries} (ledger, key, sum, value) SELECT $1, k.key, k.sum, k.value FROM unnest($2::bytea[], $3::bigint[], $4::bytea[]) AS k(key, sum, value)`,
			l.change.Name, keys, sums, values)
		if err != nil {
			return err
		}
		m.entries += uint64(len(keys))
		for _, sum := range sums {
			m.sum += uint64(sum)
		}
	}
	return nil
}

func (l *pgLedger) remove(m *ledgerMeta, keys [][]byte) error {
	for start := 0; start < len(keys); start += pgRows {
		part := keys[start:min(start+pgRows, len(keys))]
		rows, err := l.tx.Query(l.ctx, l.p.in(`DELETE FROM {entries} WHERE ledger = $1 AND key = ANY($2::bytea[]) RETURNING sum`), l.change.Name, part)
		if err != nil {
			return err
		}
		sums, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		for _, sum := range sums {
			m.sum -= uint64(sum)
		}
		m.entries -= uint64(len(sums))
	}
	return nil
}

// Ledgers are the names of those that are saved, in order.
func (p *Postgres) Ledgers() ([]string, error) {
	ctx, cancel := p.within(0)
	defer cancel()
	var names []string
	err := p.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, p.in(`SELECT name FROM {ledgers} ORDER BY name COLLATE "C"`))
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list ledgers: %w", err)
	}
	return names, nil
}

// Ledger reads one; see cache.Ledgers. An error of yield ends the reading and is returned
// as it is.
func (p *Postgres) Ledger(name string, yield func(cache.LedgerEntry) error) error {
	if err := checkLedgerName(name); err != nil {
		return err
	}
	w := newWatchdog(p.options.patience)
	defer w.stop()
	var stopped error
	var stamp int64
	err := p.read(w.ctx, func(tx pgx.Tx) error {
		var value []byte
		err := tx.QueryRow(w.ctx, p.in(`SELECT stamp, meta FROM {ledgers} WHERE name = $1`), name).Scan(&stamp, &value)
		if errors.Is(err, pgx.ErrNoRows) {
			return errNoLedger
		}
		if err != nil {
			return err
		}
		m, err := decodeLedgerMeta(metaKey, value)
		if err != nil {
			return fmt.Errorf("meta: %w", err)
		}
		return p.loadEntries(w, tx, m, func(e cache.LedgerEntry) error {
			stopped = yield(e)
			return stopped
		})
	})
	switch {
	case errors.Is(err, errNoLedger):
		p.has(ledgerStamp(name), 0)
		return nil
	case err == nil:
		p.has(ledgerStamp(name), stamp)
		return nil
	case stopped != nil:
		return stopped
	}
	return corruptLedger(name, err)
}

func (p *Postgres) loadEntries(w *watchdog, tx pgx.Tx, m *ledgerMeta, yield func(cache.LedgerEntry) error) error {
	rows, err := tx.Query(w.ctx, p.in(`SELECT key, value FROM {entries} WHERE ledger = $1 ORDER BY key`), m.name)
	if err != nil {
		return err
	}
	defer rows.Close()
	var found ledgerMeta
	for rows.Next() {
		if found.entries++; found.entries%1000 == 0 {
			w.alive()
		}
		columns := rows.RawValues() // good until the next row
		value, err := unseal(columns[0], columns[1], entryVersion)
		if err != nil {
			return fmt.Errorf("entry %x: %w", columns[0], err)
		}
		found.sum += uint64(storedSum(columns[1]))
		if err := yield(cache.LedgerEntry{Key: bytes.Clone(columns[0]), Value: bytes.Clone(value)}); err != nil {
			return err
		}
	}
	switch {
	case rows.Err() != nil:
		return rows.Err()
	case found.entries != m.entries:
		return fmt.Errorf("%d entries, %d were saved", found.entries, m.entries)
	case found.sum != m.sum:
		return errors.New("entries are of another commit")
	}
	return nil
}

// knows reports whether anything was left under a name.
func (p *Postgres) knows(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stamps[name]) > 0
}

// Documents are those that are saved. A damaged one is left out: the API server has it.
func (p *Postgres) Documents() ([]cache.Document, error) {
	ctx, cancel := p.within(0)
	defer cancel()
	var all []cache.Document
	err := p.read(ctx, func(tx pgx.Tx) error {
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

// SaveDocument saves d and forgets others in its favour.
func (p *Postgres) SaveDocument(d cache.Document, forget []cache.DocumentKey) error {
	key, value, err := encodeDocument(&d)
	if err != nil {
		return err
	}
	gone := [][]byte{key}
	for _, f := range forget {
		k, err := documentKey(f)
		if err != nil {
			return err
		}
		gone = append(gone, k)
	}
	ctx, cancel := p.within(len(gone))
	defer cancel()
	err = p.change(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, p.in(`DELETE FROM {documents} WHERE key = ANY($1::bytea[])`), gone); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, p.in(`INSERT INTO {documents} VALUES ($1, $2)`), key, value)
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
	err := p.change(ctx, func(tx pgx.Tx) error {
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

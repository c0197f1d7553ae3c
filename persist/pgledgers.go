package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

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
	rows := rowsOf(ledgers)
	ctx, cancel := p.within(rows)
	defer cancel()
	stamp := newStamp()
	if err := p.change(ctx, p.bound(rows), func(tx pgx.Tx) error { return p.changeLedgers(ctx, tx, ledgers, stamp) }); err != nil {
		return fmt.Errorf("note changes of ledgers: %w", err)
	}
	p.hasLedgers(ledgers, stamp)
	return nil
}

func rowsOf(ledgers []cache.LedgerChange) (rows int) {
	for i := range ledgers {
		rows += len(ledgers[i].Put) + len(ledgers[i].Delete)
	}
	return rows
}

func ledgerStamp(name string) string { return "ledger " + name }

// hasLedgers notes that changes were committed with a stamp.
func (p *Postgres) hasLedgers(ledgers []cache.LedgerChange, stamp int64) {
	for i := range ledgers {
		p.has(ledgerStamp(ledgers[i].Name), stampOf(&ledgers[i], stamp))
	}
}

// stampOf is the stamp that a ledger has after a change: one with nothing in it is not there.
func stampOf(c *cache.LedgerChange, stamp int64) int64 {
	if c.Reset && len(c.Put) == 0 {
		return absent
	}
	return stamp
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
		if err := l.exec(`DELETE FROM {entries} WHERE ledger = $1`, []byte(c.Name)); err != nil {
			return err
		}
		if len(c.Put) == 0 {
			return l.exec(`DELETE FROM {ledgers} WHERE name = $1`, []byte(c.Name))
		}
	} else if err := l.remove(m, c.Delete); err != nil {
		return err
	}
	if err := l.put(m); err != nil {
		return err
	}
	if there {
		return l.exec(`UPDATE {ledgers} SET stamp = $2, meta = $3 WHERE name = $1`, []byte(c.Name), l.stamp, m.encode())
	}
	return l.exec(`INSERT INTO {ledgers} VALUES ($1, $2, $3)`, []byte(c.Name), l.stamp, m.encode())
}

// begin returns what is known of the ledger, and whether there is one. What is not begun
// anew must be what this Postgres left there, or nothing that it knows of.
func (l *pgLedger) begin() (m *ledgerMeta, there bool, err error) {
	name := l.change.Name
	m = &ledgerMeta{name: name}
	var stored int64
	var value []byte
	err = l.tx.QueryRow(l.ctx, l.p.in(`SELECT stamp, meta FROM {ledgers} WHERE name = $1 FOR UPDATE`), []byte(name)).Scan(&stored, &value)
	switch there = err == nil; {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return nil, false, err
	case l.change.Reset:
		l.p.begins(ledgerStamp(name), stampOf(l.change, l.stamp))
		return m, there, nil
	case !l.p.mayHave(ledgerStamp(name), stored, l.stamp):
		return nil, false, fmt.Errorf("%w: it is not what this informerd has left there: the database was put back, or changed by others", cache.ErrCorrupt)
	case !there:
		return m, false, nil
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
		var h hashes
		var keys, values [][]byte
		var sums []int64
		for i, e := range part {
			if last[string(e.Key)] != start+i {
				continue
			}
			value := append(make([]byte, sealSize, sealSize+len(e.Value)), e.Value...)
			seal(e.Key, value, entryVersion)
			h.add(e.Key)
			keys, values, sums = append(keys, e.Key), append(values, value), append(sums, int64(storedSum(value)))
		}
		if !l.change.Reset {
			if err := l.remove(m, keys); err != nil {
				return err
			}
		}
		err := l.exec(`INSERT INTO {entries} (ledger, hash, key, sum, value)
			SELECT $1, k.hash, k.key, k.sum, k.value FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[]) AS k(hash, key, sum, value)`,
			[]byte(l.change.Name), h.all, keys, sums, values)
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
	for part := range slices.Chunk(keys, pgRows) {
		var h hashes
		for _, key := range part {
			h.add(key)
		}
		rows, err := l.tx.Query(l.ctx, l.p.in(`DELETE FROM {entries} WHERE ledger = $1 AND hash = ANY($2::bytea[]) RETURNING sum`), []byte(l.change.Name), h.all)
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
	if p.IsStandby() { // what is there may be another's by now
		return nil, fmt.Errorf("list ledgers: %w", p.away(errStandby))
	}
	ctx, cancel := p.within(0)
	defer cancel()
	var names []string
	err := p.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, p.in(`SELECT name FROM {ledgers} ORDER BY name`))
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		names = nil
		for _, name := range all {
			names = append(names, string(name))
		}
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
	if p.IsStandby() {
		return fmt.Errorf("ledger %q: %w", name, p.away(errStandby))
	}
	if err := checkLedgerName(name); err != nil {
		return err
	}
	w := p.startReading()
	defer w.stop()
	l := pgLedgerLoad{p: p, w: w, name: name, yield: yield}
	err := p.read(w.ctx, l.run)
	switch {
	case err == nil:
		p.has(ledgerStamp(name), l.stamp)
		return nil
	case l.stopped != nil:
		return l.stopped
	}
	return fmt.Errorf("ledger %q: %w", name, err)
}

// pgLedgerLoad is one reading of a ledger.
type pgLedgerLoad struct {
	p       *Postgres
	w       *watchdog
	name    string
	yield   func(cache.LedgerEntry) error
	stopped error // what yield returned
	stamp   int64 // absent: there is none
}

func (l *pgLedgerLoad) run(tx pgx.Tx) error {
	var value []byte
	err := tx.QueryRow(l.w.ctx, l.p.in(`SELECT stamp, meta FROM {ledgers} WHERE name = $1`), []byte(l.name)).Scan(&l.stamp, &value)
	if errors.Is(err, pgx.ErrNoRows) {
		l.stamp = absent
		return nil
	}
	if err != nil {
		return err
	}
	m, err := decodeLedgerMeta(metaKey, value)
	if err != nil {
		return damaged(fmt.Errorf("meta: %w", err))
	}
	return l.entries(tx, m)
}

func (l *pgLedgerLoad) entries(tx pgx.Tx, m *ledgerMeta) error {
	rows, err := tx.Query(l.w.ctx, l.p.in(`SELECT key, value FROM {entries} WHERE ledger = $1 ORDER BY key`), []byte(l.name))
	if err != nil {
		return err
	}
	defer rows.Close()
	var key, value pgtype.DriverBytes // good until the next row
	var found ledgerMeta
	for rows.Next() {
		if found.entries++; found.entries%100 == 0 {
			l.w.alive()
		}
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		body, err := unseal(key, value, entryVersion)
		if err != nil {
			return damaged(fmt.Errorf("entry %x: %w", []byte(key), err))
		}
		found.sum += uint64(storedSum(value))
		if l.stopped = l.yield(cache.LedgerEntry{Key: bytes.Clone(key), Value: bytes.Clone(body)}); l.stopped != nil {
			return errStopped
		}
	}
	switch {
	case rows.Err() != nil:
		return rows.Err()
	case found.entries != m.entries:
		return damaged(fmt.Errorf("%d entries, %d were saved", found.entries, m.entries))
	case found.sum != m.sum:
		return damaged(errors.New("entries are of another commit"))
	}
	return nil
}

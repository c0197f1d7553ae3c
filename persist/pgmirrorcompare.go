package persist

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/informerd/informerd/cache"
)

// whole makes the rows of a resource those of all its objects, by comparison: after a restart
// or an outage most of them are as they are to be.
func (m *pgMirrorSave) whole(row *mirrorRow) error {
	m.p.begins(mirrorStamp(m.change.Spec.Resource), m.stamp)
	if err := m.takeAway(row); err != nil {
		return err
	}
	differing, gone, err := m.differences()
	if err != nil {
		return err
	}
	if m.result.Deleted, err = m.remove(gone); err != nil {
		return err
	}
	_, err = m.write(differing)
	return err
}

// takeAway marks the table of the cluster where the rule leaves out what it did not before.
func (m *pgMirrorSave) takeAway(row *mirrorRow) error {
	if row == nil {
		return nil
	}
	var before mirrorRule
	if err := json.Unmarshal(row.rule, &before); err == nil && !takesAway(before.spec(), &m.change.Spec) {
		return nil
	}
	return m.p.mustSweep(m.ctx, m.tx, m.table)
}

// wantedRow is where an object is among those to be mirrored.
type wantedRow struct {
	hash   []byte
	object int
}

// wanted are the objects in the order in which rows are compared: that of their hashes, which
// does not depend on how a database sorts text.
func (m *pgMirrorSave) wanted() []wantedRow {
	var h hashes
	all := make([]wantedRow, len(m.change.Put))
	for i, o := range m.change.Put {
		all[i] = wantedRow{h.add(mirrorKeyBytes(o.Key())), i}
	}
	slices.SortFunc(all, func(a, b wantedRow) int { return bytes.Compare(a.hash, b.hash) })
	return all
}

// differences are the objects whose rows are not there, or are not as they are to be, and the
// hashes of rows that are too many. The database holds a row against the checksum that it
// was written with, so that it need not be read to find out whether somebody altered it.
func (m *pgMirrorSave) differences() (differing []*cache.Object, gone [][]byte, err error) {
	wanted := m.wanted()
	rows, err := m.tx.Query(m.ctx, m.p.inMirror(`SELECT hash, uid, resource_version, digest, sum IS NOT DISTINCT FROM `+mirrorSum+`
		FROM {`+m.table+`} WHERE cluster = $1 AND "group" = $2 AND resource = $3 ORDER BY hash`), m.key.cluster, m.key.group, m.key.resource)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	var buf []byte
	next := 0
	for rows.Next() {
		var hash, digest pgtype.DriverBytes
		var uid, version string
		var sound bool
		if err := rows.Scan(&hash, &uid, &version, &digest, &sound); err != nil {
			return nil, nil, err
		}
		for ; next < len(wanted) && bytes.Compare(wanted[next].hash, hash) < 0; next++ {
			differing = append(differing, m.change.Put[wanted[next].object])
		}
		if next == len(wanted) || !bytes.Equal(wanted[next].hash, hash) {
			gone = append(gone, bytes.Clone(hash))
			continue
		}
		o := m.change.Put[wanted[next].object]
		next++
		if sound && uid == sqlText(o.UID()) && version == sqlText(o.ResourceVersion()) {
			if buf, err = o.AppendJSON(buf[:0]); err != nil {
				return nil, nil, err
			}
			if bytes.Equal(mirrorDigest(buf), digest) {
				continue
			}
		}
		differing = append(differing, o)
	}
	for ; next < len(wanted); next++ {
		differing = append(differing, m.change.Put[wanted[next].object])
	}
	return differing, gone, rows.Err()
}

// remove deletes rows by their hashes, and returns how many there were.
func (m *pgMirrorSave) remove(hashes [][]byte) (n int, err error) {
	for part := range slices.Chunk(hashes, pgRows) {
		deleted, err := m.exec(`DELETE FROM {`+m.table+`} WHERE cluster = $1 AND "group" = $2 AND resource = $3 AND hash = ANY($4::bytea[])`,
			m.key.cluster, m.key.group, m.key.resource, part)
		if n += deleted; err != nil {
			return n, err
		}
	}
	return n, nil
}

// savepoint runs fn so that what it did is undone if it fails, and the transaction goes on.
func (m *pgMirrorSave) savepoint(fn func() error) error {
	outer := m.tx
	defer func() { m.tx = outer }()
	return pgx.BeginFunc(m.ctx, outer, func(tx pgx.Tx) error {
		m.tx = tx
		return fn()
	})
}

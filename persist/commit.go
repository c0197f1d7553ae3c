package persist

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unique"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/informerd/informerd/cache"
)

// Commit makes all batches and changes of ledgers durable: all or nothing; see
// cache.Snapshots. Of one
// batch, Delete is done before Put. A zero SavedAt becomes now.
//
// A batch without Reset needs a sound snapshot to change, with the dictionaries
// that its records refer to and it does not bring, or what it saved would look
// complete and not be: without one Commit returns cache.ErrNoSnapshot or
// cache.ErrCorrupt, naming the resource, and nothing is saved. After any other
// error, of a full disk for instance, the same batches may be committed again.
// ErrReplaced means that all resources must be saved anew, each with Reset: the
// file was replaced in this Commit, or since the last one by Drop or SaveDocument,
// whose callers cannot do anything about it.
//
// Ledgers are changed in the transaction that makes the batches visible, which also enters
// what was noted of them before (see Note). A change without Reset needs a ledger that is
// sound, or none: without one Commit returns cache.ErrCorrupt, naming it.
func (db *DB) Commit(batches []cache.Batch, ledgers []cache.LedgerChange) error {
	if len(batches) == 0 && len(ledgers) == 0 && db.journal.empty() {
		return nil
	}
	db.writeMu.Lock()
	defer db.writeMu.Unlock()
	err := error(ErrReplaced)
	if !db.replaced {
		err = db.commitLocked(batches, ledgers)
	}
	db.replaced = false
	if err != nil {
		return fmt.Errorf("commit snapshots: %w", err)
	}
	return nil
}

// commitLocked also enters what was noted, which ledgers follow.
func (db *DB) commitLocked(batches []cache.Batch, ledgers []cache.LedgerChange) error {
	if len(ledgers) == 0 && db.journal.empty() {
		return db.commitWith(batches, nil, nil)
	}
	return db.turn(batches, ledgers, false)
}

// turn commits with a turn of the journal. With anew no file of it stays that has notes of
// before.
func (db *DB) turn(batches []cache.Batch, ledgers []cache.LedgerChange, anew bool) error {
	if err := db.writable(); err != nil {
		return err
	}
	t, err := db.journal.turn(db.vault, anew)
	if err != nil {
		return err
	}
	if err := db.commitWith(batches, t.noted.before(ledgers), &t.mark); err != nil {
		db.journal.giveBack(t)
		return err
	}
	db.journal.hasEntered(t, db.vault)
	if err := db.journal.discard(); err != nil && !anew {
		db.options.Log.Warn("files of the journal that are not needed any more cannot be removed", "err", err)
	}
	return nil
}

// commitWith also says, with a mark, what of the journal is in the file.
func (db *DB) commitWith(batches []cache.Batch, ledgers []cache.LedgerChange, mark *journalMark) error {
	changes, aside, vault := make([]*change, len(batches)), db.hasAside(), db.vault
	values := new(arena)
	for i := range batches {
		c, err := newChange(&batches[i], vault, values)
		if err != nil {
			return err
		}
		c.aside = aside
		changes[i] = c
	}
	books, err := newLedgerChanges(ledgers, vault)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.batch.Reset && c.exceeds(db.options.stageBytes) && alone(c, changes) {
			if err := db.stageLocked(c); err != nil {
				return err
			}
		}
	}
	for _, c := range books {
		if err := db.stageLedgerLocked(c, books); err != nil {
			return err
		}
	}
	err = db.writeUnder(vault, func(tx *bbolt.Tx) error {
		values.reset() // the transaction may be run again
		for _, c := range changes {
			if err := c.apply(tx); err != nil {
				return fmt.Errorf("%s: %w", c.resource(), err)
			}
		}
		if mark != nil {
			if err := tx.Bucket(rootBucket).Put(journalKey, mark.encode()); err != nil {
				return err
			}
		}
		return db.applyLedgers(tx, books)
	})
	if err != nil {
		return err
	}
	for _, c := range books {
		if c.change.Reset {
			db.ledgers.mended(c.name)
		}
	}
	for _, c := range changes {
		db.clearDamaged(c.name)
	}
	return nil
}

// writable is why nothing can be written; nil if it may be.
func (db *DB) writable() error {
	if db.options.ReadOnly {
		return ErrReadOnly
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return ErrClosed
	}
	return nil
}

func alone(c *change, changes []*change) bool {
	for _, other := range changes {
		if other != c && bytes.Equal(other.name, c.name) {
			return false
		}
	}
	return true
}

// Drop forgets the snapshot of r, of which free pages may keep parts: see Erase. It works on a damaged one too, at the cost of
// the whole file where nothing less will do: then every snapshot is forgotten.
func (db *DB) Drop(r cache.Resource) error {
	if err := db.drop(r, false); err != nil {
		return fmt.Errorf("drop snapshot of %s: %w", r, err)
	}
	return nil
}

func (db *DB) drop(r cache.Resource, erase bool) error {
	if _, err := resourceName(r); err != nil {
		return err
	}
	db.writeMu.Lock()
	defer db.writeMu.Unlock()
	var name []byte
	err := db.writeLocked(func(tx *bbolt.Tx) (err error) {
		if name, err = db.vault.resourceName(r); err != nil {
			return err
		}
		if err := deleteBucket(bucketAt(tx, rootBucket, stagingBucket), name); err != nil {
			return err
		}
		resources := bucketAt(tx, rootBucket, resourcesBucket)
		if erase && (resources != nil && resources.Bucket(name) != nil || db.hasAside()) {
			if err := markErase(tx); err != nil {
				return err
			}
		}
		return deleteBucket(resources, name)
	})
	if err != nil && !errors.Is(err, ErrReplaced) {
		return err
	}
	db.clearDamaged(name)
	return nil
}

// writeLocked runs fn in a write transaction, again if the file had to be opened
// anew. The caller holds writeMu.
func (db *DB) writeLocked(fn func(*bbolt.Tx) error) error {
	if db.options.ReadOnly {
		return ErrReadOnly
	}
	err := db.tryWrite(fn)
	if errors.Is(err, berrors.ErrInvalidMapping) || errors.Is(err, errUnopened) {
		// bbolt gave up its mapping when it could not make a larger one.
		if err = db.reopen(); err == nil {
			err = db.tryWrite(fn)
		}
	}
	if errors.Is(err, errDamaged) {
		err = db.replace(err)
	}
	db.replaced = db.replaced || errors.Is(err, ErrReplaced)
	return err
}

// writeUnder is writeLocked of what was made with v. Where the file had to be opened
// anew and another has taken its place, nothing of it can be read there.
func (db *DB) writeUnder(v *vault, fn func(*bbolt.Tx) error) error {
	return db.writeLocked(func(tx *bbolt.Tx) error {
		if !v.sameAs(db.vault) {
			return ErrReplaced
		}
		return fn(tx)
	})
}

func (db *DB) tryWrite(fn func(*bbolt.Tx) error) error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.bolt == nil {
		return db.unusable()
	}
	return update(db.bolt, fn)
}

// change is one batch on its way to disk.
type change struct {
	batch *cache.Batch
	vault *vault // of the file it is for
	name  []byte // of the resource's bucket
	order []int  // numbers of the batch's records, as they are stored
	// tokens are those of the records, one after the other; none in a file that is not
	// encrypted.
	tokens []byte
	// values are those of the transaction under way, of other changes, too. It has it to itself
	// while it is staged.
	values *arena
	// staged is set when the records already lie in the staging bucket.
	staged *meta
	// aside says that there is a damaged file that was moved aside.
	aside bool
}

// newChange has the values of its transactions in an arena, which other changes may share.
func newChange(b *cache.Batch, v *vault, values *arena) (*change, error) {
	name, err := v.resourceName(b.Saved.Spec.Resource)
	if err != nil {
		return nil, err
	}
	c := &change{batch: b, vault: v, name: name, order: make([]int, b.Len()), values: values}
	for i := range c.order {
		c.order[i] = i
	}
	// bbolt inserts in key order much faster than in any other.
	if v == nil {
		sortOrder(c.order, func(i, j int) int { return b.Key(i).Compare(b.Key(j)) })
		return c, nil
	}
	if c.tokens, err = c.makeTokens(); err != nil {
		return nil, err
	}
	sortOrder(c.order, func(i, j int) int { return bytes.Compare(c.token(i), c.token(j)) })
	return c, nil
}

// sortOrder sorts what mostly is sorted, as a Reset is whose keys are not encrypted.
func sortOrder(order []int, compare func(i, j int) int) {
	if !isSorted(order, compare) {
		slices.SortStableFunc(order, compare)
	}
}

func isSorted(order []int, compare func(i, j int) int) bool {
	const piece = 256
	var others cache.Yielder
	for start := 0; start < len(order); start += piece {
		if !slices.IsSortedFunc(order[start:min(start+piece+1, len(order))], compare) {
			return false
		}
		others.Yield()
	}
	return true
}

func (c *change) makeTokens() (tokens []byte, err error) {
	place := c.objects().place
	tokens = make([]byte, 0, tokenSize*c.batch.Len())
	var key []byte
	for i := range c.batch.Len() {
		if key, err = appendKey(key[:0], c.batch.Key(i)); err != nil {
			return nil, err
		}
		tokens = c.vault.token(tokens, place, key)
	}
	return tokens, nil
}

// token is the key under which the i-th record is stored; nil if that is its own.
func (c *change) token(i int) []byte {
	if c.vault == nil {
		return nil
	}
	return c.tokens[i*tokenSize : (i+1)*tokenSize]
}

// objects is the shelf of the records.
func (c *change) objects() *shelf { return c.vault.shelf(kindObject, c.name) }

func (c *change) resource() cache.Resource { return c.batch.Saved.Spec.Resource }

// exceeds reports whether the records take more than about limit bytes.
func (c *change) exceeds(limit int) bool {
	n := 0
	for rec := range c.batch.Records() {
		if n += recordSizeHint(&rec); n > limit {
			return true
		}
	}
	return false
}

func (c *change) apply(tx *bbolt.Tx) error {
	resources := bucketAt(tx, rootBucket, resourcesBucket)
	if resources == nil {
		return fmt.Errorf("%w: bucket %s is missing", errDamaged, resourcesBucket)
	}
	b, m, err := c.begin(tx, resources)
	if err != nil {
		return err
	}
	if c.staged == nil {
		if err := c.writeObjects(b, m); err != nil {
			return err
		}
	}
	if err := c.writeDictionaries(b, m); err != nil {
		return err
	}
	return c.writeMeta(b, m)
}

// begin returns the resource's bucket and what was saved of its records.
func (c *change) begin(tx *bbolt.Tx, resources *bbolt.Bucket) (*bbolt.Bucket, *meta, error) {
	if c.batch.Reset {
		return c.reset(tx, resources)
	}
	b := resources.Bucket(c.name)
	if b == nil {
		return nil, nil, cache.ErrNoSnapshot
	}
	m, err := readMeta(c.vault, c.name, b)
	if err != nil {
		return nil, nil, corrupt(c.resource(), err)
	}
	return b, m, nil
}

func (c *change) reset(tx *bbolt.Tx, resources *bbolt.Bucket) (*bbolt.Bucket, *meta, error) {
	if c.erases(resources.Bucket(c.name), c.aside) {
		if err := markErase(tx); err != nil {
			return nil, nil, err
		}
	}
	b, err := resources.CreateBucketIfNotExists(c.name)
	if err != nil {
		return nil, nil, err
	}
	if err := deleteBucket(b, objectsBucket); err != nil {
		return nil, nil, err
	}
	m := new(meta)
	if c.staged != nil {
		*m = *c.staged // a copy: the transaction may be run again
	}
	if m.DictionarySum, err = c.keepDictionaries(b); err != nil || c.staged == nil {
		return b, m, err
	}
	staging := bucketAt(tx, rootBucket, stagingBucket)
	if staging.Bucket(c.name) == nil {
		return nil, nil, errUnstaged
	}
	if err := staging.Bucket(c.name).MoveBucket(objectsBucket, b); err != nil {
		return nil, nil, err
	}
	return b, m, staging.DeleteBucket(c.name)
}

// keepDictionaries returns the sum of the dictionaries that records of the batch may go
// on using. Without a meta that says what it should be they are not to be trusted.
func (c *change) keepDictionaries(b *bbolt.Bucket) (sum uint64, err error) {
	if c.vault == nil {
		return 0, nil
	}
	if m, err := readMeta(c.vault, c.name, b); err == nil {
		return m.DictionarySum, nil
	}
	return 0, deleteBucket(b, dictionariesBucket)
}

// writeObjects deletes and puts, and keeps count and sum of what is there.
func (c *change) writeObjects(b *bbolt.Bucket, m *meta) error {
	objects, err := b.CreateBucketIfNotExists(objectsBucket)
	if err != nil {
		return err
	}
	w := objectWriter{bucket: objects, shelf: c.objects(), meta: m, indexes: newIndexTable(slices.Clone(m.Indexes)), values: c.values}
	if c.batch.Reset {
		objects.FillPercent = 1 // in key order nothing comes between any more
	} else {
		for _, key := range c.batch.Delete {
			if err := w.delete(key); err != nil {
				return err
			}
		}
	}
	for _, i := range c.order {
		rec := c.batch.RecordIn(i, &w.terms)
		if err := w.put(&rec, c.token(i)); err != nil {
			return err
		}
	}
	m.Indexes = w.indexes.names
	return nil
}

// objectWriter changes the records of one resource in one transaction.
type objectWriter struct {
	bucket  *bbolt.Bucket
	shelf   *shelf
	meta    *meta
	indexes *indexTable
	values  *arena
	terms   []unique.Handle[cache.Term] // of the last record
	key     []byte                      // of the last record
	stored  []byte                      // the key it is stored under
	// fresh says that the bucket held nothing before, and that records come in the order of
	// their stored keys: behind last, that of the last one put, there is nothing.
	fresh bool
	last  []byte
}

// put writes rec, of which the token is given if the file has one.
func (w *objectWriter) put(rec *cache.Record, token []byte) error {
	if err := w.forget(rec.Key, token); err != nil {
		return err
	}
	value, err := w.encode(rec)
	if err != nil {
		return err
	}
	w.meta.Objects++
	w.meta.Sum ^= w.shelf.sum(value)
	w.last = append(w.last[:0], w.stored...)
	return w.bucket.Put(w.stored, value)
}

// encode returns the value of rec as it is stored. What is sealed has memory of its own.
func (w *objectWriter) encode(rec *cache.Record) ([]byte, error) {
	room := w.values.room(sealSize + recordSizeHint(rec))
	value := appendRecord(room, w.key, rec, w.indexes)
	if w.shelf.vault == nil && cap(value) == cap(room) {
		w.values.take(len(value))
	}
	return w.shelf.seal(w.stored, w.key, value)
}

func (w *objectWriter) delete(key cache.Key) error {
	if err := w.forget(key, nil); err != nil {
		return err
	}
	return w.bucket.Delete(w.stored)
}

// forget takes what is under key out of count and sum.
func (w *objectWriter) forget(key cache.Key, token []byte) (err error) {
	if w.key, err = appendKey(w.key[:0], key); err != nil {
		return err
	}
	if w.stored = token; token == nil {
		w.stored = w.shelf.stored(w.key)
	}
	if w.fresh && w.last != nil && bytes.Compare(w.stored, w.last) > 0 {
		return nil
	}
	if old := w.bucket.Get(w.stored); old != nil {
		w.meta.Objects--
		w.meta.Sum ^= w.shelf.sum(old)
	}
	return nil
}

// writeDictionaries adds the new ones and removes the retired ones, and after a
// Reset all that no record refers to.
func (c *change) writeDictionaries(b *bbolt.Bucket, m *meta) error {
	used := make(map[uint32]bool)
	for i := range c.batch.Len() {
		used[c.batch.Dictionary(i)] = true
	}
	delete(used, 0)
	if len(used) == 0 && len(c.batch.Saved.Dictionaries) == 0 && len(c.batch.Retired) == 0 && b.Bucket(dictionariesBucket) == nil {
		return nil
	}
	dictionaries, err := b.CreateBucketIfNotExists(dictionariesBucket)
	if err != nil {
		return err
	}
	shelf := c.vault.shelf(kindDictionary, c.name)
	for _, id := range slices.Sorted(maps.Keys(c.batch.Saved.Dictionaries)) {
		data := c.batch.Saved.Dictionaries[id]
		if id == 0 {
			return errors.New("dictionary 0 stands for none")
		}
		key, value := encodeDictionary(id, data)
		before := dictionaries.Get(key)
		if before == nil {
			m.Dictionaries++
		}
		m.changeDictionary(shelf, before)
		if err := shelf.put(dictionaries, key, value); err != nil {
			return err
		}
		m.changeDictionary(shelf, dictionaries.Get(key))
	}
	for id := range used {
		if dictionaries.Get(dictionaryKey(id)) == nil {
			// Committed again the batch would fail again: all is to be saved anew.
			return corrupt(c.resource(), fmt.Errorf("a record refers to dictionary %d, which is not saved", id))
		}
	}
	return c.tidyDictionaries(dictionaries, m, used)
}

// changeDictionary takes a value that is going into the sum of the dictionaries, or out
// of it. A file that is not encrypted has no such sum.
func (m *meta) changeDictionary(s *shelf, sealed []byte) {
	if s.vault != nil && sealed != nil {
		m.DictionarySum ^= s.sum(sealed)
	}
}

// tidyDictionaries removes those that are retired, and after a Reset all that no record refers
// to.
func (c *change) tidyDictionaries(dictionaries *bbolt.Bucket, m *meta, used map[uint32]bool) error {
	shelf := c.vault.shelf(kindDictionary, c.name)
	remove := func(key []byte) error {
		value := dictionaries.Get(key)
		if value == nil {
			return nil
		}
		m.changeDictionary(shelf, value)
		m.Dictionaries--
		return dictionaries.Delete(key)
	}
	if !c.batch.Reset {
		for _, id := range c.batch.Retired {
			if _, brought := c.batch.Saved.Dictionaries[id]; brought || used[id] {
				continue
			}
			if err := remove(dictionaryKey(id)); err != nil {
				return err
			}
		}
		return nil
	}
	var stale [][]byte
	m.Dictionaries = 0
	err := dictionaries.ForEach(func(k, _ []byte) error {
		m.Dictionaries++
		id, err := parseDictionaryKey(k)
		if _, brought := c.batch.Saved.Dictionaries[id]; err != nil || !brought && !used[id] {
			stale = append(stale, bytes.Clone(k))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range stale {
		if err := remove(k); err != nil {
			return err
		}
	}
	return nil
}

func (c *change) writeMeta(b *bbolt.Bucket, m *meta) error {
	s := &c.batch.Saved
	m.Spec = s.Spec
	m.ResourceVersions = s.ResourceVersions
	m.Terms = s.Terms
	m.ClusterUID = s.ClusterUID
	m.ServerVersion = s.ServerVersion
	m.Lineage = s.Lineage
	if m.SavedAt = s.SavedAt; m.SavedAt.IsZero() {
		m.SavedAt = time.Now()
	}
	m.SavedAt, m.ProvenAt = m.SavedAt.UTC(), s.ProvenAt.UTC()
	value, err := encodeMeta(metaKey, m)
	if err != nil {
		return err
	}
	return c.vault.shelf(kindMeta, c.name).put(b, metaKey, value)
}

package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// Saved lists the snapshots held, in the order of their resources. One whose
// description is damaged is left out: Load says what is wrong with it.
func (db *DB) Saved() ([]cache.Saved, error) {
	var all []cache.Saved
	err := db.view(func(tx *bbolt.Tx) error {
		return forEachResource(tx, func(name []byte, b *bbolt.Bucket) error {
			if db.damage(name) != nil {
				return nil
			}
			s, err := loadSaved(db.vault, name, b)
			if err != nil {
				db.setDamaged(name, err) // said once
				db.options.Log.Warn("snapshot left out, its description is damaged", "gvr", db.vault.describe(name), "err", err)
				return nil
			}
			all = append(all, s.saved)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", public(err))
	}
	slices.SortFunc(all, func(a, b cache.Saved) int { return a.Spec.Resource.Compare(b.Spec.Resource) })
	return all, nil
}

// public hides errDamaged behind the error callers know.
func public(err error) error {
	if errors.Is(err, errDamaged) {
		return fmt.Errorf("%w: %w", cache.ErrCorrupt, err)
	}
	return err
}

func forEachResource(tx *bbolt.Tx, fn func(name []byte, b *bbolt.Bucket) error) error {
	resources := bucketAt(tx, rootBucket, resourcesBucket)
	if resources == nil {
		return fmt.Errorf("%w: bucket %s is missing", errDamaged, resourcesBucket)
	}
	return resources.ForEachBucket(func(name []byte) error {
		return fn(name, resources.Bucket(name))
	})
}

// Load reads the snapshot of r; see cache.Snapshots. A read transaction is open
// while yield runs, so yield must not call the DB. An error of yield ends the
// Load and is returned as it is.
func (db *DB) Load(r cache.Resource, yield func(cache.Record) error) (cache.Saved, error) {
	return db.load(context.Background(), r, nil, yield)
}

// load loads the records that may have a term; nil: all. It ends when ctx does.
func (db *DB) load(ctx context.Context, r cache.Resource, wanted *cache.Term, yield func(cache.Record) error) (cache.Saved, error) {
	if _, err := resourceName(r); err != nil {
		return cache.Saved{}, err
	}
	var saved cache.Saved
	var stopped error // what yield returned
	var yielding bool
	err := db.view(func(tx *bbolt.Tx) error {
		name, err := db.vault.resourceName(r)
		if err == nil {
			err = db.damage(name)
		}
		if err != nil {
			return err
		}
		b := bucketAt(tx, rootBucket, resourcesBucket, name)
		if b == nil {
			return cache.ErrNoSnapshot
		}
		s, err := loadSaved(db.vault, name, b)
		if err != nil {
			return err
		}
		saved = s.saved
		s.wanted = newNeedle(wanted, s.Indexes)
		return s.loadObjects(ctx, b, func(rec cache.Record) error {
			yielding = true
			stopped = yield(rec)
			yielding = false
			return stopped
		})
	})
	switch {
	case yielding:
		panic(err) // yield's own panic is not damage of the file
	case err == nil:
		return saved, nil
	case stopped != nil:
		return cache.Saved{}, stopped
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return cache.Saved{}, err
	case errors.Is(err, cache.ErrNoSnapshot), errors.Is(err, ErrClosed), errors.Is(err, ErrReplaced):
		return cache.Saved{}, fmt.Errorf("%s: %w", r, err)
	}
	return cache.Saved{}, corrupt(r, err)
}

// savedMeta is the description of one resource, read and checked.
type savedMeta struct {
	*meta
	saved cache.Saved
	vault *vault
	name  []byte // of its bucket
	// wanted is what a record must contain to be made one; nil: nothing.
	wanted *needle
}

// newShelf is the shelf of its records.
func (s *savedMeta) newShelf() *shelf { return s.vault.shelf(kindObject, s.name) }

func loadSaved(v *vault, name []byte, b *bbolt.Bucket) (savedMeta, error) {
	m, err := readMeta(v, name, b)
	if err != nil {
		return savedMeta{}, err
	}
	s := savedMeta{meta: m, saved: m.saved(), vault: v, name: name}
	var sum uint64
	if s.saved.Dictionaries, sum, err = loadDictionaries(v.shelf(kindDictionary, name), b); err != nil {
		return savedMeta{}, err
	}
	if n := len(s.saved.Dictionaries); n != m.Dictionaries {
		return savedMeta{}, fmt.Errorf("%d dictionaries, %d were saved", n, m.Dictionaries)
	}
	if v != nil && sum != m.DictionarySum {
		return savedMeta{}, errors.New("dictionaries are of another commit")
	}
	return s, nil
}

func readMeta(v *vault, name []byte, b *bbolt.Bucket) (*meta, error) {
	value := b.Get(metaKey)
	if value == nil {
		return nil, errors.New("meta is missing")
	}
	key, value, err := v.shelf(kindMeta, name).open(metaKey, value)
	if err != nil {
		return nil, fmt.Errorf("meta: %w", err)
	}
	m, err := decodeMeta(key, value)
	if err != nil {
		return nil, fmt.Errorf("meta: %w", err)
	}
	if own, err := v.resourceName(m.Spec.Resource); err != nil || !bytes.Equal(own, name) {
		return nil, fmt.Errorf("meta is that of %s", m.Spec.Resource)
	}
	return m, nil
}

// loadDictionaries also returns the sum of all.
func loadDictionaries(s *shelf, b *bbolt.Bucket) (all map[uint32][]byte, sum uint64, err error) {
	dictionaries := b.Bucket(dictionariesBucket)
	if dictionaries == nil {
		return nil, 0, nil
	}
	all = make(map[uint32][]byte)
	err = dictionaries.ForEach(func(k, v []byte) error {
		key, value, err := s.open(k, v)
		sum ^= s.sum(v)
		if err != nil {
			return fmt.Errorf("dictionary %x: %w", k, err)
		}
		id, data, err := decodeDictionary(key, value)
		if err != nil {
			return fmt.Errorf("dictionary %x: %w", k, err)
		}
		all[id] = data
		return nil
	})
	return all, sum, err
}

// loadObjects yields every record, in the order of their keys. Those that are wanted of many come
// as they are stored: whoever has enough of them need not wait for all to be in memory.
func (s *savedMeta) loadObjects(ctx context.Context, b *bbolt.Bucket, yield func(cache.Record) error) error {
	if !s.newShelf().hidden || s.wanted != nil {
		return s.eachObject(ctx, b, yield)
	}
	// They lie in the order of their tokens, which is none.
	var all []cache.Record
	err := s.eachObject(ctx, b, func(rec cache.Record) error {
		all = append(all, rec)
		return nil
	})
	if err != nil {
		return err
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return all[i].Key.Compare(all[j].Key) })
	for _, i := range order {
		if err := yield(all[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachObject yields every record, as they are stored.
func (s *savedMeta) eachObject(ctx context.Context, b *bbolt.Bucket, yield func(cache.Record) error) error {
	r := reading{ctx: ctx, saved: s, yield: yield}
	return r.read(b.Bucket(objectsBucket))
}

func (m *meta) complete(count int, sum uint64) error {
	if count != m.Objects {
		return fmt.Errorf("%d objects, %d were saved", count, m.Objects)
	}
	if sum != m.Sum {
		return fmt.Errorf("checksum of all objects is %08x, %08x was saved", sum, m.Sum)
	}
	return nil
}

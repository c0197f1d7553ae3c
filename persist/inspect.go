package persist

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/bbolt"

	"github.com/informerd/informerd/cache"
)

// FileInfo says what a file holds.
type FileInfo struct {
	Path      string `json:"path"`
	Format    uint32 `json:"format"`
	FileBytes int64  `json:"fileBytes"`
	FreeBytes int64  `json:"freeBytes"`
	// EncryptionKey is the name of the key that the file is encrypted with, "" if it is
	// not. Without that key nothing is known of what it holds.
	EncryptionKey string         `json:"encryptionKey,omitempty"`
	Documents     int            `json:"documents"` // of API servers about themselves
	Resources     []ResourceInfo `json:"resources"`
	Ledgers       []LedgerInfo   `json:"ledgers,omitempty"`
	// Journal is what lies beside the file, and is entered into it at the next Open. Nil:
	// nothing does.
	Journal *JournalInfo `json:"journal,omitempty"`
}

// ResourceInfo says what a file holds of one resource.
type ResourceInfo struct {
	Cluster          string            `json:"cluster,omitempty"`
	Group            string            `json:"group,omitempty"`
	Version          string            `json:"version"`
	Resource         string            `json:"resource"`
	Kind             string            `json:"kind,omitempty"`
	Objects          int               `json:"objects"`
	Bytes            int64             `json:"bytes"` // keys and records, without free space in pages
	ResourceVersions map[string]string `json:"resourceVersions,omitempty"`
	SavedAt          time.Time         `json:"savedAt,omitzero"`
	Dictionaries     map[uint32]int    `json:"dictionaries,omitempty"` // sizes in bytes, by id
	// Templates are objects that siblings of theirs are saved beside, and their bytes.
	Templates     int      `json:"templates,omitempty"`
	TemplateBytes int64    `json:"templateBytes,omitempty"`
	ClusterUID    string   `json:"clusterUID,omitempty"`
	ServerVersion string   `json:"serverVersion,omitempty"`
	Indexes       []string `json:"indexes,omitempty"`
	// Error says why the resource cannot be described. What lies in its records
	// is for Verify to say.
	Error string `json:"error,omitempty"`
}

// Info describes the file at path. It fails for a file that is in use, or of
// which no resource can be found. Without keys, of an encrypted file only its sizes
// and the name of its key are known.
func Info(path string, keys *Keyring) (*FileInfo, error) {
	s, err := inspect(path, keys)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.found.whole != nil {
		return nil, fmt.Errorf("%s: %w", path, asCorrupt(s.found.whole))
	}
	info := &FileInfo{
		Path:      path,
		FileBytes: s.size,
		FreeBytes: int64(s.found.free) * int64(s.bolt.Info().PageSize),
		Resources: []ResourceInfo{},
	}
	if s.lock != nil {
		info.EncryptionKey = s.lock.key
	}
	err = view(s.bolt, func(tx *bbolt.Tx) error {
		if info.Format, err = decodeFormat(tx.Bucket(rootBucket).Get(formatKey)); err != nil {
			return err
		}
		if s.locked() {
			return nil
		}
		if s.found.rest == nil { // else it may be theirs
			err := forEachDocument(tx, s.vault, func([]byte, cache.Document, error) { info.Documents++ })
			if err != nil {
				return err
			}
		}
		err := forEachResource(tx, func(name []byte, b *bbolt.Bucket) error {
			info.Resources = append(info.Resources, s.describe(name, b))
			return nil
		})
		if err != nil {
			return err
		}
		info.Ledgers, err = s.describeLedgers(tx)
		info.Journal = s.describeJournal(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, public(err))
	}
	return info, nil
}

// inspect opens a file of ours for reading, and unlocks it if there are keys.
func inspect(path string, keys *Keyring) (*source, error) {
	s, err := openSource(Options{Path: path, Log: slog.New(slog.DiscardHandler)}.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, public(err))
	}
	err = s.layout
	if err == nil && s.lock != nil && keys != nil {
		s.vault, err = keys.vaultOf(s.lock)
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// locked reports whether s is encrypted and was not unlocked.
func (s *source) locked() bool { return s.lock != nil && s.vault == nil }

// read reads what is saved of a resource, but for its objects. Its name is known of a
// damaged one, too, unless it is encrypted.
func (s *source) read(name []byte, b *bbolt.Bucket) (r cache.Resource, saved savedMeta, err error) {
	if s.vault == nil {
		if r, err = parseResourceName(name); err != nil {
			return r, saved, err
		}
	}
	if err = s.found.parts[string(name)]; err == nil {
		saved, err = loadSaved(s.vault, name, b)
	}
	if err == nil {
		r = saved.Spec.Resource
	}
	return r, saved, err
}

func (s *source) describe(name []byte, b *bbolt.Bucket) ResourceInfo {
	r, saved, err := s.read(name, b)
	info := ResourceInfo{Cluster: r.Cluster, Group: r.GVR.Group, Version: r.GVR.Version, Resource: r.GVR.Resource}
	if r.GVR.Empty() {
		info.Resource = s.vault.describe(name)
	}
	if err != nil {
		info.Error = err.Error()
		return info
	}
	info.Kind = saved.Spec.Kind
	info.Objects = saved.Objects
	info.ResourceVersions = saved.ResourceVersions
	info.SavedAt = saved.SavedAt
	info.ClusterUID, info.ServerVersion = saved.ClusterUID, saved.ServerVersion
	info.Indexes = saved.Indexes
	info.Dictionaries = make(map[uint32]int)
	for id, data := range saved.saved.Dictionaries {
		if cache.IsTemplate(data) {
			info.Templates++
			info.TemplateBytes += int64(len(data))
			continue
		}
		info.Dictionaries[id] = len(data)
	}
	if objects := b.Bucket(objectsBucket); objects != nil {
		_ = objects.ForEach(func(k, v []byte) error {
			info.Bytes += int64(len(k) + len(v))
			return nil
		})
	}
	return info
}

// Report is what Verify found.
type Report struct {
	FileBytes int64
	Resources int
	Objects   int
	Ledgers   int
	Entries   int // of all ledgers
	Problems  []Problem
}

// Problem is one thing that is damaged.
type Problem struct {
	// Resource it belongs to, nil for the file as a whole.
	Resource *cache.Resource
	// Key of the object it belongs to, if it does.
	Key *cache.Key
	Err error
}

func (p Problem) String() string {
	switch {
	case p.Resource == nil:
		return p.Err.Error()
	case p.Key == nil:
		return fmt.Sprintf("%s: %v", p.Resource, p.Err)
	}
	return fmt.Sprintf("%s: object %s: %v", p.Resource, p.Key, p.Err)
}

// Verify reads everything in the file at path and reports all that is damaged.
// The error is for a file that cannot be read at all: missing, in use, of
// another program, of a newer informerd, encrypted with a key that is not at hand.
func Verify(path string, keys *Keyring) (*Report, error) {
	s, err := inspect(path, keys)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.locked() {
		_, err := keys.vaultOf(s.lock)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	report := &Report{FileBytes: s.size}
	if s.found.whole != nil {
		report.add(nil, nil, s.found.whole)
		return report, nil
	}
	if s.found.rest != nil {
		report.add(nil, nil, s.found.rest)
	}
	err = view(s.bolt, func(tx *bbolt.Tx) error {
		if s.found.sound() {
			// bbolt's own check survives nothing that ours has not ruled out.
			for err := range tx.Check() {
				report.add(nil, nil, err)
			}
		}
		err := forEachResource(tx, func(name []byte, b *bbolt.Bucket) error {
			s.verify(report, name, b)
			return nil
		})
		if err == nil {
			err = s.verifyLedgers(report, tx)
		}
		if j := s.describeJournal(path); j != nil && j.Error != "" {
			report.add(nil, nil, errors.New(j.Error))
		}
		if err != nil || s.found.rest != nil {
			return err
		}
		return forEachDocument(tx, s.vault, func(stored []byte, _ cache.Document, err error) {
			if err != nil {
				report.add(nil, nil, fmt.Errorf("document %q: %w", stored, err))
			}
		})
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, public(err))
	}
	return report, nil
}

func (r *Report) add(resource *cache.Resource, key *cache.Key, err error) {
	r.Problems = append(r.Problems, Problem{resource, key, err})
}

// verify adds what is wrong with one resource, going on after each problem.
func (s *source) verify(report *Report, name []byte, b *bbolt.Bucket) {
	report.Resources++
	r, saved, err := s.read(name, b)
	if r.GVR.Empty() {
		report.add(nil, nil, fmt.Errorf("resource %s: %w", s.vault.describe(name), err))
		return
	}
	if err != nil {
		report.add(&r, nil, err)
		return
	}
	var count int
	var sum uint64
	before := len(report.Problems)
	reader := saved.newReader()
	if objects := b.Bucket(objectsBucket); objects != nil {
		c := objects.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			count++
			sum ^= reader.shelf.sum(v)
			if _, err := reader.decode(k, v); err != nil {
				key := parseKey(k)
				if s.vault != nil {
					key = cache.Key{Name: s.vault.describe(k)}
				}
				report.add(&r, &key, err)
			}
		}
	}
	report.Objects += count
	if err := saved.complete(count, sum); err != nil && len(report.Problems) == before {
		report.add(&r, nil, err)
	}
}

package replica

import (
	"maps"
	"slices"
	"sync"

	"github.com/informerd/informerd/cache"
)

// memory is Snapshots in memory, which can be made to fail.
type memory struct {
	mu      sync.Mutex
	saved   map[cache.Resource]cache.Saved
	records map[cache.Resource]map[cache.Key]cache.Record
	ledgers map[string]map[string]string
	fail    error
	commits int // of copies
	notes   int // of ledgers alone
	// committing is called before a commit, if it is set.
	committing func()
	// dropping is called before a snapshot is dropped, if it is set.
	dropping func(cache.Resource)
}

func newMemory() *memory {
	return &memory{saved: map[cache.Resource]cache.Saved{}, records: map[cache.Resource]map[cache.Key]cache.Record{}, ledgers: map[string]map[string]string{}}
}

func (m *memory) Saved() (out []cache.Saved, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.saved)), nil
}

func (m *memory) Load(r cache.Resource, yield func(cache.Record) error) (cache.Saved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved, ok := m.saved[r]
	if !ok {
		return cache.Saved{}, cache.ErrNoSnapshot
	}
	for _, k := range slices.SortedFunc(maps.Keys(m.records[r]), cache.Key.Compare) {
		if err := yield(m.records[r][k]); err != nil {
			return cache.Saved{}, err
		}
	}
	return saved, nil
}

func (m *memory) Commit(batches []cache.Batch, ledgers []cache.LedgerChange) error {
	if m.committing != nil {
		m.committing()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	if len(batches)+len(ledgers) > 0 {
		m.commits++
	}
	m.change(ledgers)
	for _, b := range batches {
		r := b.Saved.Spec.Resource
		dictionaries := maps.Clone(m.saved[r].Dictionaries)
		if !b.Reset && m.records[r] == nil {
			return cache.ErrNoSnapshot
		}
		if b.Reset {
			m.records[r], dictionaries = map[cache.Key]cache.Record{}, nil
		}
		if dictionaries == nil {
			dictionaries = map[uint32][]byte{}
		}
		maps.Copy(dictionaries, b.Saved.Dictionaries)
		for _, id := range b.Retired {
			delete(dictionaries, id)
		}
		for rec := range b.Records() {
			m.records[r][rec.Key] = rec
		}
		for _, k := range b.Delete {
			delete(m.records[r], k)
		}
		saved := b.Saved
		saved.Dictionaries, saved.Objects = dictionaries, len(m.records[r])
		m.saved[r] = saved
	}
	return nil
}

func (m *memory) Note(ledgers []cache.LedgerChange) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.notes++
	m.change(ledgers)
	return nil
}

func (m *memory) change(ledgers []cache.LedgerChange) {
	for _, c := range ledgers {
		if c.Reset || m.ledgers[c.Name] == nil {
			m.ledgers[c.Name] = map[string]string{}
		}
		for _, k := range c.Delete {
			delete(m.ledgers[c.Name], string(k))
		}
		for _, e := range c.Put {
			m.ledgers[c.Name][string(e.Key)] = string(e.Value)
		}
	}
}

func (m *memory) Drop(r cache.Resource) error {
	if m.dropping != nil {
		m.dropping(r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.saved, r)
	delete(m.records, r)
	return nil
}

func (m *memory) Erase(r cache.Resource) error { return m.Drop(r) }

func (m *memory) Sweep() error { return nil }

// failing makes commits fail with err, nil for none.
func (m *memory) failing(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

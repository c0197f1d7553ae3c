package persist

import (
	"maps"
	"slices"

	"github.com/informerd/informerd/cache"
)

// notes are changes of ledgers that follow each other, made one for each ledger.
type notes map[string]*ledgerNote

// ledgerNote is what becomes of one ledger.
type ledgerNote struct {
	reset, erase bool
	// there says that the ledger is one afterwards, though it may be empty.
	there bool
	// entries are the values by key; nil: the key is removed.
	entries map[string][]byte
}

// add lets c follow. The notes hold on to its values.
func (n notes) add(c *cache.LedgerChange) {
	of := n[c.Name]
	if of == nil || c.Reset {
		erase := of != nil && of.erase // what it held may be in the snapshot file
		of = &ledgerNote{reset: c.Reset, erase: erase, entries: make(map[string][]byte)}
		n[c.Name] = of
	}
	of.erase = of.erase || c.Erase
	of.there = of.there || !c.Reset || len(c.Put) > 0
	for _, key := range c.Delete {
		if of.reset {
			delete(of.entries, string(key))
		} else {
			of.entries[string(key)] = nil
		}
	}
	for _, e := range c.Put {
		value := e.Value
		if value == nil {
			value = []byte{}
		}
		of.entries[string(e.Key)] = value
	}
}

// addAll lets newer ones follow.
func (n notes) addAll(newer notes) {
	for _, c := range newer.changes() {
		n.add(&c)
	}
}

// changes are one for each ledger, by name; two where one is begun anew and has nothing.
func (n notes) changes() []cache.LedgerChange {
	all := make([]cache.LedgerChange, 0, len(n))
	for _, name := range slices.Sorted(maps.Keys(n)) {
		of := n[name]
		c := cache.LedgerChange{Name: name, Reset: of.reset, Erase: of.erase}
		for key, value := range of.entries {
			if value == nil {
				c.Delete = append(c.Delete, []byte(key))
			} else {
				c.Put = append(c.Put, cache.LedgerEntry{Key: []byte(key), Value: value})
			}
		}
		all = append(all, c)
		if of.reset && of.there && len(c.Put) == 0 {
			all = append(all, cache.LedgerChange{Name: name})
		}
	}
	return all
}

// before are the changes that newer ones follow; none of a ledger that those begin anew, which
// may be a damaged one.
func (n notes) before(newer []cache.LedgerChange) []cache.LedgerChange {
	newer = slices.Clone(newer)
	older := slices.DeleteFunc(n.changes(), func(c cache.LedgerChange) (begunAnew bool) {
		for i := range newer {
			if newer[i].Name == c.Name && newer[i].Reset {
				newer[i].Erase = newer[i].Erase || c.Erase
				begunAnew = true
			}
		}
		return begunAnew
	})
	return append(older, newer...)
}

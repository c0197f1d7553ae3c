package persist

import (
	"fmt"

	"go.etcd.io/bbolt"
)

// LedgerInfo says what a file holds of one ledger.
type LedgerInfo struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"` // keys and entries, without free space in pages
	// Error says why the ledger cannot be described. What lies in its entries is for
	// Verify to say.
	Error string `json:"error,omitempty"`
}

func (s *source) describeLedgers(tx *bbolt.Tx) (all []LedgerInfo, err error) {
	if s.found.ledgers != nil {
		return []LedgerInfo{{Name: "all", Error: s.found.ledgers.Error()}}, nil
	}
	err = forEachLedger(tx, func(stored []byte, b *bbolt.Bucket) error {
		all = append(all, s.describeLedger(stored, b))
		return nil
	})
	return all, err
}

func (s *source) describeLedger(stored []byte, b *bbolt.Bucket) LedgerInfo {
	m, err := s.readLedger(stored, b)
	if err != nil {
		return LedgerInfo{Name: s.ledgerOf(stored), Error: err.Error()}
	}
	info := LedgerInfo{Name: m.name, Entries: int(m.entries)}
	_ = forEachEntry(b, func(stored, sealed []byte) error {
		info.Bytes += int64(len(stored) + len(sealed))
		return nil
	})
	return info
}

// ledgerOf names a ledger that cannot be read, as well as it can.
func (s *source) ledgerOf(stored []byte) string {
	if s.vault == nil {
		return string(stored)
	}
	return s.vault.describeLedger(stored)
}

// readLedger reads what is said of a ledger's entries.
func (s *source) readLedger(stored []byte, b *bbolt.Bucket) (*ledgerMeta, error) {
	if err := s.found.ledgerParts[string(stored)]; err != nil {
		return nil, err
	}
	return readLedgerMeta(s.vault, stored, b)
}

// verifyLedgers adds what is wrong with them, going on after each problem.
func (s *source) verifyLedgers(report *Report, tx *bbolt.Tx) error {
	if s.found.ledgers != nil {
		report.add(nil, nil, fmt.Errorf("all ledgers: %w", s.found.ledgers))
		return nil
	}
	return forEachLedger(tx, func(stored []byte, b *bbolt.Bucket) error {
		report.Ledgers++
		for _, err := range s.verifyLedger(report, stored, b) {
			report.add(nil, nil, fmt.Errorf("ledger %q: %w", s.ledgerOf(stored), err))
		}
		return nil
	})
}

func (s *source) verifyLedger(report *Report, stored []byte, b *bbolt.Bucket) (problems []error) {
	m, err := s.readLedger(stored, b)
	if err != nil {
		return []error{err}
	}
	var count, sum uint64
	shelf := s.vault.shelf(kindEntry, stored)
	err = forEachEntry(b, func(key, sealed []byte) error {
		count++
		sum ^= shelf.sum(sealed)
		if _, err := decodeEntry(shelf, key, sealed); err != nil {
			problems = append(problems, fmt.Errorf("entry %q: %w", key, err))
		}
		return nil
	})
	report.Entries += int(count)
	if err == nil && len(problems) == 0 {
		err = m.complete(count, sum)
	}
	if err != nil {
		problems = append(problems, err)
	}
	return problems
}

// JournalInfo says what a journal holds that its file does not.
type JournalInfo struct {
	Ledgers int `json:"ledgers"`
	Entries int `json:"entries"` // to be written or removed
	// Error says why notes in it are lost.
	Error string `json:"error,omitempty"`
}

func (s *source) describeJournal(path string) *JournalInfo {
	found, err := s.noted(path, s.vault)
	if err == nil && len(found) == 0 {
		return nil
	}
	info := &JournalInfo{Ledgers: len(found)}
	for _, of := range found {
		info.Entries += len(of.entries)
	}
	if err != nil {
		info.Error = err.Error()
	}
	return info
}

package persist

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"errors"
)

// Kinds of what is encrypted. They are part of what binds a value to its place.
const (
	kindResource   = 'r'
	kindMeta       = 'm'
	kindDictionary = 'd'
	kindObject     = 'o'
	kindDocument   = 't'
	kindLedger     = 'l'
	kindLedgerMeta = 'c'
	kindEntry      = 'e'
	kindNote       = 'n'
)

// shelf is one place where keys and values lie: the objects of one resource, its
// dictionaries, its meta, the entries of one ledger, its meta, or the documents. It turns keys and values, as codec.go makes
// them, into what is written to the file, and back. A shelf of a file that is not
// encrypted returns what it is given. It belongs to one goroutine.
type shelf struct {
	vault *vault
	// place begins the additional data of the values, and what tokens are made of.
	place []byte
	// hidden says that keys are names: the file has tokens in their place.
	hidden bool

	additional, text []byte // reused
	block            [aes.BlockSize]byte
}

// shelf returns that of one kind, of the resource or ledger with the given bucket name;
// nil for what is of none.
func (v *vault) shelf(kind byte, owner []byte) *shelf {
	if v == nil {
		return &shelf{}
	}
	return &shelf{
		vault: v, place: append([]byte{kind}, owner...),
		hidden: kind == kindObject || kind == kindDocument || kind == kindEntry,
	}
}

// stored is the key under which key is found in the file.
func (s *shelf) stored(key []byte) []byte {
	if !s.hidden {
		return key
	}
	return s.vault.token(nil, s.place, key)
}

// seal returns what to write for value under its stored key: value itself, or a slice
// of its own.
func (s *shelf) seal(stored, key, value []byte) ([]byte, error) {
	if s.vault == nil {
		return value, nil
	}
	s.text = binary.AppendUvarint(s.text[:0], uint64(len(key)))
	s.text = append(s.text, key...)
	s.text = append(s.text, value...)
	return s.vault.encrypt(s.at(stored), s.text)
}

// put writes value under key.
func (s *shelf) put(b interface{ Put(key, value []byte) error }, key, value []byte) error {
	stored := s.stored(key)
	sealed, err := s.seal(stored, key, value)
	if err != nil {
		return err
	}
	return b.Put(stored, sealed)
}

// open returns key and value of what was read. They are good until the next open.
func (s *shelf) open(stored, sealed []byte) (key, value []byte, err error) {
	if s.vault == nil {
		return stored, sealed, nil
	}
	if s.text, err = s.vault.decrypt(s.text[:0], s.at(stored), sealed); err != nil {
		return nil, nil, err
	}
	r := reader{b: s.text}
	key = r.bytes()
	if r.err == nil && !s.hidden && !bytes.Equal(key, stored) {
		r.err = errors.New("value is of another key")
	}
	return key, r.b, r.err
}

// at is the additional data of the value under a stored key.
func (s *shelf) at(stored []byte) []byte {
	s.additional = append(append(s.additional[:0], s.place...), stored...)
	return s.additional
}

// sum is what a value that was read or is to be written adds to the sum of its shelf.
// Of a damaged one it may be wrong: then the sum is wrong, too, and Load notices.
func (s *shelf) sum(sealed []byte) uint64 {
	if s.vault == nil {
		return uint64(storedSum(sealed))
	}
	return s.vault.tagSum(&s.block, sealed)
}

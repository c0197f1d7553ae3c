package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/informerd/informerd/cache"
)

// This file alone knows the bytes of a journal; docs/FORMAT.md draws them.

const (
	// journalMagic opens each file of a journal.
	journalMagic    = "informerd journal\n"
	journalVersion  = 1
	journalHeadSize = len(journalMagic) + 4 + journalIDSize + 8 + 4
	journalIDSize   = 16

	// noteMagic opens each note: what lies behind damage is found by it.
	noteMagic    = 0x65746f6e // "note"
	noteHeadSize = 4 + 4 + 8 + 4
	markVersion  = 1
)

// Bits of what is said of a change.
const (
	noteResets = 1 << iota
	noteErases
)

// journalMark is what the snapshot file says of its journal, under the key journal.
type journalMark struct {
	// id tells the journal of one snapshot file from that of another in its place.
	id [journalIDSize]byte
	// next is the number of the first file whose notes the snapshot file does not hold.
	next uint64
}

func (m journalMark) encode() []byte {
	b := append(make([]byte, sealSize), m.id[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.next)
	seal(journalKey, b, markVersion)
	return b
}

func decodeMark(value []byte) (m journalMark, err error) {
	body, err := unseal(journalKey, value, markVersion)
	if err == nil && len(body) != journalIDSize+8 {
		err = errShort
	}
	if err != nil {
		return m, fmt.Errorf("mark of the journal: %w", err)
	}
	copy(m.id[:], body)
	m.next = binary.LittleEndian.Uint64(body[journalIDSize:])
	return m, nil
}

// encodeJournalHead is what a file of the journal with the given mark's number begins with.
func encodeJournalHead(m journalMark) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(journalMagic), journalVersion)
	b = append(b, m.id[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.next)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// notePlace is the additional data of an encrypted note.
func notePlace(m journalMark, index uint64) []byte {
	b := append([]byte{kindNote}, m.id[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.next)
	return binary.LittleEndian.AppendUint64(b, index)
}

// appendNote appends changes as the note with the given index, of the file of a mark.
func appendNote(b []byte, m journalMark, index uint64, v *vault, changes []cache.LedgerChange) ([]byte, error) {
	start := len(b)
	b = append(b, make([]byte, noteHeadSize)...)
	b = appendChanges(b, changes)
	if v != nil {
		sealed, err := v.encrypt(notePlace(m, index), b[start+noteHeadSize:])
		if err != nil {
			return nil, err
		}
		b = append(b[:start+noteHeadSize], sealed...)
	}
	note := b[start:]
	binary.LittleEndian.PutUint32(note, noteMagic)
	binary.LittleEndian.PutUint32(note[4:], uint32(len(note)-noteHeadSize))
	binary.LittleEndian.PutUint64(note[8:], index)
	binary.LittleEndian.PutUint32(note[16:], noteSum(note))
	return b, nil
}

func noteSum(note []byte) uint32 {
	return crc32.Update(crc32.Checksum(note[:16], castagnoli), castagnoli, note[noteHeadSize:])
}

func appendChanges(b []byte, changes []cache.LedgerChange) []byte {
	b = binary.AppendUvarint(b, uint64(len(changes)))
	for _, c := range changes {
		flags := uint64(0)
		if c.Reset {
			flags |= noteResets
		}
		if c.Erase {
			flags |= noteErases
		}
		b = binary.AppendUvarint(appendString(b, c.Name), flags)
		b = binary.AppendUvarint(b, uint64(len(c.Delete)))
		for _, key := range c.Delete {
			b = appendString(b, string(key))
		}
		b = binary.AppendUvarint(b, uint64(len(c.Put)))
		for _, e := range c.Put {
			b = appendString(b, string(e.Key))
			b = appendString(b, string(e.Value))
		}
	}
	return b
}

// decodeChanges is the inverse of appendChanges. What it returns shares nothing with body.
func decodeChanges(body []byte) ([]cache.LedgerChange, error) {
	r := reader{b: slices.Clone(body)}
	var all []cache.LedgerChange
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		c := cache.LedgerChange{Name: string(r.bytes())}
		flags := r.uvarint()
		c.Reset, c.Erase = flags&noteResets != 0, flags&noteErases != 0
		for k := r.uvarint(); k > 0 && r.err == nil; k-- {
			c.Delete = append(c.Delete, r.bytes())
		}
		for k := r.uvarint(); k > 0 && r.err == nil; k-- {
			c.Put = append(c.Put, cache.LedgerEntry{Key: r.bytes(), Value: r.bytes()})
		}
		all = append(all, c)
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errTrailing
	}
	return all, r.err
}

// errTorn: the last note of a file is not all there. Nobody was told that it was saved.
var errTorn = errors.New("the last note is not all there")

// readNotes yields the notes of one file, which must be the one of the mark. It ends with
// errTorn where a crash may have ended it, and with another error where notes that were saved
// are lost: those before were yielded. A last note that was saved and damaged since looks
// like one that was torn.
func readNotes(data []byte, m journalMark, v *vault, yield func([]cache.LedgerChange) error) error {
	if err := checkJournalHead(data, m); err != nil {
		return err
	}
	at := journalHeadSize
	for index := uint64(0); at < len(data); index++ {
		if allZero(data[at:]) {
			return nil // what the file was made with, for notes to come
		}
		note, err := noteAt(data, at)
		if err == nil && binary.LittleEndian.Uint64(note[8:]) != index {
			return fmt.Errorf("note %d at byte %d, want %d", binary.LittleEndian.Uint64(note[8:]), at, index)
		}
		if err != nil {
			if later := laterNote(data, at, index); later > 0 {
				return fmt.Errorf("note %d at byte %d: %w, and another follows at %d", index, at, err, later)
			}
			return errTorn
		}
		if err := yieldNote(note, m, index, v, yield); err != nil {
			return fmt.Errorf("note %d at byte %d: %w", index, at, err)
		}
		at += len(note)
	}
	return nil
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// errOther: the file is of the journal of another snapshot file, or of another place in it.
var errOther = errors.New("the file is of another journal")

func checkJournalHead(data []byte, m journalMark) error {
	if bytes.HasPrefix(data, encodeJournalHead(m)) {
		return nil
	}
	if len(data) <= journalHeadSize || allZero(data) {
		return errTorn // nothing was ever noted in it
	}
	head := data[:journalHeadSize-4]
	switch version := binary.LittleEndian.Uint32(head[len(journalMagic):]); {
	case !bytes.HasPrefix(head, []byte(journalMagic)) || binary.LittleEndian.Uint32(data[len(head):]) != crc32.Checksum(head, castagnoli):
		return errors.New("what the file begins with is damaged")
	case version != journalVersion:
		return fmt.Errorf("version %d of the journal is not known", version)
	}
	return errOther
}

func yieldNote(note []byte, m journalMark, index uint64, v *vault, yield func([]cache.LedgerChange) error) (err error) {
	body := note[noteHeadSize:]
	if v != nil {
		if body, err = v.decrypt(nil, notePlace(m, index), body); err != nil {
			return err
		}
	}
	changes, err := decodeChanges(body)
	if err != nil {
		return err
	}
	return yield(changes)
}

// noteAt is the note at a byte, with its head.
func noteAt(data []byte, at int) ([]byte, error) {
	rest := data[at:]
	if len(rest) < noteHeadSize {
		return nil, errShort
	}
	size := int(binary.LittleEndian.Uint32(rest[4:]))
	switch {
	case binary.LittleEndian.Uint32(rest) != noteMagic:
		return nil, errors.New("no note begins here")
	case size > len(rest)-noteHeadSize:
		return nil, errShort
	}
	note := rest[:noteHeadSize+size]
	if binary.LittleEndian.Uint32(note[16:]) != noteSum(note) {
		return nil, errChecksum
	}
	return note, nil
}

// laterNote is where a sound note lies that was written after the one with the given index;
// 0: nowhere.
func laterNote(data []byte, at int, index uint64) int {
	magic := binary.LittleEndian.AppendUint32(nil, noteMagic)
	for at++; at < len(data); at++ {
		next := bytes.Index(data[at:], magic)
		if next < 0 {
			return 0
		}
		at += next
		if note, err := noteAt(data, at); err == nil && binary.LittleEndian.Uint64(note[8:]) > index {
			return at
		}
	}
	return 0
}

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
	journalHeadSize = len(journalMagic) + 4 + 16 + 8 + 4

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

// journalID tells one journal from all others.
type journalID [16]byte

// journalMark is what the snapshot file says of its journal, under the key journal: it holds
// the notes of the files before one, and of that one those before an index.
type journalMark struct {
	id         journalID
	file, note uint64
}

// journalKey is where the snapshot file has its journalMark, beside the buckets.
var journalKey = []byte("journal")

func (m journalMark) encode() []byte {
	b := append(make([]byte, sealSize), m.id[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.file)
	b = binary.LittleEndian.AppendUint64(b, m.note)
	seal(journalKey, b, markVersion)
	return b
}

func decodeMark(value []byte) (m journalMark, err error) {
	body, err := unseal(journalKey, value, markVersion)
	if err == nil && len(body) != len(m.id)+16 {
		err = errShort
	}
	if err != nil {
		return m, fmt.Errorf("mark of the journal: %w", err)
	}
	rest := body[copy(m.id[:], body):]
	m.file, m.note = binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])
	return m, nil
}

// encodeJournalHead is what a file of a journal begins with.
func encodeJournalHead(id journalID, number uint64) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(journalMagic), journalVersion)
	b = append(b, id[:]...)
	b = binary.LittleEndian.AppendUint64(b, number)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// notePlace is where a note lies.
type notePlace struct {
	id            journalID
	number, index uint64 // of the file, and in it
}

// additional is the additional data of an encrypted note.
func (p notePlace) additional() []byte {
	b := append([]byte{kindNote}, p.id[:]...)
	b = binary.LittleEndian.AppendUint64(b, p.number)
	return binary.LittleEndian.AppendUint64(b, p.index)
}

// journalNote is what one note says.
type journalNote struct {
	// before is how many notes were saved in the file before, in the first note of a file: so
	// it is found out if some are missing there. 0 in all others.
	before  uint64
	changes []cache.LedgerChange
}

// appendNote appends n as it lies at a place.
func appendNote(b []byte, at notePlace, v *vault, n *journalNote) ([]byte, error) {
	start := len(b)
	b = append(b, make([]byte, noteHeadSize)...)
	b = appendChanges(binary.AppendUvarint(b, n.before), n.changes)
	if v != nil {
		sealed, err := v.encrypt(at.additional(), b[start+noteHeadSize:])
		if err != nil {
			return nil, err
		}
		b = append(b[:start+noteHeadSize], sealed...)
	}
	note := b[start:]
	binary.LittleEndian.PutUint32(note, noteMagic)
	binary.LittleEndian.PutUint32(note[4:], uint32(len(note)-noteHeadSize))
	binary.LittleEndian.PutUint64(note[8:], at.index)
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

// decodeNote is the inverse of appendNote. What it returns shares nothing with body.
func decodeNote(body []byte) (*journalNote, error) {
	r := reader{b: slices.Clone(body)}
	note := &journalNote{before: r.uvarint()}
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
		note.changes = append(note.changes, c)
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errTrailing
	}
	return note, r.err
}

// readNotes yields the notes of a file and says how many there are. A last one that is not all
// there was torn by a crash, and nobody was told that it is saved: it is left out. One that was
// saved, and damaged since, looks like it.
func readNotes(data []byte, id journalID, number uint64, v *vault, yield func(uint64, *journalNote) error) (count uint64, err error) {
	if err := checkJournalHead(data, id, number); err != nil {
		if len(data) <= journalHeadSize || allZero(data) {
			return 0, nil // a crash ended it while it was made
		}
		return 0, err
	}
	at := journalHeadSize
	for ; at < len(data) && !allZero(data[at:]); count++ {
		note, err := noteAt(data, at)
		if err == nil && binary.LittleEndian.Uint64(note[8:]) != count {
			return count, fmt.Errorf("note %d at byte %d, want %d", binary.LittleEndian.Uint64(note[8:]), at, count)
		}
		if err != nil {
			if later := laterNote(data, at, count); later > 0 {
				return count, fmt.Errorf("note %d at byte %d: %w, and another follows at %d", count, at, err, later)
			}
			break
		}
		n, err := openNote(note, notePlace{id, number, count}, v)
		if err == nil {
			err = yield(count, n)
		}
		if err != nil {
			return count, fmt.Errorf("note %d at byte %d: %w", count, at, err)
		}
		at += len(note)
	}
	if at > journalHeadSize && len(data) < journalAlloc {
		return count, fmt.Errorf("the file has %d bytes, and was made with %d", len(data), journalAlloc)
	}
	return count, nil
}

func openNote(note []byte, at notePlace, v *vault) (n *journalNote, err error) {
	body := note[noteHeadSize:]
	if v != nil {
		if body, err = v.decrypt(nil, at.additional(), body); err != nil {
			return nil, err
		}
	}
	return decodeNote(body)
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// errOther: the file is of the journal of another snapshot file, or of another place in it.
var errOther = errors.New("the file is of another journal")

func checkJournalHead(data []byte, id journalID, number uint64) error {
	if bytes.HasPrefix(data, encodeJournalHead(id, number)) {
		return nil
	}
	if len(data) < journalHeadSize {
		return errShort
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

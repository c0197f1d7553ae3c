package handlers

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// The keys of a ledger begin with what they are of; the parts of a name are separated by
// zero bytes, which no name in Kubernetes has.
const (
	metaEntry   = "m"
	cursorEntry = "c"
	keyEntry    = "k"

	entryFormat = 1
)

func (k lineKey) encode(kind string, parts ...string) []byte {
	all := append([]string{kind, k.cluster, k.Group, k.Resource}, parts...)
	return []byte(strings.Join(all, "\x00"))
}

func decodeKey(key []byte) (kind string, line lineKey, rest []string, err error) {
	parts := strings.Split(string(key), "\x00")
	kind = parts[0]
	if kind == metaEntry && len(parts) == 1 {
		return kind, lineKey{}, nil, nil
	}
	want := map[string]int{cursorEntry: 4, keyEntry: 6}[kind]
	if len(parts) != want {
		return "", lineKey{}, nil, fmt.Errorf("%w: key %q", cache.ErrCorrupt, key)
	}
	line = lineKey{parts[1], schema.GroupResource{Group: parts[2], Resource: parts[3]}}
	return kind, line, parts[4:], nil
}

// saved are the flags that outlive the process.
const saved = selected | forced | initial | dead | entering

func (e *entry) ledgerKey() []byte { return e.line.key.encode(keyEntry, e.namespace(), e.name) }

// encodeLocked is what is saved of a key:
//
//	format, flags, told, since, attempts, before (Unix milliseconds),
//	error, uid, resourceVersion and payload of what left
//
// numbers as varints, texts after their lengths.
func (h *running) encodeLocked(e *entry) []byte {
	b := append(make([]byte, 0, 32), entryFormat)
	b = binary.BigEndian.AppendUint16(b, uint16(flags(e.flags.Load())&saved))
	b = binary.BigEndian.AppendUint64(b, uint64(e.told))
	b = binary.AppendVarint(b, e.since)
	if e.more == nil {
		return b
	}
	b = binary.AppendUvarint(b, uint64(e.more.attempts))
	before := int64(0)
	if !e.more.before.IsZero() {
		before = e.more.before.UnixMilli()
	}
	b = binary.AppendVarint(b, before)
	b = appendText(b, e.more.err)
	l := e.more.last
	if l == nil {
		return b
	}
	uid, version := l.uid, l.resourceVersion
	if l.object != nil {
		uid, version = l.object.UID(), l.object.ResourceVersion()
	}
	payload, err := h.lastPayloadLocked(l)
	if err != nil {
		payload = nil
	}
	b = appendText(b, uid)
	b = appendText(b, version)
	return appendText(b, string(payload))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads what encodeLocked wrote. The first failure sticks.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.err = cache.ErrCorrupt
		d.b = nil
		return nil
	}
	head := d.b[:n]
	d.b = d.b[n:]
	return head
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.err = cache.ErrCorrupt
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.err = cache.ErrCorrupt
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) text() string { return string(d.take(d.uvarint())) }

func (e *entry) decode(value []byte) error {
	d := &decoder{b: value}
	head := d.take(11)
	if d.err != nil || head[0] != entryFormat {
		return fmt.Errorf("%w: key %s/%s", cache.ErrCorrupt, e.namespace(), e.name)
	}
	e.flags.Store(uint32(flags(binary.BigEndian.Uint16(head[1:])) & saved))
	e.tell(digest(binary.BigEndian.Uint64(head[3:])))
	e.since = d.varint()
	if len(d.b) > 0 {
		m := e.with()
		m.attempts = int(d.uvarint())
		if before := d.varint(); before != 0 {
			m.before = time.UnixMilli(before)
		}
		m.err = d.text()
		if m.attempts > 0 {
			e.set(failing)
		}
	}
	if len(d.b) > 0 {
		l := &last{uid: d.text(), resourceVersion: d.text()}
		if payload := d.text(); payload != "" {
			l.payload = []byte(payload)
		}
		e.more.last = l
	}
	if d.err != nil || len(d.b) > 0 {
		return fmt.Errorf("%w: key %s/%s", cache.ErrCorrupt, e.namespace(), e.name)
	}
	e.tidy()
	return nil
}

// load takes over what is saved of the handler. Nothing else uses it yet.
func (h *running) load(ledgers cache.Ledgers) error {
	known := false
	err := ledgers.Ledger(h.name, func(n cache.LedgerEntry) error {
		kind, key, rest, err := decodeKey(n.Key)
		if err != nil {
			return err
		}
		switch kind {
		case metaEntry:
			known = true
			h.meta = meta{}
			return corrupt(json.Unmarshal(n.Value, &h.meta))
		case cursorEntry:
			return corrupt(json.Unmarshal(n.Value, &h.lineLocked(key).cursor))
		}
		l := h.lineLocked(key)
		// The entry holds on to no more of the ledger than its name.
		e := l.newEntry(cache.Key{Namespace: rest[0], Name: strings.Clone(rest[1])})
		if err := e.decode(n.Value); err != nil {
			return err
		}
		l.keys.add(e)
		if e.since != 0 {
			h.pending++
		}
		if e.is(dead) {
			h.dead[e] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !known && len(h.lines) > 0 {
		return fmt.Errorf("%w: no entry of the handler as a whole", cache.ErrCorrupt)
	}
	if known {
		// Deliveries whose numbers were not saved any more may have been made.
		h.meta.Sequence += sequenceGap
		h.noted = true
	}
	return nil
}

// sequenceGap is more than the deliveries that are made between two saves.
const sequenceGap = 1_000_000

func corrupt(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", cache.ErrCorrupt, err)
}

// taken is what of a handler is being saved.
type taken struct {
	h       *running
	changed map[*entry]struct{}
	moved   map[*line]struct{}
	anew    bool
	erase   bool
}

// takeLocked collects what the ledger does not have yet; false: nothing.
func (h *running) takeLocked() (cache.LedgerChange, taken, bool) {
	if !h.anew && !h.noted && len(h.changed)+len(h.moved) == 0 {
		return cache.LedgerChange{}, taken{}, false
	}
	t := taken{h, h.changed, h.moved, h.anew, h.erase}
	c := cache.LedgerChange{Name: h.name, Reset: h.anew, Erase: h.erase}
	c.Put = append(c.Put, cache.LedgerEntry{Key: []byte(metaEntry), Value: encodeJSON(h.meta)})
	if h.anew {
		for _, l := range h.lines {
			c.Put = append(c.Put, l.savedLocked())
			l.keys.each(func(e *entry) { c.Put = append(c.Put, h.savedLocked(e)) })
		}
	} else {
		h.addChangedLocked(&c)
	}
	h.changed, h.moved = map[*entry]struct{}{}, map[*line]struct{}{}
	h.anew, h.noted, h.erase = false, false, false
	return c, t, true
}

func (h *running) addChangedLocked(c *cache.LedgerChange) {
	for l := range h.moved {
		if h.lines[l.key] == nil {
			c.Delete = append(c.Delete, l.key.encode(cursorEntry))
		} else if h.lines[l.key] == l {
			c.Put = append(c.Put, l.savedLocked())
		}
	}
	for e := range h.changed {
		if !e.is(gone) {
			c.Put = append(c.Put, h.savedLocked(e))
			continue
		}
		// Another entry of the same key may have come since.
		if l := h.lines[e.line.key]; l == nil || l.keys.find(e.key()) == nil {
			c.Delete = append(c.Delete, e.ledgerKey())
		}
	}
}

func (l *line) savedLocked() cache.LedgerEntry {
	return cache.LedgerEntry{Key: l.key.encode(cursorEntry), Value: encodeJSON(l.cursor)}
}

func (h *running) savedLocked(e *entry) cache.LedgerEntry {
	return cache.LedgerEntry{Key: e.ledgerKey(), Value: h.encodeLocked(e)}
}

// giveBackLocked undoes takeLocked after a save that failed.
func (t taken) giveBackLocked() {
	h := t.h
	for e := range t.changed {
		h.changed[e] = struct{}{}
	}
	for l := range t.moved {
		h.moved[l] = struct{}{}
	}
	h.anew, h.noted, h.erase = h.anew || t.anew, true, h.erase || t.erase
}

func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of plain structs
	}
	return b
}

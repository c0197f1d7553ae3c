package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
)

// Layout of bbolt's pages, version 2 of its file format. Numbers have the byte
// order of the machine that wrote them.
const (
	pageHeader  = 16 // id uint64, flags uint16, count uint16, overflow uint32
	element     = 16 // branch: pos, ksize uint32, page uint64; leaf: flags, pos, ksize, vsize uint32
	branchFlag  = 0x01
	leafFlag    = 0x02
	listFlag    = 0x10
	bucketFlag  = 0x01 // of a leaf element
	bucketValue = 16   // root page uint64, sequence uint64
	metaTxid    = 64   // offsets in a meta page
	metaList    = 48
	noFreelist  = ^uint64(0)
)

// structure is what the walk over all pages of a file found.
type structure struct {
	pages, free int
	// whole is damage that leaves nothing readable.
	whole error
	// parts is damage within single resources, by bucket name.
	parts map[string]error
	// ledgerParts is damage within single ledgers, by bucket name; ledgers is damage that
	// leaves none of them to be found.
	ledgerParts map[string]error
	ledgers     error
	// rest is damage to what can be made anew from the resources: the freelist,
	// the staging bucket.
	rest error
}

// sound reports whether bbolt may be let loose on the file for writing.
func (s *structure) sound() bool {
	return s.whole == nil && s.rest == nil && s.ledgers == nil && len(s.parts)+len(s.ledgerParts) == 0
}

// check walks the file that tx reads, whose size is given. It reads every page
// once and follows no link without having checked it: each page lies in the
// file, is what its parent says, has its elements and keys inside it and in
// order, and belongs to one parent.
func check(tx *bbolt.Tx, file io.ReaderAt, size int64) *structure {
	pageSize := tx.DB().Info().PageSize
	w := &walker{
		file:     file,
		pageSize: pageSize,
		high:     uint64(tx.Size()) / uint64(pageSize),
		found:    &structure{parts: make(map[string]error), ledgerParts: make(map[string]error)},
	}
	if tx.Size() > size || tx.Size() < int64(4*pageSize) {
		w.found.whole = fmt.Errorf("file has %d bytes, its pages need %d", size, tx.Size())
		return w.found
	}
	w.walk(uint64(tx.ID()), uint64(tx.Cursor().Bucket().Root()))
	return w.found
}

// walker follows the pages of one file.
type walker struct {
	file     io.ReaderAt
	pageSize int
	high     uint64 // the first page id not in use
	found    *structure

	// owner says by page who refers to it: 0 nobody, else an index into scopes
	// plus one. A scope is a bucket path whose damage is told apart.
	owner  []int32
	scopes [][][]byte

	buffers [][]byte // by depth
}

func (w *walker) walk(txid, root uint64) {
	w.owner = make([]int32, w.high)
	scope := w.enter(nil)
	w.owner[0], w.owner[1] = scope, scope
	w.found.pages = int(w.high)
	if err := w.tree(span{scope: scope, page: root}); err != nil {
		w.blame(scope, err)
	}
	list, err := w.freelistPage(txid)
	if err == nil && list != noFreelist {
		err = w.freelist(list)
	}
	if err == nil {
		err = w.account(list == noFreelist)
	}
	if err != nil && w.found.rest == nil {
		w.found.rest = fmt.Errorf("freelist: %w", err)
	}
}

func (w *walker) enter(path [][]byte) int32 {
	w.scopes = append(w.scopes, path)
	return int32(len(w.scopes))
}

// blame records damage against the scope it was found in.
func (w *walker) blame(scope int32, err error) {
	path := w.scopes[scope-1]
	f := w.found
	switch {
	case isResource(path):
		f.parts[string(path[2])] = err
	case isLedger(path):
		f.ledgerParts[string(path[2])] = err
	case len(path) == 2 && bytes.Equal(path[1], ledgersBucket):
		f.ledgers = errors.Join(f.ledgers, err)
	case isVital(path):
		f.whole = errors.Join(f.whole, err)
	default:
		f.rest = errors.Join(f.rest, fmt.Errorf("bucket %q: %w", bytes.Join(path, []byte("/")), err))
	}
}

func isResource(path [][]byte) bool {
	return len(path) == 3 && bytes.Equal(path[0], rootBucket) && bytes.Equal(path[1], resourcesBucket)
}

func isLedger(path [][]byte) bool {
	return len(path) == 3 && bytes.Equal(path[0], rootBucket) && bytes.Equal(path[1], ledgersBucket)
}

// isVital reports whether without this bucket no resource can be found.
func isVital(path [][]byte) bool {
	return len(path) == 0 || bytes.Equal(path[0], rootBucket) &&
		(len(path) == 1 || len(path) == 2 && bytes.Equal(path[1], resourcesBucket))
}

// isScope reports whether damage in the bucket at path is told apart from that
// of the bucket around it.
func isScope(path [][]byte) bool {
	return len(path) == 1 || len(path) == 2 && bytes.Equal(path[0], rootBucket) || isResource(path) || isLedger(path)
}

// span is a page to visit and what is expected of it.
type span struct {
	scope     int32
	path      [][]byte // of the bucket, down to its scope
	depth     int      // of the page, from the root of the file
	page      uint64
	low, high []byte // keys are in [low, high); nil is open
}

// tree visits a page and all below it.
func (w *walker) tree(s span) error {
	page, err := w.read(s)
	if err != nil {
		return err
	}
	switch flags := binary.NativeEndian.Uint16(page[8:]); flags {
	case branchFlag:
		err = w.branch(s, page)
	case leafFlag:
		err = w.leaf(s, page)
	default:
		err = fmt.Errorf("flags %#x", flags)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", s.page, err)
	}
	return nil
}

// read claims a page with its overflow pages for the span's scope and returns
// it. The bytes stay as they are until another page of the same depth is read.
func (w *walker) read(s span) ([]byte, error) {
	if err := w.claim(s.page, 1, s.scope); err != nil {
		return nil, err
	}
	page := w.buffer(s.depth, w.pageSize)
	if _, err := w.file.ReadAt(page, int64(s.page)*int64(w.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", s.page, err)
	}
	if id := binary.NativeEndian.Uint64(page); id != s.page {
		return nil, fmt.Errorf("page %d calls itself %d", s.page, id)
	}
	overflow := uint64(binary.NativeEndian.Uint32(page[12:]))
	if overflow == 0 {
		return page, nil
	}
	if err := w.claim(s.page+1, overflow, s.scope); err != nil {
		return nil, err
	}
	page = w.buffer(s.depth, w.pageSize*int(overflow+1))
	if _, err := w.file.ReadAt(page, int64(s.page)*int64(w.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", s.page, err)
	}
	return page, nil
}

func (w *walker) claim(first, n uint64, scope int32) error {
	if first < 2 || first >= w.high || n > w.high-first {
		return fmt.Errorf("page %d is outside the file", first)
	}
	for id := first; id < first+n; id++ {
		if other := w.owner[id]; other != 0 {
			err := fmt.Errorf("page %d is used twice", id)
			if other != scope {
				w.blame(other, err) // nobody can tell who is right
			}
			return err
		}
		w.owner[id] = scope
	}
	return nil
}

func (w *walker) buffer(depth, size int) []byte {
	for len(w.buffers) <= depth {
		w.buffers = append(w.buffers, nil)
	}
	if cap(w.buffers[depth]) < size {
		w.buffers[depth] = make([]byte, size)
	}
	return w.buffers[depth][:size]
}

func (w *walker) branch(s span, page []byte) error {
	n := int(binary.NativeEndian.Uint16(page[10:]))
	if n == 0 {
		return errors.New("branch without children")
	}
	keys := keyCheck{last: s.low, first: true, high: s.high}
	for i := range n {
		key, child, err := branchElement(page, n, i)
		if err == nil {
			err = keys.next(key)
		}
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		below := span{scope: s.scope, path: s.path, depth: s.depth + 1, page: child, low: key, high: s.high}
		if i+1 < n {
			if below.high, _, err = branchElement(page, n, i+1); err != nil {
				return fmt.Errorf("element %d: %w", i+1, err)
			}
		}
		if err := w.tree(below); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) leaf(s span, page []byte) error {
	n := int(binary.NativeEndian.Uint16(page[10:]))
	keys := keyCheck{last: s.low, first: true, high: s.high}
	for i := range n {
		key, value, flags, err := leafElement(page, n, i)
		if err == nil {
			err = keys.next(key)
		}
		if err == nil && flags == bucketFlag {
			err = w.bucket(s, key, value)
		}
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// bucket visits the bucket that a leaf element of s holds. Damage in a scope of
// its own is recorded and ends there.
func (w *walker) bucket(s span, key, value []byte) error {
	if len(value) < bucketValue {
		return errors.New("bucket value ends early")
	}
	below := span{scope: s.scope, path: s.path, depth: s.depth + 1, page: binary.NativeEndian.Uint64(value)}
	own := false
	if len(s.path) < 3 {
		below.path = append(s.path[:len(s.path):len(s.path)], bytes.Clone(key))
		if own = isScope(below.path); own {
			below.scope = w.enter(below.path)
		}
	}
	var err error
	if below.page == 0 {
		err = inlineBucket(value[bucketValue:])
	} else {
		err = w.tree(below)
	}
	if err != nil && own {
		w.blame(below.scope, err)
		return nil
	}
	return err
}

// inlineBucket checks a small bucket, which is a leaf page within a value.
func inlineBucket(page []byte) error {
	if len(page) < pageHeader {
		return errors.New("inline bucket ends early")
	}
	if flags := binary.NativeEndian.Uint16(page[8:]); flags != leafFlag {
		return fmt.Errorf("inline bucket: flags %#x", flags)
	}
	n := int(binary.NativeEndian.Uint16(page[10:]))
	keys := keyCheck{first: true}
	for i := range n {
		key, _, flags, err := leafElement(page, n, i)
		if err == nil {
			err = keys.next(key)
		}
		if err == nil && flags == bucketFlag {
			err = errors.New("bucket in an inline bucket")
		}
		if err != nil {
			return fmt.Errorf("inline bucket: element %d: %w", i, err)
		}
	}
	return nil
}

// keyCheck holds the keys of one page to their order and bounds.
type keyCheck struct {
	last  []byte
	first bool // last is the lower bound, itself allowed
	high  []byte
}

func (c *keyCheck) next(key []byte) error {
	order := bytes.Compare(key, c.last)
	if order < 0 || order == 0 && !c.first {
		return errors.New("keys are out of order")
	}
	if c.high != nil && bytes.Compare(key, c.high) >= 0 {
		return errors.New("key belongs to another page")
	}
	c.last, c.first = key, false
	return nil
}

var errOutside = errors.New("reaches outside its page")

func branchElement(page []byte, n, i int) (key []byte, child uint64, err error) {
	at := pageHeader + i*element
	if pageHeader+n*element > len(page) {
		return nil, 0, errOutside
	}
	pos := binary.NativeEndian.Uint32(page[at:])
	size := binary.NativeEndian.Uint32(page[at+4:])
	key, err = within(page, n, at, pos, size)
	return key, binary.NativeEndian.Uint64(page[at+8:]), err
}

func leafElement(page []byte, n, i int) (key, value []byte, flags uint32, err error) {
	at := pageHeader + i*element
	if pageHeader+n*element > len(page) {
		return nil, nil, 0, errOutside
	}
	flags = binary.NativeEndian.Uint32(page[at:])
	if flags > bucketFlag {
		return nil, nil, 0, fmt.Errorf("element flags %#x", flags)
	}
	pos := binary.NativeEndian.Uint32(page[at+4:])
	ksize := binary.NativeEndian.Uint32(page[at+8:])
	vsize := binary.NativeEndian.Uint32(page[at+12:])
	if key, err = within(page, n, at, pos, ksize); err != nil {
		return nil, nil, 0, err
	}
	start := uint64(at) + uint64(pos) + uint64(ksize)
	if start+uint64(vsize) > uint64(len(page)) {
		return nil, nil, 0, errOutside
	}
	return key, page[start : start+uint64(vsize)], flags, nil
}

// within cuts the key of the element at offset at, which must not be empty.
func within(page []byte, n, at int, pos, size uint32) ([]byte, error) {
	start := uint64(at) + uint64(pos)
	end := start + uint64(size)
	if start < uint64(pageHeader+n*element) || end > uint64(len(page)) {
		return nil, errOutside
	}
	if size == 0 || size > bbolt.MaxKeySize {
		return nil, fmt.Errorf("key of %d bytes", size)
	}
	return page[start:end], nil
}

// freelistPage reads from the meta page of txid where the freelist is.
func (w *walker) freelistPage(txid uint64) (uint64, error) {
	page := w.buffer(0, w.pageSize)
	for id := range int64(2) {
		if _, err := w.file.ReadAt(page, id*int64(w.pageSize)); err != nil {
			return 0, err
		}
		// bbolt has checked the meta page it uses, and says by its txid which.
		if binary.NativeEndian.Uint64(page[metaTxid:]) == txid {
			return binary.NativeEndian.Uint64(page[metaList:]), nil
		}
	}
	return 0, errors.New("no meta page of this transaction")
}

func (w *walker) freelist(id uint64) error {
	scope := w.enter([][]byte{[]byte("freelist")})
	page, err := w.read(span{scope: scope, page: id})
	if err != nil {
		return err
	}
	if flags := binary.NativeEndian.Uint16(page[8:]); flags != listFlag {
		return fmt.Errorf("page %d: flags %#x", id, flags)
	}
	n, ids := uint64(binary.NativeEndian.Uint16(page[10:])), page[pageHeader:]
	if n == 0xFFFF { // too many for 16 bits: the count comes first
		n, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return fmt.Errorf("page %d: %d page ids do not fit", id, n)
	}
	last := uint64(0)
	for i := range n {
		free := binary.NativeEndian.Uint64(ids[i*8:])
		if free <= last {
			return fmt.Errorf("page %d: page ids are out of order", id)
		}
		if err := w.claim(free, 1, scope); err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		last = free
	}
	w.found.free = int(n)
	return nil
}

// account looks for pages that are neither used nor free. Without a freelist
// they are the free ones.
func (w *walker) account(unlisted bool) error {
	lost := 0
	for _, owner := range w.owner {
		if owner == 0 {
			lost++
		}
	}
	if unlisted {
		w.found.free = lost
		return nil
	}
	if lost > 0 && w.found.sound() {
		return fmt.Errorf("%d pages are neither used nor free", lost)
	}
	return nil
}

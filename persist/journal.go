package persist

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/informerd/informerd/cache"
)

// A commit of bbolt writes some ten pages and waits for the disk twice, and waits for the
// commit before it, which may be that of a million objects. What handlers deliver is worth
// neither: changes of ledgers are noted in a journal beside the file, by one write each, and
// the next Commit enters what was noted into the file.
//
// The journal is a row of files. A Commit begins the next one and says, in its transaction,
// which is the first that the file does not hold; those before it are removed then. Whoever
// opens the snapshot file enters what the others hold.

const (
	// JournalSuffix, and the number of a file of the journal, are added to the name of the
	// snapshot file.
	JournalSuffix = ".journal-"
	// journalBytes is how large a file of the journal may become, for as long as a Commit
	// takes or none succeeds.
	journalBytes = 64 << 20
	// journalAlloc is how large a file of the journal is made.
	journalAlloc = 1 << 20
	// noteBytes is how large a note may be. Larger ones are as well committed.
	noteBytes = 1 << 20
)

// journalKey is where the snapshot file has its journalMark, beside the buckets.
var journalKey = []byte("journal")

// journal is that of one DB. It is safe for concurrent use.
type journal struct {
	options *Options

	mu      sync.Mutex  // guards all below; taken after all others
	mark    journalMark // of the file that is written; the id is zero where there is none yet
	file    *os.File    // nil: nothing can be noted before the next turn
	vault   *vault      // of the snapshot file, which mark is of
	size    int
	count   uint64 // of notes in file
	buffer  []byte
	noted   notes    // what the snapshot file does not hold yet
	files   []uint64 // numbers of those that there are, or may be, in order
	entered uint64   // the files before this one are to be removed
	ended   bool     // the DB is closed
	failing bool     // it cannot be written, and that was logged
}

func (j *journal) name(number uint64) string {
	return j.options.Path + JournalSuffix + strconv.FormatUint(number, 10)
}

// note makes changes durable; false: they are to be committed instead.
func (j *journal) note(changes []cache.LedgerChange) bool {
	if sizeOf(changes) > noteBytes {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil || j.size > journalBytes {
		return false
	}
	if err := j.writeLocked(changes); err != nil {
		// Nobody knows what of it is on disk: nothing may be written behind it.
		j.closeLocked()
		j.logLocked(err)
		return false
	}
	for i := range changes {
		j.noted.add(&changes[i])
	}
	return true
}

func sizeOf(changes []cache.LedgerChange) (n int) {
	for _, c := range changes {
		for _, key := range c.Delete {
			n += len(key)
		}
		for _, e := range c.Put {
			n += len(e.Key) + len(e.Value)
		}
	}
	return n
}

func (j *journal) writeLocked(changes []cache.LedgerChange) (err error) {
	if j.buffer, err = appendNote(j.buffer[:0], j.mark, j.count, j.vault, changes); err != nil {
		return err
	}
	n, err := j.file.WriteAt(j.buffer, int64(j.size))
	j.size += n
	if err == nil && !j.options.NoSync {
		err = syncData(j.file)
	}
	j.count++
	return err
}

// logLocked says once that the journal cannot be written. Nothing is lost by it.
func (j *journal) logLocked(err error) {
	if !j.failing {
		j.options.Log.Warn("what handlers deliver cannot be noted beside the snapshot file, each is committed", "path", j.name(j.mark.next), "err", err)
	}
	j.failing = true
}

// empty reports whether the snapshot file holds all that was noted.
func (j *journal) empty() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.noted) == 0
}

// turn begins the next file, and returns what the snapshot file does not hold of those before,
// with the mark that says that it does. After a transaction that has both follows hasEntered,
// else giveBack. One turn is under way at a time; what is noted meanwhile does not wait for it.
func (j *journal) turn(v *vault) (notes, journalMark, error) {
	next, needed, err := j.following()
	var file *os.File
	var failed error
	if needed {
		file, failed = j.create(next)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil && j.ended:
		err = ErrClosed
		fallthrough
	case err != nil:
		if file != nil {
			err = errors.Join(err, file.Close(), os.Remove(j.name(next.next)))
		}
		return nil, journalMark{}, err
	case needed:
		j.closeLocked()
		j.mark.id = next.id
	}
	if failed != nil {
		j.logLocked(failed)
	}
	if file != nil {
		j.mark, j.file, j.vault, j.count, j.size, j.failing = next, file, v, 0, journalHeadSize, false
		j.files = append(j.files, next.next)
	}
	noted := j.noted
	j.noted = make(notes)
	return noted, next, nil
}

// following is the mark of the next file, and whether there is to be one: in the one that is
// written there may be nothing yet.
func (j *journal) following() (m journalMark, needed bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m = j.mark; j.file != nil && j.count == 0 {
		return m, false, nil
	}
	if m.id == ([journalIDSize]byte{}) {
		_, err = rand.Read(m.id[:])
	}
	m.next++
	return m, true, err
}

// create makes the file of a mark, durably: the snapshot file is going to refer to it. It has
// its size from the beginning. Else each note would change it, and wait until the file system
// has written what changed of all files.
func (j *journal) create(m journalMark) (file *os.File, err error) {
	if j.options.noJournal {
		return nil, nil
	}
	name := j.name(m.next)
	if file, err = j.options.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private); err != nil {
		return nil, err
	}
	head := make([]byte, journalAlloc)
	copy(head, encodeJournalHead(m))
	_, err = file.Write(head)
	if err == nil && !j.options.NoSync {
		if err = file.Sync(); err == nil {
			syncFolder(name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(name))
	}
	return file, nil
}

// giveBack undoes a turn whose transaction failed. What was noted since follows it.
func (j *journal) giveBack(noted notes, m journalMark) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mark.id != m.id {
		return // another snapshot file has taken the place of the one that it was of
	}
	noted.addAll(j.noted)
	j.noted = noted
}

// hasEntered notes that the snapshot file holds what was noted before a mark.
func (j *journal) hasEntered(m journalMark) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entered = m.next
}

// discard removes the files of which the snapshot file holds everything. One that cannot be
// removed is not read, and tried again.
func (j *journal) discard() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	j.files = slices.DeleteFunc(j.files, func(number uint64) bool {
		if number >= j.entered {
			return false
		}
		err := os.Remove(j.name(number))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			return false
		}
		return true
	})
	return errors.Join(errs...)
}

func (j *journal) closeLocked() {
	if j.file != nil {
		_ = j.file.Close() // everything that counts was synced
		j.file = nil
	}
}

// close ends the journal; the file that is written stays if the snapshot file needs it.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	open := j.file != nil
	j.ended = true
	j.closeLocked()
	if open && len(j.noted) == 0 {
		_ = os.Remove(j.name(j.mark.next))
	}
}

// is reports whether the journal is that of a mark.
func (j *journal) is(m journalMark) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mark.id == m.id && m.id != [journalIDSize]byte{}
}

// begin forgets the journal of another snapshot file. All files there are are removed; nothing
// is written before the next turn, which follows m.
func (j *journal) begin(m journalMark) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closeLocked()
	j.mark, j.noted, j.files, j.entered, j.failing = m, make(notes), nil, 0, false
	if m.next > 0 {
		j.mark.next--
	}
	numbers, err := journalNumbers(j.options.Path)
	for _, n := range numbers {
		err = errors.Join(err, os.Remove(j.name(n)))
	}
	return err
}

// journalNumbers are those of the files that lie beside a snapshot file, in order.
func journalNumbers(path string) ([]uint64, error) {
	folder, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var numbers []uint64
	for _, entry := range folder {
		rest, ok := strings.CutPrefix(entry.Name(), filepath.Base(path)+JournalSuffix)
		n, bad := strconv.ParseUint(rest, 10, 64)
		if ok && bad == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

// readJournal is what the files of a mark's journal hold, from the mark on, and how many they
// are. Its error says that notes which were saved are lost.
func readJournal(path string, m journalMark, v *vault) (notes, int, error) {
	all := make(notes)
	for count := 0; ; count++ {
		at := m
		at.next += uint64(count)
		data, err := readRegular(path + JournalSuffix + strconv.FormatUint(at.next, 10))
		if errors.Is(err, fs.ErrNotExist) {
			return all, count, nil
		}
		if err == nil {
			err = readNotes(data, at, v, func(changes []cache.LedgerChange) error {
				for i := range changes {
					if err := checkLedgerChange(&changes[i]); err != nil {
						return err
					}
					all.add(&changes[i])
				}
				return nil
			})
		}
		if errors.Is(err, errOther) {
			return all, count, nil
		}
		if err != nil && !errors.Is(err, errTorn) {
			return all, count, fmt.Errorf("journal file %d: %w", at.next, err)
		}
	}
}

// readRegular reads a file that is one, and not the link to another.
func readRegular(name string) ([]byte, error) {
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	return os.ReadFile(name)
}

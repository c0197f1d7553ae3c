package persist

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/informerd/informerd/cache"
)

// A commit of bbolt writes some ten pages and waits for the disk twice, and waits for the
// commit before it, which may be that of a million objects. What handlers deliver is worth
// neither: changes of ledgers are noted in a journal beside the file, by one write each, and
// the next Commit enters what was noted into the file.
//
// The transaction of a Commit says up to which note the file holds the journal. So a crash
// between any two steps leaves a file and a journal that fit each other: Open enters the notes
// from there on. A journal has an id, made anew by each Open and written into the file before
// anything is noted under it: the journal of another file, of another copy of it, or of
// another time is never taken for its own.

const (
	// journalAlloc is how large a file of the journal is made. One that is more than half full
	// is followed by another at the next Commit.
	journalAlloc = 1 << 20
	// journalBytes and journalFiles are how large the journal may become, for as long as a
	// Commit takes or none succeeds.
	journalBytes = 64 << 20
	journalFiles = 64
	// noteBytes is how large a note may be. Larger ones are as well committed.
	noteBytes = 1 << 20
)

// journal is that of one DB. It is safe for concurrent use; one turn is under way at a time.
type journal struct {
	options *Options

	mu       sync.Mutex // guards all below; taken after DB.mu
	id       journalID  // as the snapshot file has it; zero: it has none yet
	number   uint64     // of the newest file there is or was
	file     *os.File   // that one; nil: nothing can be noted before the next turn
	vault    *vault     // of the snapshot file
	size     int
	count    uint64   // of notes in file, or in the one before as long as there is none
	before   uint64   // of notes in the file before it
	noted    notes    // since the last turn
	entering notes    // by the turn under way; nil: there is none
	epoch    int      // another one for each snapshot file
	files    []uint64 // that there are, in order
	garbage  []string // files that are not needed any more
	buffer   []byte
	failing  bool // it cannot be written, and that was logged
	ended    bool // the DB is closed
}

// turning is a turn under way: what is noted before its mark is to be entered, together with
// the mark.
type turning struct {
	noted notes
	mark  journalMark
	epoch int
}

func (j *journal) name(number uint64) string { return journalName(j.options.Path, number) }

// note makes changes durable; false: they are to be committed instead, as those of a ledger
// are that is damaged.
func (j *journal) note(changes []cache.LedgerChange, damaged func(*vault, string) bool) bool {
	if sizeOf(changes) > noteBytes {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil || j.size > journalBytes || len(j.files) > journalFiles {
		return false
	}
	if slices.ContainsFunc(changes, func(c cache.LedgerChange) bool { return damaged(j.vault, c.Name) }) {
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
	at := notePlace{j.id, j.number, j.count}
	n := journalNote{changes: changes}
	if j.count == 0 {
		n.before = j.before
	}
	if j.buffer, err = appendNote(j.buffer[:0], at, j.vault, &n); err != nil {
		return err
	}
	if _, err = j.file.WriteAt(j.buffer, int64(j.size)); err != nil {
		return err
	}
	if !j.options.NoSync {
		if err = syncData(j.file); err != nil {
			return err
		}
	}
	j.size += len(j.buffer)
	j.count++
	return nil
}

// logLocked says once that the journal cannot be written. Nothing is lost by it.
func (j *journal) logLocked(err error) {
	if !j.failing {
		j.options.Log.Warn("what handlers deliver cannot be noted beside the snapshot file, each is committed", "path", j.options.Path, "err", err)
	}
	j.failing = true
}

// empty reports whether the snapshot file holds all that was noted.
func (j *journal) empty() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.noted)+len(j.entering) == 0
}

// holds reports whether the snapshot file does not hold all that was noted of a ledger.
func (j *journal) holds(ledger string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.noted[ledger] != nil || j.entering[ledger] != nil
}

// ledgers are those of which there are notes that the snapshot file does not hold; false: it is
// forgotten.
func (j *journal) ledgers() map[string]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	there := make(map[string]bool)
	for _, all := range []notes{j.entering, j.noted} {
		for name, of := range all {
			there[name] = of.there
		}
	}
	return there
}

// turn begins to enter what was noted into the snapshot file. What is noted meanwhile does not
// wait for it, and is left for the next. After a transaction that has it all follows hasEntered,
// else giveBack. With anew the next notes are in a file that holds nothing of before.
func (j *journal) turn(v *vault, anew bool) (*turning, error) {
	id, next, full, err := j.following(anew)
	if err != nil {
		return nil, err
	}
	var file *os.File
	var failed error
	if full {
		file, failed = j.create(id, next)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(failed, fs.ErrExist) && (anew || j.file == nil) {
		j.skipLocked(next)
	}
	switch {
	case j.ended:
		j.dropLocked(file, next)
		return nil, ErrClosed
	case anew && failed != nil:
		return nil, failed
	case failed != nil:
		j.logLocked(failed)
	case file != nil:
		j.useLocked(file, next, v)
	}
	t := &turning{noted: j.noted, epoch: j.epoch, mark: journalMark{id: id, file: j.number, note: j.count}}
	if j.file == nil { // and that of j.number may have a note more than is known
		t.mark.file, t.mark.note = j.number+1, 0
	}
	j.noted, j.entering = make(notes), t.noted
	return t, nil
}

// following says whether a turn is to make a file, and which. There is none before the snapshot
// file knows the id.
func (j *journal) following(anew bool) (id journalID, next uint64, full bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.id == (journalID{}) {
		_, err = rand.Read(id[:])
		return id, 0, false, err
	}
	full = j.file == nil || j.size > journalAlloc/2 || anew && j.count > 0
	return j.id, j.number + 1, full, nil
}

// useLocked writes to file, of the given number, from now on.
func (j *journal) useLocked(file *os.File, number uint64, v *vault) {
	j.closeLocked()
	j.file, j.number, j.vault, j.size = file, number, v, journalHeadSize
	j.before, j.count = j.count, 0
	j.files = append(j.files, number)
	j.failing = false
}

// dropLocked is for a file that is not needed after all.
func (j *journal) dropLocked(file *os.File, number uint64) {
	if file != nil {
		_ = file.Close()
		_ = os.Remove(j.name(number)) // it holds nothing
	}
}

// skipLocked is for a name that is taken, by what nobody reads. The mark of this turn, or of the
// next, is beyond it: there is no file that is written now, and the numbers of those that are
// read are in a row.
func (j *journal) skipLocked(number uint64) {
	j.closeLocked()
	j.number, j.count, j.before = number, 0, 0
	j.garbage = append(j.garbage, j.name(number))
}

// create makes a file, durably: nothing may be noted in one that is gone after a power cut. It
// has its size from the beginning. Else each note would change it, and wait until the file
// system has written what changed of all files.
func (j *journal) create(id journalID, number uint64) (file *os.File, err error) {
	if j.options.noJournal {
		return nil, nil
	}
	name := j.name(number)
	if file, err = j.options.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private); err != nil {
		return nil, err
	}
	head := make([]byte, journalAlloc)
	copy(head, encodeJournalHead(id, number))
	_, err = file.Write(head)
	if err == nil && !j.options.NoSync {
		if err = file.Sync(); err == nil {
			err = syncFolder(name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(name))
	}
	return file, nil
}

// giveBack undoes a turn whose transaction failed. What was noted since follows it.
func (j *journal) giveBack(t *turning) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.epoch != t.epoch {
		return // another snapshot file has taken the place of the one that it was of
	}
	t.noted.addAll(j.noted)
	j.noted, j.entering = t.noted, nil
}

// hasEntered notes that the snapshot file holds what is noted before the mark of a turn, and
// the mark.
func (j *journal) hasEntered(t *turning, v *vault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.epoch != t.epoch {
		return
	}
	j.entering = nil
	if j.id = t.mark.id; j.file == nil && !j.ended {
		file, err := j.create(j.id, j.number+1)
		switch {
		case err != nil:
			j.logLocked(err)
		case file != nil:
			j.useLocked(file, j.number+1, v)
		}
	}
	j.files = slices.DeleteFunc(j.files, func(number uint64) bool {
		done := number < t.mark.file
		if done {
			j.garbage = append(j.garbage, j.name(number))
		}
		return done
	})
}

// discard removes files of which the snapshot file holds everything. One that cannot be removed
// is not read, and tried again.
func (j *journal) discard() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.discardLocked()
}

func (j *journal) discardLocked() error {
	var errs []error
	j.garbage = slices.DeleteFunc(j.garbage, func(name string) bool {
		err := os.Remove(name)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return true
		}
		errs = append(errs, err)
		return false
	})
	return errors.Join(errs...)
}

func (j *journal) closeLocked() {
	if j.file != nil {
		_ = j.file.Close() // everything that counts was synced
		j.file = nil
	}
}

// close ends the journal. Files stay if the snapshot file needs them.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return
	}
	j.ended = true
	j.closeLocked()
	if len(j.noted) > 0 || j.entering != nil {
		return
	}
	for _, number := range j.files {
		j.garbage = append(j.garbage, j.name(number))
	}
	_ = j.discardLocked() // what is left is found by the next Open
}

// is reports whether the journal is that of a snapshot file with the given mark.
func (j *journal) is(m journalMark) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.id == m.id && m.id != journalID{}
}

// begun reports whether the snapshot file has the journal's id.
func (j *journal) begun() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.id != journalID{}
}

// begin forgets all journals there are beside the snapshot file, of which it holds all that it
// needs, and begins one that it does not know yet.
func (j *journal) begin() error {
	numbers, err := journalNumbers(j.options.Path)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closeLocked()
	j.epoch++
	j.id, j.count, j.before, j.failing = journalID{}, 0, 0, false
	j.noted, j.entering, j.files, j.garbage = make(notes), nil, nil, nil
	for _, n := range numbers {
		j.garbage = append(j.garbage, j.name(n))
		j.number = max(j.number, n) // a name that cannot be removed is not used
	}
	if err := j.discardLocked(); err != nil {
		j.options.Log.Warn("files of a journal that is not needed any more cannot be removed", "err", err)
	}
	return nil
}

// readJournal is what the journal of a mark holds from there on, and how many files it has. Its
// error says that notes which were saved are lost.
func readJournal(path string, m journalMark, v *vault) (notes, int, error) {
	all := make(notes)
	if m.id == (journalID{}) {
		return all, 0, nil
	}
	count := uint64(0) // of notes in the file before
	for number := m.file; ; number++ {
		data, err := readRegular(journalName(path, number))
		if err == nil {
			first := number == m.file
			before := count
			count, err = readNotes(data, m.id, number, v, func(index uint64, n *journalNote) error {
				if index == 0 && !first && before < n.before {
					return fmt.Errorf("the file before it has %d notes, and had %d", before, n.before)
				}
				if first && index < m.note {
					return nil
				}
				return n.addTo(all)
			})
			if err == nil && first && count < m.note {
				err = fmt.Errorf("it has %d notes, and had %d", count, m.note)
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errOther):
			return all, int(number - m.file), missingBefore(path, m.id, number)
		case err != nil:
			return all, int(number - m.file), fmt.Errorf("journal file %d: %w", number, err)
		}
	}
}

// missingBefore is the error of a journal that has no file of a number, and one after it.
func missingBefore(path string, id journalID, number uint64) error {
	numbers, err := journalNumbers(path)
	for _, later := range numbers {
		if later <= number {
			continue
		}
		data, err := readRegular(journalName(path, later))
		if err == nil && checkJournalHead(data, id, later) == nil {
			return fmt.Errorf("journal file %d is missing", number)
		}
	}
	return err
}

// addTo lets what was noted follow.
func (n *journalNote) addTo(all notes) error {
	for i := range n.changes {
		if err := checkLedgerChange(&n.changes[i]); err != nil {
			return err
		}
		all.add(&n.changes[i])
	}
	return nil
}

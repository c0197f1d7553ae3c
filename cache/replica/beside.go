package replica

import (
	"errors"
	"time"

	"github.com/informerd/informerd/cache"
)

// Beside is what is saved in the transactions of the copies, since it must agree with
// them: what was made of the changes that they hold.
//
// Its methods are called one at a time. Neither may call the Factory's SaveNow or Apply, or
// wait for who does: a save is under way.
type Beside interface {
	// Save calls commit once, with what is to be saved, and returns its error. Nothing to
	// save is an empty list: commit then saves the copies alone, and begins no transaction
	// if nothing is to be saved of them either. After an error nothing was saved of both.
	// The last save, at the end of Run, calls it too, and then no informer runs any more.
	//
	// Whatever the copies hold that are saved with it has been published to subscribers
	// before Save is called: a Store enters objects and events in one critical section, and
	// what is saved of it is taken in another. So who polls a Subscription of it within Save
	// until there are no more events has seen all of them, see cache.Subscription.Poll; what
	// is polled may be ahead of what is saved, and is never behind it.
	Save(commit func([]cache.LedgerChange) error) error
	// SaveAnew: the file was replaced, or damage was met in it. The next Save must hold
	// everything, each ledger with Reset.
	SaveAnew()
}

var (
	errNoCommit     = errors.New("what is saved beside the copies committed nothing")
	errSecondCommit = errors.New("what is saved beside the copies commits twice")
)

// SaveBeside has b saved together with the copies. It must be called before Run, and once.
func (f *Factory) SaveBeside(b Beside) {
	f.saver.committing.Lock()
	defer f.saver.committing.Unlock()
	f.saver.beside = b
}

// SaveNow commits what is beside the copies, in a transaction of its own: without it that
// waits for the next save. It is safe for concurrent use; callers share transactions, since
// what one has saved is nothing to save any more for the next. Where nothing is saved at all,
// it is taken and dropped.
func (f *Factory) SaveNow() error {
	f.saver.committing.Lock()
	defer f.saver.committing.Unlock()
	if f.saver.beside == nil {
		return nil
	}
	f.saver.awaited = true
	err := f.commit(nil, false)
	f.afterCommit(err)
	return err
}

// commit makes batches, and what is saved beside them, durable in one transaction; all says
// that batches are all there are to be saved. The caller holds committing.
func (f *Factory) commit(batches []cache.Batch, all bool) error {
	if f.saver.beside == nil {
		return f.commitTogether(batches, nil, all)
	}
	var result error
	calls := 0
	err := f.saver.beside.Save(func(ledgers []cache.LedgerChange) error {
		if calls++; calls > 1 {
			return errSecondCommit
		}
		result = f.commitTogether(batches, ledgers, all)
		return result
	})
	if calls == 0 {
		return errors.Join(errNoCommit, err)
	}
	return result
}

func (f *Factory) commitTogether(batches []cache.Batch, ledgers []cache.LedgerChange, all bool) error {
	if len(batches)+len(ledgers) == 0 || f.options.Snapshots == nil {
		return nil
	}
	start := time.Now()
	err := f.options.Snapshots.Commit(batches, ledgers)
	f.saver.note(start, err, all)
	return err
}

// afterCommit has everything saved anew after errors which say that nothing is there any
// more that changes could be added to. The caller holds committing.
func (f *Factory) afterCommit(err error) {
	if !errors.Is(err, cache.ErrNoSnapshot) && !errors.Is(err, cache.ErrCorrupt) && !errors.Is(err, cache.ErrReplaced) {
		return
	}
	f.saveAllAnew()
	if f.saver.beside != nil {
		f.saver.beside.SaveAnew()
	}
}

package replica

import (
	"errors"
	"time"

	"github.com/informerd/informerd/cache"
)

// Beside is what is saved beside the copies and must agree with them: what was made of the
// changes that they hold. It is durable before they are.
//
// Its methods are called one at a time. Neither may call the Factory's SaveNow or Apply, or
// wait for who does: a save is under way.
type Beside interface {
	// Save calls commit once, with what is to be saved, and returns its error. Nothing to
	// save is an empty list. After an error nothing was saved, and no copies are saved that
	// were to be after it. The last save, at the end of Run, calls it too, and then no informer
	// runs any more.
	//
	// Whatever the copies hold that are saved after it has been published to subscribers
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

// SaveBeside has b saved with the copies. It must be called before Run, and once.
func (f *Factory) SaveBeside(b Beside) {
	f.saver.noting.Lock()
	defer f.saver.noting.Unlock()
	f.saver.beside = b
}

// SaveNow makes what is beside the copies durable, without waiting for a save of them. It is
// safe for concurrent use; callers share what is written, since what one has saved is nothing
// to save any more for the next. Where nothing is saved at all, it is taken and dropped.
func (f *Factory) SaveNow() error {
	err := f.saveBeside()
	f.afterCommit(err)
	return err
}

// saveBeside saves what is beside the copies: whatever was made of the changes that they
// held when it is called.
func (f *Factory) saveBeside() error {
	f.saver.noting.Lock()
	defer f.saver.noting.Unlock()
	if f.saver.beside == nil {
		return nil
	}
	var result error
	calls := 0
	err := f.saver.beside.Save(func(ledgers []cache.LedgerChange) error {
		if calls++; calls > 1 {
			return errSecondCommit
		}
		result = f.noteLedgers(ledgers)
		return result
	})
	if calls == 0 {
		return errors.Join(errNoCommit, err)
	}
	return result
}

func (f *Factory) noteLedgers(ledgers []cache.LedgerChange) error {
	if len(ledgers) == 0 || f.options.Snapshots == nil {
		return nil
	}
	start := time.Now()
	err := f.options.Snapshots.Note(ledgers)
	f.saver.note(start, err, false)
	return err
}

// commit makes batches durable, after what is beside the copies: a copy that is restored is
// so never ahead of it. The caller holds committing, and has taken the batches before.
func (f *Factory) commit(batches []cache.Batch) error {
	if err := f.saveBeside(); err != nil {
		return err
	}
	start := time.Now()
	err := f.options.Snapshots.Commit(batches, nil)
	if err == nil && len(batches) == 0 {
		f.saver.settle()
		return nil
	}
	f.saver.note(start, err, true)
	return err
}

// afterCommit has everything saved anew after errors which say that nothing is there any
// more that changes could be added to.
func (f *Factory) afterCommit(err error) {
	if !errors.Is(err, cache.ErrNoSnapshot) && !errors.Is(err, cache.ErrCorrupt) && !errors.Is(err, cache.ErrReplaced) {
		return
	}
	f.saveAllAnew()
	f.saver.noting.Lock()
	defer f.saver.noting.Unlock()
	if f.saver.beside != nil {
		f.saver.beside.SaveAnew()
	}
}

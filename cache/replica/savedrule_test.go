package replica

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// ruled is Snapshots that look at the rule under which objects are saved.
type ruled struct {
	*memory
	t *testing.T
}

func (r ruled) Commit(batches []cache.Batch, ledgers []cache.LedgerChange) error {
	for _, b := range batches {
		dropped := len(b.Saved.Spec.Drop) > 0
		for rec := range b.Records() {
			if held := bytes.Contains(rec.Data, []byte(`"value"`)); held == dropped {
				r.t.Errorf("saved under drop %q: %s", b.Saved.Spec.Drop, rec.Data)
			}
		}
	}
	return r.memory.Commit(batches, ledgers)
}

// TestSavedUnderItsRule: objects are saved under the rule that they were cut by, also
// while a copy under another rule takes the place of theirs. A process that starts under
// the rule they were saved under would take them for whole.
func TestSavedUnderItsRule(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLiar(1)
		for _, name := range numbered("p", 3) {
			l.put(name, "1")
		}
		d := deceive(t, l, Options{Snapshots: ruled{newMemory(), t}, SaveInterval: time.Hour})
		d.becomes(time.Minute, cache.Live)
		for n := range 100 {
			spec := specOf("pods")
			if n%2 == 0 {
				spec.Drop = []string{"spec.value"}
			}
			applied := make(chan struct{})
			var saver sync.WaitGroup
			saver.Go(func() {
				for {
					if err := d.save(); err != nil {
						t.Error(err)
					}
					select {
					case <-applied:
						return
					default:
					}
				}
			})
			err := d.Apply("c", []cache.Spec{spec})
			close(applied)
			saver.Wait()
			if err != nil {
				t.Fatal(err)
			}
			within(t, time.Minute, "the copy asked for", func() bool {
				i := d.pods()
				return i.outdated() == nil && i.View().Readable()
			})
		}
	})
}

package replica

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// readingLook is the time between looks at what a list brings, and readingLeast how many
	// bytes of JSON it brings meanwhile at least if it is to keep its place: 1 MB a second.
	readingLook  = 500 * time.Millisecond
	readingLeast = 2 * batchBytes
	// readingPatience is how long a list that has begun waits for a place again. Its server
	// cuts it off after a minute, and a stream that is not read much sooner.
	readingPatience = 5 * time.Second
)

// intake has only some of the lists of all clusters come in at once. More of them would be
// done no sooner, since the processors are what they wait for, and each takes memory from its
// first object to its last; a list that is read too slowly is also cut off by its server, after
// a minute.
//
// Who waits for a server has no place: a list that brings little is read without one, so that
// neither a cluster that hangs nor a slow network keeps others from theirs. One that brings
// much again waits for a place, before all that have not begun, and goes on without one when
// that takes too long: to be cut off and listed again would cost more than one list too many.
type intake struct {
	most     int           // places
	look     time.Duration // readingLook; tests are impatient
	patience time.Duration // readingPatience

	mu      sync.Mutex // guards all below, and what is in a reading
	taken   int
	waiting []*reading // in the order in which they came
	// under is how many lists each cluster has under way, with a place or without.
	under map[string]int
}

func newIntake(most int) *intake {
	return &intake{most: most, look: readingLook, patience: readingPatience, under: map[string]int{}}
}

// reading is a list on its way in. A nil one may bring as much as it likes.
type reading struct {
	intake  *intake
	cluster string
	ctx     context.Context

	begun, placed bool
	hurries       bool          // it has waited for long, and does not wait any more
	came          int           // bytes since the last look
	placing       chan struct{} // closed when it gets the place it waits for
	timer         *time.Timer
}

// begin waits until a list of a cluster may be asked for. end it. The list is given up when
// ctx ends.
func (in *intake) begin(ctx context.Context, cluster string) (*reading, error) {
	r := &reading{intake: in, cluster: cluster, ctx: ctx}
	if err := r.wait(nil); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// took notes that so many bytes of the list came, and waits if too many do for a list without
// a place. It fails when the context of the list ends.
func (r *reading) took(n int) error {
	if r == nil {
		return nil
	}
	r.intake.mu.Lock()
	r.came += n
	goesOn := r.placed || r.hurries || r.came < readingLeast
	r.intake.mu.Unlock()
	if goesOn {
		return nil
	}
	patience := time.NewTimer(r.intake.patience)
	defer patience.Stop()
	return r.wait(patience.C)
}

// wait waits for a place, until it is to hurry.
func (r *reading) wait(hurry <-chan time.Time) error {
	in := r.intake
	in.mu.Lock()
	placing := make(chan struct{})
	r.placing = placing
	in.waiting = append(in.waiting, r)
	in.placeLocked()
	in.mu.Unlock()
	var err error
	select {
	case <-placing:
		return nil
	case <-hurry:
	case <-r.ctx.Done():
		err = context.Cause(r.ctx)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.waiting = slices.DeleteFunc(in.waiting, func(w *reading) bool { return w == r })
	r.hurries = true
	return err
}

// end gives back what the list has. Nothing may be taken of it any more.
func (r *reading) end() {
	if r == nil {
		return
	}
	in := r.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.begun {
		if in.under[r.cluster]--; in.under[r.cluster] == 0 {
			delete(in.under, r.cluster)
		}
	}
	r.begun = false
	in.leaveLocked(r)
}

func (in *intake) leaveLocked(r *reading) {
	if r.placed {
		r.placed = false
		in.taken--
		in.placeLocked()
	}
}

// placeLocked gives places that are free to who waits.
func (in *intake) placeLocked() {
	for in.taken < in.most && len(in.waiting) > 0 {
		n := in.nextLocked()
		r := in.waiting[n]
		in.waiting = slices.Delete(in.waiting, n, n+1)
		in.taken++
		r.placed, r.came = true, 0
		if r.begun {
			r.timer.Reset(in.look) // a look that is due says nothing of what it will bring
		} else {
			r.begun = true
			in.under[r.cluster]++
			r.timer = time.AfterFunc(in.look, r.looked)
		}
		close(r.placing)
	}
}

// nextLocked is whose turn it is of those who wait: lists that have begun come before others,
// and then those of clusters that have the fewest under way, so that a cluster whose lists all
// hang is asked for one more when all others have had their turn.
func (in *intake) nextLocked() int {
	best := 0
	for n, r := range in.waiting {
		b := in.waiting[best]
		if r.begun != b.begun && r.begun || r.begun == b.begun && in.under[r.cluster] < in.under[b.cluster] {
			best = n
		}
	}
	return best
}

// looked takes the place of a list that has brought little lately.
func (r *reading) looked() {
	r.intake.mu.Lock()
	defer r.intake.mu.Unlock()
	if !r.begun {
		return
	}
	if r.came < readingLeast {
		r.intake.leaveLocked(r)
	}
	r.came = 0
	r.timer.Reset(r.intake.look)
}

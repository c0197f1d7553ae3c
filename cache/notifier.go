package cache

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	// crowd is how many are woken at once.
	crowd = 16
	// maxCrowds bounds the channels that wait for a wake. Beyond it crowds get larger, so
	// that who takes channels again and again costs nothing where nothing changes.
	maxCrowds = 512
	// laterBy is how much later those are told who are to be told later, at most. What
	// changes meanwhile they are told of together.
	laterBy = 100 * time.Millisecond
)

// notifier wakes everybody who waits for a change, those who came first first. It has
// channels only while somebody waits.
//
// Thousands may wait. Go's scheduler runs what is ready in the order in which it became so:
// were all of them woken at once, whoever is to answer a short question in that moment would
// wait for each of them to look at what has changed. So they are woken in crowds, and between
// two of these whatever else is ready runs. And who is to be told later, see Turns, is woken
// laterBy after the others: whoever has a thousand watches does not hold up who has one.
type notifier struct {
	mu    sync.Mutex // guards all below
	now   queue
	later queue
	due   bool // those of later are about to be woken
}

// queue is who waits, in crowds, those who came first first.
type queue struct {
	crowds []chan struct{}
	taken  int // how often one was taken since the last wake
}

func (q *queue) join() <-chan struct{} {
	i := q.taken / crowd % maxCrowds
	q.taken++
	if i == len(q.crowds) {
		q.crowds = append(q.crowds, make(chan struct{}))
	}
	return q.crowds[i]
}

func (q *queue) leave() []chan struct{} {
	crowds := q.crowds
	*q = queue{}
	return crowds
}

// wait returns a channel that the next wake closes, or has closed before long where whoever
// asks with ctx is to be told later. Take it first, then look at what you wait for, then
// receive.
func (n *notifier) wait(ctx context.Context) <-chan struct{} {
	later := toldLater(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if later {
		return n.later.join()
	}
	return n.now.join()
}

// wake returns at once. The first crowd is awake then, the others are before long.
func (n *notifier) wake() {
	n.mu.Lock()
	crowds := n.now.leave()
	if len(n.later.crowds) > 0 && !n.due {
		n.due = true
		time.AfterFunc(laterBy, n.wakeLater)
	}
	n.mu.Unlock()
	wakeFrom(crowds)
}

func (n *notifier) wakeLater() {
	n.mu.Lock()
	crowds := n.later.leave()
	n.due = false
	n.mu.Unlock()
	wakeAll(crowds)
}

// end wakes everybody, also those who are to be told later: there is nothing more to tell.
func (n *notifier) end() {
	n.mu.Lock()
	crowds := append(n.now.leave(), n.later.leave()...)
	n.mu.Unlock()
	wakeFrom(crowds)
}

// wakeFrom wakes the first crowd at once, and has the others follow: who calls it holds locks.
func wakeFrom(crowds []chan struct{}) {
	if len(crowds) == 0 {
		return
	}
	close(crowds[0])
	if len(crowds) > 1 {
		go wakeAll(crowds[1:])
	}
}

// wakeAll wakes one crowd after the other, and lets others run in between.
func wakeAll(crowds []chan struct{}) {
	for _, ch := range crowds {
		runtime.Gosched()
		close(ch)
	}
}

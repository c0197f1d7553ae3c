package cache

import (
	"runtime"
	"sync"
)

const (
	// crowd is how many are woken at once.
	crowd = 16
	// maxCrowds bounds the channels that wait for a wake. Beyond it crowds get larger, so
	// that who takes channels again and again costs nothing where nothing changes.
	maxCrowds = 512
)

// notifier wakes everybody who waits for a change, those who came first first. It has
// channels only while somebody waits.
//
// Thousands may wait. Go's scheduler runs what is ready in the order in which it became so:
// were all of them woken at once, whoever is to answer a short question in that moment would
// wait for each of them to look at what has changed. So they are woken in crowds, and between
// two of these whatever else is ready runs.
type notifier struct {
	mu     sync.Mutex // guards all below
	crowds []chan struct{}
	taken  int // how often one was taken since the last wake
}

// wait returns a channel that the next wake closes. Take it first, then look at
// what you wait for, then receive.
func (n *notifier) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.taken / crowd % maxCrowds
	n.taken++
	if i == len(n.crowds) {
		n.crowds = append(n.crowds, make(chan struct{}))
	}
	return n.crowds[i]
}

// wake returns at once. The first crowd is awake then, the others are before long.
func (n *notifier) wake() {
	n.mu.Lock()
	crowds := n.crowds
	n.crowds, n.taken = nil, 0
	n.mu.Unlock()
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

package cache

import (
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	// encodersKept is how many encoders may wait to be used again, of all resources of all
	// clusters. Each has 0.8 MB of tables, which are of one dictionary, and twice that once it
	// has learned another one.
	encodersKept = 64
	// encoderIdle is for how long one waits for that at least, and twice that at most.
	encoderIdle = 5 * time.Second
)

// encoders are those of all dictionaries of the process. To make one takes as long as to pack
// fifty pods, so that they are used again; but a pool of each dictionary's own, which the
// garbage collector empties, holds as many as there are resources in all clusters for as long
// as there is little garbage.
var encoders = encoderPool{kept: encodersKept, idle: encoderIdle}

// encoderPool keeps encoders that nobody uses, the latest used last.
type encoderPool struct {
	kept int
	idle time.Duration

	mu      sync.Mutex
	waiting []*pooledEncoder
	timer   *time.Timer // not nil while any wait
}

// pooledEncoder is an encoder and what it packs with.
type pooledEncoder struct {
	*zstd.Encoder
	dict   *dictionary
	coding coding
	used   time.Time
}

// get returns an encoder of a dictionary, which is the caller's until it is put. One that
// waits for another dictionary is taken if there are as many as may be: to have it learn
// this one is a third of the work, and hardly garbage.
func (p *encoderPool) get(d *dictionary, c coding) (*pooledEncoder, error) {
	e := p.take(d, c)
	switch {
	case e == nil:
		enc, err := d.newEncoder(c)
		return &pooledEncoder{Encoder: enc, dict: d, coding: c}, err
	case e.dict != d || e.coding != c:
		err := e.ResetWithOptions(nil, zstd.WithEncoderDict(d.raw), withCoding(c))
		e.dict, e.coding = d, c
		return e, err
	default:
		return e, nil
	}
}

// take takes the best one that waits, nil if a new one is to be made.
func (p *encoderPool) take(d *dictionary, c coding) *pooledEncoder {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.waiting) - 1; n >= 0; n-- {
		if e := p.waiting[n]; e.dict == d && e.coding == c {
			return p.removeLocked(n)
		}
	}
	if len(p.waiting) >= p.kept {
		return p.removeLocked(0)
	}
	return nil
}

func (p *encoderPool) removeLocked(n int) *pooledEncoder {
	e := p.waiting[n]
	copy(p.waiting[n:], p.waiting[n+1:])
	last := len(p.waiting) - 1
	p.waiting[last] = nil
	p.waiting = p.waiting[:last]
	return e
}

// put gives an encoder back.
func (p *encoderPool) put(e *pooledEncoder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) >= p.kept {
		return
	}
	e.used = time.Now()
	p.waiting = append(p.waiting, e)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.idle, p.forgetIdle)
	}
}

// forget lets go of the encoders of a dictionary that will hardly be used soon.
func (p *encoderPool) forget(d *dictionary) {
	p.forgetThat(func(e *pooledEncoder) bool { return e.dict == d })
}

// forgetIdle lets go of what nobody has used.
func (p *encoderPool) forgetIdle() {
	p.forgetThat(func(e *pooledEncoder) bool { return time.Since(e.used) >= p.idle })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if len(p.waiting) > 0 {
		p.timer = time.AfterFunc(p.idle, p.forgetIdle)
	}
}

func (p *encoderPool) forgetThat(useless func(*pooledEncoder) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.waiting) - 1; n >= 0; n-- {
		if useless(p.waiting[n]) {
			p.removeLocked(n)
		}
	}
}

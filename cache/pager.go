package cache

import (
	"container/list"
	"context"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Pager cuts lists of objects into pages and keeps what is left of each for
// whoever comes back with its token. All pages of a list are of the moment of
// the first. About is what is the same for all pages of a list.
//
// Whoever begins many lists ends their own: those of others go on, as long as there is
// room for all.
type Pager[About any] struct {
	name  string // of what is listed, so that tokens are not mixed up
	epoch string // tells Pagers apart: tokens of another one have expired
	opts  StoreOptions

	mu      sync.Mutex // guards all below
	byID    map[uint64]*list.Element
	owned   map[string]*owned[About] // those who have lists under way
	objects int                      // of all lists
	waiting bool                     // expire will be called
}

// owned are the lists that somebody reads.
type owned[About any] struct {
	order   list.List // of *cursor; the one used last in front
	objects int
}

// Question is what the pages of a list answer. A token is good for the same one only.
type Question struct {
	// Query stands for what was asked.
	Query string
	// Scope is the Digest of what may be seen. A token of another one has expired.
	Scope string
	// Owner is who asks. A token of somebody else has expired.
	Owner string
}

// Part is one page of a list.
type Part[About any] struct {
	About   About
	Objects []*Object
	// Continue asks for the next page; empty on the last one.
	Continue string
	// Remaining is how many objects come after this page.
	Remaining int
}

// NewPager returns a Pager for lists of what name says, bounded by opts.
func NewPager[About any](name, epoch string, opts StoreOptions) *Pager[About] {
	return &Pager[About]{name: name, epoch: epoch, opts: opts.withDefaults(), byID: map[uint64]*list.Element{}, owned: map[string]*owned[About]{}}
}

// First returns the first page of objects, all of them if limit is not positive.
func (p *Pager[About]) First(q Question, about About, objects []*Object, limit int) *Part[About] {
	c := &cursor[About]{question: q, about: about, objects: objects, total: len(objects)}
	if limit > 0 && limit < len(objects) {
		p.add(c)
	}
	return p.cut(c, objects, 0, limit)
}

// FirstOf returns the first page of a list of which no more than its first limit
// objects are known, and how many there are in total: that is more. complete
// makes the whole list when another page is asked for, of the same moment.
func (p *Pager[About]) FirstOf(q Question, about About, objects []*Object, total int, complete func(context.Context) ([]*Object, error)) *Part[About] {
	c := &cursor[About]{question: q, about: about, total: total, complete: complete}
	p.add(c)
	return p.cut(c, objects, 0, len(objects))
}

// Next returns the page that a token asks for. The same token gives the same
// page again, until it expires: then the error is ErrExpired. It has expired, too, when
// objects of the page were read under a rule that another has taken the place of. A
// token that is malformed or of another query is an *InvalidError.
func (p *Pager[About]) Next(ctx context.Context, q Question, token string, limit int) (*Part[About], error) {
	t, err := parseToken(token)
	switch {
	case err != nil:
		return nil, err
	case t.Resource != p.name:
		return nil, invalidf("continue", "this token is of a list of another resource")
	case t.Query != q.Query:
		return nil, invalidf("continue", "this token is of another query; repeat the parameters of the first page")
	case t.Epoch != p.epoch:
		return nil, ErrExpired
	}
	c := p.get(t.Cursor, q)
	if c == nil {
		return nil, ErrExpired
	}
	if t.Offset < 0 || t.Offset > c.total || c.question.Query != q.Query {
		return nil, errToken
	}
	objects, err := c.whole(ctx)
	if err != nil {
		return nil, err
	}
	part := p.cut(c, objects, t.Offset, limit)
	if slices.ContainsFunc(part.Objects, (*Object).outdated) {
		return nil, ErrExpired
	}
	return part, nil
}

// cut takes the page at offset out of the objects of c.
func (p *Pager[About]) cut(c *cursor[About], objects []*Object, offset, limit int) *Part[About] {
	end := c.total
	if limit > 0 && limit < end-offset {
		end = offset + limit
	}
	part := &Part[About]{About: c.about, Objects: objects[offset:end:end]}
	if part.Remaining = c.total - end; part.Remaining > 0 {
		part.Continue = pageToken{p.name, p.epoch, c.id, end, c.question.Query}.String()
	}
	return part
}

// pageToken says where a paged list goes on. Clients see it encoded and must
// not look inside.
type pageToken struct {
	Resource string `json:"r"`
	Epoch    string `json:"e"`
	Cursor   uint64 `json:"c"`
	Offset   int    `json:"o"`
	Query    string `json:"q"`
}

var errToken = &InvalidError{Parameter: "continue", Message: "this is no token of a list; use metadata.continue of the page before, unchanged"}

func (t pageToken) String() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseToken(s string) (t pageToken, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || json.Unmarshal(b, &t) != nil {
		return pageToken{}, errToken
	}
	return t, nil
}

// cursor is a list that is being read page by page. What its pages are never
// changes.
type cursor[About any] struct {
	id       uint64
	question Question
	about    About
	total    int
	used     time.Time

	completing sync.Mutex // guards objects and complete
	objects    []*Object
	complete   func(context.Context) ([]*Object, error) // nil once it was called
}

// whole is the list as a whole.
func (c *cursor[About]) whole(ctx context.Context) ([]*Object, error) {
	c.completing.Lock()
	defer c.completing.Unlock()
	if c.complete != nil {
		objects, err := c.complete(ctx)
		if err != nil {
			return nil, err
		}
		c.objects, c.complete = objects, nil
	}
	return c.objects, nil
}

func (p *Pager[About]) add(c *cursor[About]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// It tells nobody how many lists others read, and is always as long.
	for c.id == 0 || p.byID[c.id] != nil {
		c.id = 1e18 + rand.Uint64N(9e18)
	}
	c.used = time.Now()
	mine := p.owned[c.question.Owner]
	if mine == nil {
		mine = &owned[About]{}
		p.owned[c.question.Owner] = mine
	}
	p.byID[c.id] = mine.order.PushFront(c)
	mine.objects += c.total
	p.objects += c.total
	p.boundLocked(mine)
	p.expireLaterLocked()
}

// boundLocked drops lists of mine that are too many, and of whoever has most where all
// are too many or too large together; what was used least recently goes first. It keeps
// the newest even if it is too large on its own: its reader has just been given a token.
func (p *Pager[About]) boundLocked(mine *owned[About]) {
	for mine.order.Len() > p.opts.Cursors {
		p.dropLocked(mine.order.Back())
	}
	for len(p.byID) > 1 && p.objects > p.opts.CursorObjects {
		p.dropLocked(p.mostLocked(mine, func(o *owned[About]) int { return o.objects }).order.Back())
	}
	for len(p.byID) > allOwners*p.opts.Cursors {
		p.dropLocked(p.mostLocked(mine, func(o *owned[About]) int { return o.order.Len() }).order.Back())
	}
}

// allOwners is how many times the lists of one may be under way of all.
const allOwners = 16

// mostLocked is whoever has most, of those who have a list beside the newest one, which
// is mine.
func (p *Pager[About]) mostLocked(mine *owned[About], of func(*owned[About]) int) (most *owned[About]) {
	for _, o := range p.owned {
		if (o != mine || o.order.Len() > 1) && (most == nil || of(o) > of(most)) {
			most = o
		}
	}
	return most
}

func (p *Pager[About]) dropLocked(e *list.Element) {
	c := e.Value.(*cursor[About])
	o := p.owned[c.question.Owner]
	o.order.Remove(e)
	o.objects -= c.total
	if o.order.Len() == 0 {
		delete(p.owned, c.question.Owner)
	}
	delete(p.byID, c.id)
	p.objects -= c.total
}

// get finds the list of a token that q came with.
func (p *Pager[About]) get(id uint64, q Question) *cursor[About] {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expireLocked()
	e := p.byID[id]
	if e == nil {
		return nil
	}
	c := e.Value.(*cursor[About])
	if c.question.Scope != q.Scope || c.question.Owner != q.Owner {
		return nil
	}
	c.used = time.Now()
	p.owned[q.Owner].order.MoveToFront(e)
	return c
}

// expireLocked drops lists that nobody has come back for.
func (p *Pager[About]) expireLocked() {
	for _, o := range p.owned {
		for e := o.order.Back(); e != nil && time.Since(e.Value.(*cursor[About]).used) >= p.opts.CursorAge; e = o.order.Back() {
			p.dropLocked(e)
		}
	}
}

// expireLaterLocked sees to it that lists expire that nobody comes back for: they
// hold on to all versions that their objects had.
func (p *Pager[About]) expireLaterLocked() {
	if len(p.byID) == 0 || p.waiting {
		return
	}
	var oldest time.Time
	for _, o := range p.owned {
		if used := o.order.Back().Value.(*cursor[About]).used; oldest.IsZero() || used.Before(oldest) {
			oldest = used
		}
	}
	p.waiting = true
	time.AfterFunc(p.opts.CursorAge-time.Since(oldest), p.expire)
}

func (p *Pager[About]) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = false
	p.expireLocked()
	p.expireLaterLocked()
}
